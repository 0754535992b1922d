"""Licences: spelled, classed, and passed only as the policy says."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from tasks import policy as policies
from tasks.compliance import closure, licences
from tasks.policy import LicencePolicy

# Imported by code that travels in a package but does not run in the runtime.
BUILD_ONLY = {"onnx", "duckdb", "pyarrow", "google"}


@pytest.fixture(scope="module")
def policy(root: Path) -> LicencePolicy:
    return policies.load(root / "infra/policies", "local").licences


@pytest.mark.parametrize(
    ("metadata", "classifiers", "expected"),
    [
        ({"License-Expression": "mit"}, (), "MIT"),
        ({"License": "3-Clause BSD License"}, (), "BSD-3-Clause"),
        (
            {"License": "MIT License"},
            ("License :: OSI Approved :: Apache Software License",),
            "MIT",
        ),
        ({}, ("License :: OSI Approved :: Apache Software License",), "Apache-2.0"),
        (
            {},
            ("License :: OSI Approved :: MIT License", "License :: OSI Approved :: BSD License"),
            "",
        ),
        ({"License": "Business Source License 1.1"}, (), "BUSL-1.1"),
        ({"License": "Copyright 2018 Somebody. All rights reserved." * 9}, (), ""),
        ({}, (), ""),
    ],
)
def test_declared_licences_are_read(
    metadata: dict[str, str], classifiers: tuple[str, ...], expected: str
) -> None:
    """Expression first, then free text by a closed table, then a single classifier."""
    assert licences.declared(metadata, classifiers) == expected


@pytest.mark.parametrize(
    ("expression", "ruling"),
    [
        ("MIT", "allowed"),
        ("CC0-1.0", "allowed"),
        ("GPL-3.0-only OR MIT", "allowed"),
        ("GPL-3.0-only AND MIT", "undecided"),
        ("Apache-2.0 WITH LLVM-exception", "allowed"),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "undecided"),
        ("BUSL-1.1", "undecided"),
        ("LicenseRef-Secret", "unknown"),
        ("", "unknown"),
    ],
)
def test_rulings_follow_the_categories(policy: LicencePolicy, expression: str, ruling: str) -> None:
    """A choice needs one allowed branch, a conjunction all of them."""
    assert licences.classify(expression, "thing", "run-time", policy).ruling == ruling


def test_a_decision_holds_for_one_licence_and_one_use(policy: LicencePolicy) -> None:
    """alibi-detect may be used for evaluation, and for nothing else."""
    assert licences.classify("BUSL-1.1", "alibi-detect", "evaluation", policy).ruling == "decided"
    assert licences.classify("BUSL-1.1", "alibi-detect", "run-time", policy).ruling == "undecided"
    assert licences.classify("BUSL-1.1", "other", "evaluation", policy).ruling == "undecided"


@given(st.text(max_size=40))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    """Whatever stands in a licence field, the answer is a ruling."""
    judged = licences.classify(text, "thing", "data", LicencePolicy(("Permissive",), ()))
    assert judged.ruling in ("allowed", "undecided", "unknown")


def test_the_closure_is_classed_under_the_shipped_policy(policy: LicencePolicy) -> None:
    """Everything the runtime needs is installed, and passes."""
    found = closure.closure(closure.ROOTS, policy)
    assert {"numpy", "onnxruntime", "protobuf"} <= {item.name for item in found}
    assert [item.to_dict() for item in found if not item.license.passes or not item.version] == []


def test_a_library_that_is_missing_is_named(policy: LicencePolicy) -> None:
    """A root that is not installed has no version and no licence."""
    (found,) = closure.closure(["No_Such.Library"], policy)
    assert (found.name, found.version, found.license.ruling) == ("no-such-library", "", "unknown")


def test_tools_are_listed_with_those_of_other_environments(
    policy: LicencePolicy, tmp_path: Path
) -> None:
    """alibi-detect is found in its own environment by its metadata alone."""
    folder = tmp_path / "alibi-1/lib/python3.11/site-packages/alibi_detect-0.13.0.dist-info"
    folder.mkdir(parents=True)
    text = "Metadata-Version: 2.1\nName: alibi-detect\nVersion: 0.13.0\n"
    (folder / "METADATA").write_text(f"{text}License: Business Source License 1.1\n")
    found = {item.name: item for item in closure.tools(policy, tmp_path)}
    assert found["alibi-detect"].license.ruling == "decided"
    assert found["prefect"].license.ruling == "allowed"


def test_the_roots_are_what_the_runtime_imports(root: Path) -> None:
    """A new import in the runtime must be audited too."""
    known = packages_distributions()
    found = set()
    for path in [*root.glob("model_packages/**/*.py"), *root.glob("contracts/base/*.py")]:
        if "published" not in path.parts:
            found |= set(_imports(path))
    found -= {*BUILD_ONLY, *sys.stdlib_module_names}
    third = {name for name in found if name in known}
    distributions = {canonicalize_name(known[name][0]) for name in third}
    own = {"caisson"}
    assert distributions - own - set(closure.ROOTS) == set()


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
