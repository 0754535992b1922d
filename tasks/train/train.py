"""Runs a model's own ``train.py`` in a process of its own and assembles the package source.

The program sees copies: the published files, and the two bundles' rows. What it may write is one
empty folder; only the files a package source needs are taken from it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest, failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid, InputError, ManifestInvalid
from contracts.base.report import Finding, Report, conclude
from contracts.features import reader
from contracts.objects import content
from model_packages.format import layout, settings
from model_packages.format import manifest as manifests
from model_packages.format.manifest import Manifest, Training
from tasks import child
from tasks.train import card
from tasks.train.options import TrainOptions
from tasks.workspace import Workspace

STAGE = "train"

_GRAPH = "model.onnx"
_REFERENCE = "reference.pt2"
_CARD = "docs/model_card.md"
_THREADS = "1"
_LIMIT = 2**22


@dataclass(frozen=True)
class Versions:
    """The two bundles of one definition.

    Attributes:
        training: Feature version the model learns from.
        holdout: Feature version it is judged on.
    """

    training: str
    holdout: str


def train(workspace: Workspace, folder: Path, versions: Versions, options: TrainOptions) -> Report:
    """Train a published model and store its package source.

    Args:
        workspace: Where bundles and results are kept.
        folder: The published model.
        versions: What it learns from and is judged on.
        options: How.

    Returns:
        The report; ``facts`` name the source tree, the reference and what was measured.

    Raises:
        ManifestInvalid: If the manifest does not say how the model is trained.
        BundleInvalid: If a bundle does not hold what the manifest asks for.
        CaissonError: What the model's program reports, or that it ended badly.
    """
    manifest = manifests.load(folder / "manifest.json")
    training = _training(manifest, folder)
    settings.load(folder / layout.SETTINGS)  # before minutes are spent on a package that cannot be
    with _scratch(workspace) as scratch:
        source = scratch / "source"
        shutil.copytree(folder, source, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        answer = _run(workspace, scratch, manifest, versions, options)
        trained = replace(
            training, feature_version=versions.training, holdout_version=versions.holdout
        )
        _assemble(source, scratch / "output", replace(manifest, training=trained), answer)
        reference = _store_reference(workspace, scratch / "output")
        failpoint.hit("train.store.before")
        tree = content.put_tree(workspace.objects, source)
        failpoint.hit("train.store.after")
    findings = list(_judge(manifest, training, answer["metrics"])) if options.enforce_target else []
    facts = {
        "model": manifest.name,
        "model_version": manifest.version,
        "definition": training.definition,
        "feature_version": versions.training,
        "holdout_version": versions.holdout,
        "source_tree": tree,
        "reference_digest": reference,
        "metrics": answer["metrics"],
        "target_metric": dict(training.target_metric),
        "seed": training.seed,
        "environment": answer.get("environment", {}),
    }
    measurements = {"isolation": answer["isolation"], **answer["usage"]}
    return conclude(STAGE, manifest.name, findings, facts=facts, measurements=measurements)


def exists(workspace: Workspace, report: Report) -> bool:
    """Return whether everything a recorded report names is still stored."""
    named = [report.facts["reference_digest"], report.facts["source_tree"]]
    present = all(content.has(workspace.objects, Digest(item)) for item in named if item)
    return present and all(
        content.has(workspace.objects, entry.sha256)
        for entry in content.read_tree(workspace.objects, Digest(report.facts["source_tree"]))
    )


def _training(manifest: Manifest, folder: Path) -> Training:
    training = manifest.training
    if training is None or not training.label or not (folder / "train.py").is_file():
        raise ManifestInvalid(
            "model cannot be trained here",
            expected="train.py, and training.definition and training.label in the manifest",
            found="no training" if training is None else "no label or no train.py",
            location=str(folder),
            remedy="Add them, or release the finished package.",
        )
    return training


@contextlib.contextmanager
def _scratch(workspace: Workspace) -> Iterator[Path]:
    """Yield an empty folder that a later sweep removes should we be killed."""
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".train-", suffix=".part", dir=workspace.tmp) as name:
        (Path(name) / "output").mkdir()
        yield Path(name)


def _run(
    workspace: Workspace,
    scratch: Path,
    manifest: Manifest,
    versions: Versions,
    options: TrainOptions,
) -> dict[str, Any]:
    training = manifest.training
    assert training is not None
    given = {"epochs": options.epochs, "rows": options.rows}
    asked = {name: value for name, value in given.items() if value is not None}
    request = {
        "training": _rows(workspace, manifest, versions.training, scratch / "training"),
        "holdout": _rows(workspace, manifest, versions.holdout, scratch / "holdout"),
        "features": features(manifest),
        "label": training.label,
        "seed": training.seed,
        "cases": str(scratch / "source" / "test_cases"),
        "output": str(scratch / "output"),
        "options": {**training.options, **asked},
    }
    answer = child.run(
        [sys.executable, "-I", str(scratch / "source" / "train.py")],
        request,
        folder=scratch,
        limits=child.Limits(wall_s=options.wall_s, memory_bytes=options.memory_bytes),
        progress=workspace.progress,
        environment={"OMP_NUM_THREADS": _THREADS, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if not isinstance(answer.get("metrics"), Mapping):
        raise InputError("train.py answered without metrics", location=manifest.name)
    return answer


def features(manifest: Manifest) -> list[dict[str, str]]:
    """Return the model's inputs as features: their names, and numeric or categorical."""
    kinds = {True: "categorical", False: "numeric"}
    return [{"name": s.name, "kind": kinds[s.datatype == "BYTES"]} for s in manifest.inputs]


def _rows(workspace: Workspace, manifest: Manifest, version: str, target: Path) -> str:
    """Open a bundle, check that it holds the model's columns, and return its Parquet file."""
    assert manifest.training is not None
    name = manifest.training.definition
    bundle = reader.open_version(workspace.objects, name, version, target=target)
    wanted = {spec.name for spec in manifest.inputs} | {manifest.training.label}
    missing = sorted(wanted - {column.name for column in bundle.manifest.columns})
    if missing:
        raise BundleInvalid(
            "bundle does not hold what the model takes",
            expected=f"columns {', '.join(sorted(wanted))}",
            found=f"no {', '.join(missing)}",
            location=f"{name} {version}",
            remedy="Correct the manifest's inputs, or the feature definition.",
        )
    return str(bundle.parquet)


def _assemble(source: Path, output: Path, manifest: Manifest, answer: Mapping[str, Any]) -> None:
    """Put what was produced beside the published files."""
    if not (output / _GRAPH).is_file():
        raise InputError(f"train.py wrote no {_GRAPH}", location=manifest.name)
    files.write_atomic(source / _GRAPH, (output / _GRAPH).read_bytes())
    for path in sorted((output / "test_cases").glob("*.json")):
        files.write_atomic(source / "test_cases" / path.name, path.read_bytes())
    metrics = answer["metrics"]
    files.write_atomic(source / "docs" / "metrics.json", canonical.dumps(metrics) + b"\n")
    if (source / _CARD).is_file():
        assert manifest.training is not None
        trained = manifest.training.to_dict()
        text = files.read_bounded(source / _CARD, _LIMIT).decode("utf-8")
        values = {**metrics, "training": trained, "version": manifest.version}
        files.write_atomic(source / _CARD, card.fill(text, values, where=_CARD).encode())
    files.write_atomic(source / "manifest.json", manifest.dumps())
    _plain_modes(source)


def _plain_modes(source: Path) -> None:
    """Drop executable bits, which differ between checkouts and mean nothing here."""
    for folder, _, names in os.walk(source):
        for name in names:
            (Path(folder) / name).chmod(0o644)


def _store_reference(workspace: Workspace, output: Path) -> Digest | None:
    """Store the float module that verification compares with, if the model gives one."""
    path = output / _REFERENCE
    return content.put_file(workspace.objects, path) if path.is_file() else None


def _judge(manifest: Manifest, training: Training, metrics: Mapping[str, Any]) -> Iterator[Finding]:
    for name, smallest in sorted(training.target_metric.items()):
        found = metrics.get(name)
        if not isinstance(found, int | float) or found < smallest:
            yield Finding(
                rule="train.target-missed",
                subject=digest.short(digest.of_json(training.to_dict())),
                location=name,
                severity="high",
                message=f"{manifest.name}: expected {name} of at least {smallest}, got {found}",
                remedy="Look at the slices and the bundle's drift, or train longer.",
                evidence={"found": found, "smallest": smallest},
            )
