"""The manifest is read strictly, and root and version follow from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from contracts.base import canonical
from contracts.base.errors import BundleInvalid, DigestMismatch, InputError
from contracts.features import bundle
from contracts.features.store import FeatureVersion


def test_a_manifest_reads_back(published: FeatureVersion) -> None:
    """Writing and reading keep everything, the root above all."""
    found = bundle.parse(published.manifest.dumps(), where="here")
    assert found == published.manifest
    assert found.root == published.pointer.root
    assert [column.name for column in found.features][:2] == ["place", "weekday"]
    assert found.label == "late"
    assert found.spine.name == "trips"


def test_the_version_is_date_and_root(published: FeatureVersion) -> None:
    """The date is the UTC date of as_of; the hash is of the content and not of as_of."""
    manifest = published.manifest
    assert manifest.version == f"20200301-{manifest.root[7:19]}"
    name = bundle.archive_name(manifest.version)
    assert name == f"feature_bundle_20200301_{manifest.root[7:19]}.tar.gz"
    west = datetime(2020, 3, 1, 20, tzinfo=timezone(timedelta(hours=-5)))
    assert replace(manifest, as_of=west).version == f"20200302-{manifest.root[7:19]}"
    assert replace(manifest, parts=()).root == manifest.root


def _set(path: list[Any], value: Any) -> Callable[[Any], None]:
    def change(plain: Any) -> None:
        for name in path[:-1]:
            plain = plain[name]
        plain[path[-1]] = value

    return change


MALFORMED = {
    "format": _set(["format_version"], 1),
    "root": _set(["root"], "x"),
    "version": _set(["version"], 5),
    "as_of": _set(["as_of"], "soon"),
    "content": _set(["content"], []),
    "rows": _set(["content", "rows"], -1),
    "more rows": _set(["content", "rows"], 10**15),
    "no blocks": _set(["content", "block_rows"], 0),
    "cell": _set(["content", "columns", 0, "cells"], ["x"]),
    "no cells": _set(["content", "columns", 0, "cells"], []),
    "type": _set(["content", "columns", 0, "type"], "object"),
    "twice": _set(["content", "columns", 0, "name"], "late"),
    "no label": _set(["content", "columns", -1, "role"], "key"),
    "kind": _set(["content", "columns", 0, "kind"], "text"),
    "bounds": _set(["content", "block_bounds"], []),
    "bound": _set(["content", "block_bounds"], [[1, 2]]),
    "batch": _set(["content", "inputs", 0, "batches"], [["b1", "x"]]),
    "inputs": _set(["content", "inputs"], []),
    "part name": _set(["parts", 0, "path"], "../part-00000.parquet"),
    "no part": _set(["parts"], []),
    "unknown": _set(["content", "more"], 1),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_manifests_are_refused(published: FeatureVersion, case: str) -> None:
    """Whatever is wrong is a BundleInvalid that names the file."""
    plain = copy.deepcopy(canonical.loads(published.manifest.dumps()))
    MALFORMED[case](plain)
    with pytest.raises(BundleInvalid, match=r"here: \d+ problems"):
        bundle.parse(canonical.dumps(plain), where="here")


CHANGED = {
    "rows left out": _set(["content", "excluded_rows"], 7),
    "contract": _set(["content", "inputs", 0, "contract"], "small/trips@1.0.1"),
    "batch": _set(["content", "inputs", 0, "batches", 0, 0], "b2"),
    "definition": _set(["content", "definition_digest"], "sha256:" + "0" * 64),
    "cell": _set(["content", "columns", 0, "cells", 0], "sha256:" + "0" * 64),
    "kind": _set(["content", "columns", 2, "kind"], "numeric"),
    "bounds": _set(["content", "block_bounds", 0, 0], "2020-01-01T00:00:00.000Z"),
    "version": _set(["version"], "20200302-000000000000"),
    "date": _set(["as_of"], "2020-03-02T00:00:00Z"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_everything_a_bundle_says_is_under_its_root(published: FeatureVersion, case: str) -> None:
    """A well-formed manifest that says something else has another root or version."""
    plain = copy.deepcopy(canonical.loads(published.manifest.dumps()))
    CHANGED[case](plain)
    with pytest.raises(DigestMismatch, match="does not follow"):
        bundle.parse(canonical.dumps(plain), where="here")


@pytest.mark.parametrize(
    "text", ["", "20200301", "20200301-ABCDEF012345", "٢0200301-000000000000", 1]
)
def test_other_text_is_no_version(text: Any) -> None:
    """A feature version is eight digits, a dash and twelve hexadecimal digits."""
    with pytest.raises(InputError, match="not a feature version"):
        bundle.check_version(text)


def test_the_values_are_known_apart(published: FeatureVersion) -> None:
    """Equal tables have equal values, whatever batches they were computed from."""
    manifest = published.manifest
    spine = replace(manifest.spine, batches=(("b2", manifest.root),))
    other = replace(manifest, inputs=(spine,), as_of=datetime(2021, 1, 1, tzinfo=UTC))
    assert other.values == manifest.values
    assert other.root != manifest.root
