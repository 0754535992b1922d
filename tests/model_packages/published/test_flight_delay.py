"""The published flight-delay model: what its owner committed, and what its programs do."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contracts.features.bundle import is_version
from contracts.objects import content
from model_packages.format import cases, settings
from model_packages.format import manifest as manifests
from model_packages.graph.weights import with_changed_weight
from model_packages.runtime import backends
from model_packages.runtime.backends.interface import SessionOptions
from tests.fakes import trained as training

FOLDER = training.ROOT / "model_packages/published/flight-delay"

pytestmark = pytest.mark.xdist_group("trained")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained package source, as files."""
    made = training.trained()
    target = tmp_path_factory.mktemp("tree") / "model"
    return content.checkout_tree(made.workspace.objects, made.tree, target)


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


def test_manifest_and_settings_are_valid() -> None:
    """The committed files are read strictly, and name the bundles the model is made from."""
    manifest = manifests.load(FOLDER / "manifest.json")
    assert manifest.license == "Apache-2.0"
    assert manifest.training is not None
    assert manifest.training.retrain == "nightly"
    assert is_version(manifest.training.feature_version)
    assert is_version(manifest.training.holdout_version)
    assert settings.load(FOLDER / "config.yaml").max_batch_size == 256


def test_inputs_are_the_features_of_the_definition() -> None:
    """Manifest and feature definition name the same columns of the same kinds."""
    path = training.ROOT / "contracts/published" / f"{training.DEFINITION}.features.json"
    definition = json.loads(path.read_text(encoding="utf-8"))
    manifest = manifests.load(FOLDER / "manifest.json")
    kinds = {spec.name: spec.datatype for spec in manifest.inputs}
    wanted = {"categorical": "BYTES", "numeric": "FP32"}
    assert kinds == {item["name"]: wanted[item["kind"]] for item in definition["features"]}
    assert manifest.training is not None
    assert manifest.training.label == definition["label"]["name"]


def test_nothing_committed_depends_on_weights() -> None:
    """Weights, golden answers and numbers are made by training, never committed."""
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert not [name for name in names if "output" in name or name.endswith((".onnx", ".pt2"))]


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("train.py", {"numpy", "onnx", "pyarrow", "torch"}),
        ("health_check.py", {"numpy", "onnxruntime"}),
    ],
)
def test_program_imports_only_what_it_may(program: str, allowed: set[str]) -> None:
    """A package's programs need nothing of this house."""
    assert _imports(FOLDER / program) <= allowed


def test_golden_cases_fit_the_manifest(tree: Path) -> None:
    """Every committed request got an answer that fits what the manifest declares."""
    found = cases.load(tree / "test_cases")
    assert [case.name for case in found] == ["valid_01", "valid_02", "valid_03"]
    assert cases.mismatches(manifests.load(tree / "manifest.json"), found) == []


def test_unknown_and_missing_values_get_an_answer(tree: Path) -> None:
    """An unknown text counts as other and a missing number as the mean; neither is an error."""
    session = backends.create("onnx").open(tree / "model.onnx", SessionOptions())
    feeds = {
        spec.name: np.array(["?", ""], dtype=object)
        if spec.datatype == "BYTES"
        else np.array([np.nan, 1e30], dtype=np.float32)
        for spec in session.inputs
    }
    (answer,) = session.run(feeds)
    assert answer.shape == (2,)
    assert ((answer > 0) & (answer < 1)).all()


def test_model_card_is_filled(tree: Path) -> None:
    """The card says what was measured, and no name is left open."""
    card = (tree / "docs/model_card.md").read_text(encoding="utf-8")
    metrics = json.loads((tree / "docs/metrics.json").read_text(encoding="utf-8"))
    assert "$" not in card
    assert f"| ROC AUC | {metrics['roc_auc']:.3f} |" in card
    assert training.trained().versions.training in card


def test_health_check_tells_good_from_bad(tree: Path, tmp_path: Path) -> None:
    """The package's own check passes on its graph and fails when a weight was changed."""
    good = tmp_path / "good"
    shutil.copytree(tree, good)
    assert _health(good) == (0, True)
    bad = tmp_path / "bad"
    shutil.copytree(tree, bad)
    graph = bad / "model.onnx"
    graph.write_bytes(with_changed_weight(graph.read_bytes(), ending="bias"))
    assert _health(bad) == (1, False)


def _health(folder: Path) -> tuple[int, bool]:
    request = folder.parent / f"{folder.name}.json"
    answer = folder.parent / f"{folder.name}-answer.json"
    request.write_text(json.dumps({"answer": str(answer)}), encoding="utf-8")
    command = [sys.executable, "-I", str(folder / "health_check.py"), str(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, bool(json.loads(answer.read_text(encoding="utf-8"))["healthy"])


def test_graph_carries_nothing_of_the_machine(tree: Path) -> None:
    """The graph has no path, user or host in it."""
    data = (tree / "model.onnx").read_bytes()
    assert str(training.ROOT).encode() not in data
    assert b"pytorch" not in data
