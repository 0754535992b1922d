"""Training: from published files and pinned bundles to a package source."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base.errors import BundleInvalid, CaissonError, InputError, ManifestInvalid
from contracts.objects import content
from contracts.objects.interface import ObjectMissing
from model_packages.format import layout
from model_packages.format import manifest as manifests
from tasks import child
from tasks.train import card
from tasks.train.options import TrainOptions
from tasks.train.train import Versions, exists, train
from tests.fakes import trained as training

pytestmark = pytest.mark.xdist_group("trained")

PROGRAM = """
import json, sys
from pathlib import Path
request = json.loads(Path(sys.argv[1]).read_text())
Path(request["output"], "model.onnx").write_bytes(b"graph")
Path(request["answer"]).write_text(json.dumps({answer}))
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the published model whose program answers at once."""
    folder = tmp_path / "published" / training.MODEL
    shutil.copytree(training.ROOT / "model_packages/published" / training.MODEL, folder)
    (folder / "docs/model_card.md").write_text("ROC AUC $roc_auc\n", encoding="utf-8")
    _program(folder, '{"metrics": {"roc_auc": 0.5}}')
    return folder


def _program(folder: Path, answer: str) -> None:
    (folder / "train.py").write_text(PROGRAM.replace("{answer}", answer), encoding="utf-8")


def _manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    content_of = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content_of, **changes}), encoding="utf-8")


def test_source_tree_is_a_whole_package(tmp_path: Path) -> None:
    """What training stores is accepted as a package source, and names what it learned from."""
    made = training.trained()
    folder = content.checkout_tree(made.workspace.objects, made.tree, tmp_path / "tree")
    layout.read_source(folder)
    found = manifests.load(folder / "manifest.json").training
    assert found is not None
    assert (found.feature_version, found.holdout_version) == (
        made.versions.training,
        made.versions.holdout,
    )


def test_report_says_what_was_measured() -> None:
    """Quality, calibration and slices stand in the facts, and what varies does not."""
    facts = training.trained().report.facts
    metrics = facts["metrics"]
    assert 0.5 < metrics["roc_auc"] <= 1
    assert (
        sum(row["rows"] for row in metrics["calibration"]["reliability"]) == metrics["holdout_rows"]
    )
    assert {"carrier", "origin", "hour"} == set(metrics["slices"])
    assert "cpu_s" in training.trained().report.measurements


def test_report_holds_while_its_objects_do(model: Path) -> None:
    """A recorded training counts only while tree, files and reference are stored."""
    made = training.trained()
    report = train(made.workspace, model, made.versions, training.OPTIONS)
    assert exists(made.workspace, report)
    (entry, *_) = content.read_tree(made.workspace.objects, report.facts["source_tree"])
    saved = content.get_bytes(made.workspace.objects, entry.sha256, limit=2**20)
    made.workspace.objects.delete(content.key_of(entry.sha256))
    assert not exists(made.workspace, report)
    content.put_bytes(made.workspace.objects, saved)


def test_model_without_reference_is_kept_without_one(model: Path) -> None:
    """A program need not keep a float module; then verification says so later."""
    made = training.trained()
    report = train(made.workspace, model, made.versions, training.OPTIONS)
    assert report.facts["reference_digest"] is None
    assert report.verdict == "pass"


def test_missed_target_fails(model: Path) -> None:
    """A model below its manifest's target is refused, with the number that was missed."""
    made = training.trained()
    options = replace(training.OPTIONS, enforce_target=True)
    report = train(made.workspace, model, made.versions, options)
    assert report.verdict == "fail"
    assert [finding.location for finding in report.findings] == [
        "roc_auc",
        "roc_auc_above_baseline",
    ]
    assert "0.67" in report.findings[0].message


def test_column_that_the_bundle_lacks_is_named(model: Path) -> None:
    """An input without a column is found before anything runs."""
    made = training.trained()
    extra = {"name": "gust", "datatype": "FP32", "shape": [-1]}
    inputs = json.loads((model / "manifest.json").read_text(encoding="utf-8"))["inputs"]
    _manifest(model, inputs=[*inputs, extra])
    with pytest.raises(BundleInvalid, match="gust"):
        train(made.workspace, model, made.versions, training.OPTIONS)


def test_unknown_version_is_refused(model: Path) -> None:
    """A feature version that was never published cannot be trained on."""
    made = training.trained()
    versions = Versions("20130201-000000000000", made.versions.holdout)
    with pytest.raises(ObjectMissing):
        train(made.workspace, model, versions, training.OPTIONS)


def test_model_that_says_nothing_of_training_is_refused(model: Path) -> None:
    """Without definition and label nobody knows what to learn."""
    made = training.trained()
    _manifest(model, training=None)
    with pytest.raises(ManifestInvalid, match="cannot be trained"):
        train(made.workspace, model, made.versions, training.OPTIONS)


@pytest.mark.parametrize(
    ("answer", "said"),
    [("{}", "without metrics"), ('{"metrics": {}}', "model card")],
)
def test_program_must_answer_what_is_asked(model: Path, answer: str, said: str) -> None:
    """An answer without metrics, or without one the card names, is refused by name."""
    made = training.trained()
    _program(model, answer)
    with pytest.raises(InputError, match=said):
        train(made.workspace, model, made.versions, training.OPTIONS)


def test_program_must_write_a_graph(model: Path) -> None:
    """A program that trains nothing is refused."""
    made = training.trained()
    _program(model, '{"metrics": {}}')
    text = (model / "train.py").read_text(encoding="utf-8")
    (model / "train.py").write_text(text.replace("model.onnx", "other.onnx"), encoding="utf-8")
    with pytest.raises(InputError, match=r"model\.onnx"):
        train(made.workspace, model, made.versions, training.OPTIONS)


def test_nothing_is_left_behind(model: Path) -> None:
    """A failing training leaves no work in progress, and the published files as they are."""
    made = training.trained()
    (model / "train.py").write_text("raise SystemExit(3)", encoding="utf-8")
    before = sorted(model.rglob("*"))
    with pytest.raises(child.ChildFailed):
        train(made.workspace, model, made.versions, training.OPTIONS)
    assert list(made.workspace.tmp.iterdir()) == []
    assert sorted(model.rglob("*")) == before


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"rows": -1}, {"rows": True}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    """Counts are positive whole numbers."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        TrainOptions(**wrong)


def test_unknown_model_is_named_with_the_known_ones() -> None:
    """A misspelt model is answered with what there is."""
    with pytest.raises(InputError, match="flight-delay"):
        TrainOptions().folder(training.ROOT, "flight-delays")


def test_inputs_change_with_the_published_files(model: Path) -> None:
    """An edit of the model's program makes another training."""
    before = TrainOptions().inputs(model)
    _program(model, "{}")
    assert TrainOptions().inputs(model) != before


def test_card_fills_nested_values_and_tables() -> None:
    """Nested names are joined, lists become rows, and what is undefined says so."""
    values = {"a": {"b": 0.12345, "none": None}, "rows": [{"x": 1200, "y": "JFK"}], "yes": True}
    assert (
        card.fill("$a_b $a_none $yes\n$rows", values) == "0.123 not defined True\n| 1,200 | JFK |"
    )


def test_card_with_an_unknown_name_is_refused() -> None:
    """A card may not promise what was not measured."""
    with pytest.raises(CaissonError, match="recall"):
        card.fill("$recall", {"roc_auc": 0.7})


@pytest.mark.slow
def test_training_repeats_to_the_byte() -> None:
    """The same inputs give the same package source and reference, in another process."""
    made = training.trained()
    folder = TrainOptions().folder(training.ROOT, training.MODEL)
    again = train(made.workspace, folder, made.versions, training.OPTIONS)
    assert again.digest == made.report.digest
