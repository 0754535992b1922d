"""Assesses a built package: what it relies on, whether a label leaks, how steady it is.

The measuring runs in a process of its own; what it finds is judged here.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.base import digest
from contracts.base.errors import ManifestInvalid
from contracts.base.report import Finding, Report, conclude
from contracts.features import reader
from model_packages.oci.reference import PackageRef
from model_packages.oci.unpack import PackageTree, open_package
from tasks import child, reuse, sample
from tasks.trust import environment, opinion
from tasks.trust.options import TrustOptions
from tasks.workspace import Workspace

STAGE = "trust"
MEASURE = "trust-measure"
AREAS = ("tasks/trust", "tasks/sample.py", "tasks/child.py", "tasks/launcher.py")

_MEMORY = 4 * 2**30
_OPINION_LEVEL = 0.01  # one split only, so a stricter level than that of the counted splits


def assess(
    workspace: Workspace,
    ref: PackageRef,
    holdout_version: str,
    definition: str,
    options: TrustOptions,
) -> Report:
    """Assess one package.

    Args:
        workspace: Where the package, the bundle and the environments are.
        ref: Which package.
        holdout_version: Feature version whose rows are used.
        definition: Feature definition of that version.
        options: How much, and the limits.

    Raises:
        CaissonError: If the package or bundle cannot be opened, or the graph not be loaded.
    """
    layout = workspace.packages(ref.repository)
    package = open_package(layout, ref.digest, workspace.objects_path / "unpacked")
    measured = _measured(workspace, package, holdout_version, definition, options)
    found = measured.facts
    facts = {
        "package_digest": ref.digest,
        "definition": definition,
        "holdout_version": holdout_version,
        "limits": options.to_dict(),
        **{name: found[name] for name in ("rows", "importance", "leakage")},
        **{name: found[name] for name in ("sensitivity", "alarms", "second_opinion")},
    }
    return conclude(
        STAGE,
        str(ref),
        judge(ref.digest, facts, options),
        facts=facts,
        measurements=dict(measured.measurements),
    )


def judge(subject: str, found: Mapping[str, Any], options: TrustOptions) -> list[Finding]:
    """Return what is wrong with what was measured.

    Args:
        subject: Digest of the package.
        found: What was measured, as plain data.
        options: The limits.
    """
    return [
        *_judge_leakage(subject, found["leakage"], options),
        *_judge_steadiness(subject, found, options),
        *_judge_detector(subject, found["alarms"]),
        *_judge_opinion(subject, found["second_opinion"]),
    ]


def _measured(
    workspace: Workspace,
    package: PackageTree,
    holdout_version: str,
    definition: str,
    options: TrustOptions,
) -> Report:
    """Measure once for one graph: packages that differ in settings alone share what is found."""
    home = environment.locate(workspace.root, workspace.environments)
    graph = digest.of_file(package.folder / "model.onnx")
    inputs = {
        "graph": graph,
        "inputs": [spec.to_dict() for spec in package.manifest.inputs],
        "definition": definition,
        "holdout_version": holdout_version,
        "options": options.to_dict(),
        "environment": home.name if environment.python_of(home) else "missing",
    }

    def produce() -> Report:
        found = _measure(workspace, package, holdout_version, definition, options)
        spent = {"isolation": found.pop("isolation"), **found.pop("usage")}
        return conclude(MEASURE, graph, [], facts=found, measurements=spent)

    return reuse.once(workspace, MEASURE, inputs, produce, areas=AREAS)


def _measure(
    workspace: Workspace,
    package: PackageTree,
    holdout_version: str,
    definition: str,
    options: TrustOptions,
) -> dict[str, Any]:
    training = package.manifest.training
    if training is None:
        raise ManifestInvalid(
            "package does not say which features it takes", location="manifest.json: training"
        )
    with _scratch(workspace) as scratch:
        bundle = reader.open_version(workspace.objects, definition, holdout_version)
        rows = sample.draw(
            bundle.table(),
            package.manifest.inputs,
            training.label,
            rows=options.rows,
            seed=options.seed,
        )
        sample.write(rows, scratch / "rows.npz")
        halves = [str(scratch / f"half-{side}.npy") for side in (1, 2)]
        found = child.run(
            [sys.executable, "-m", "tasks.trust.measure"],
            {
                "model": str(package.folder / "model.onnx"),
                "sample": str(scratch / "rows.npz"),
                "halves": halves,
                "options": options.to_dict(),
            },
            folder=scratch,
            limits=child.Limits(wall_s=options.wall_s, memory_bytes=_MEMORY),
            progress=workspace.progress,
            environment={"PYTHONPATH": str(workspace.root), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        found["second_opinion"] = opinion.ask(
            environment.python_of(environment.locate(workspace.root, workspace.environments)),
            halves,
            found["alarms"],
            folder=scratch,
            licence_decision=options.licence_decision,
            level=_OPINION_LEVEL,
            progress=workspace.progress,
        )
    return found


@contextlib.contextmanager
def _scratch(workspace: Workspace) -> Iterator[Path]:
    """Yield an empty folder that a later sweep removes should we be killed."""
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".trust-", suffix=".part", dir=workspace.tmp) as name:
        yield Path(name)


def _judge_leakage(
    subject: str, suspects: list[Mapping[str, Any]], options: TrustOptions
) -> Iterator[Finding]:
    for suspect in suspects:
        if suspect["leaked"]:
            yield Finding(
                "trust.label-leak",
                subject,
                f"input {suspect['name']}",
                "critical",
                f"input {suspect['name']} knows the answer: expected less than {options.leak_auc} "
                f"ROC AUC alone with {options.leak_share:.0%} of the importance, got "
                f"{suspect['auc']:.3f} with {suspect['share']:.0%}",
                "Remove the input if it is known only after the moment of prediction, and name "
                "its column in known_later of the feature definition.",
                dict(suspect),
            )


def _judge_steadiness(
    subject: str, found: Mapping[str, Any], options: TrustOptions
) -> Iterator[Finding]:
    tau = found["importance"]["tau_median"]
    if tau < options.smallest_tau:
        yield Finding(
            "trust.importance-unstable",
            subject,
            "importance",
            "medium",
            f"order of importance depends on the rows: expected a median Kendall tau of at least "
            f"{options.smallest_tau}, got {tau:.3f}",
            "Use more rows, or a model that relies on fewer inputs.",
            {"tau_median": tau, "tau_minimum": found["importance"]["tau_minimum"]},
        )
    relative = found["sensitivity"]["relative"]
    if relative > options.largest_sensitivity:
        yield Finding(
            "trust.too-sensitive",
            subject,
            "sensitivity",
            "medium",
            f"answers move too much when numbers move by {options.radius} standard deviations: "
            f"expected a relative change of at most {options.largest_sensitivity}, got "
            f"{relative:.3f}",
            "Regularise the model, or round inputs to what their sensors can tell apart.",
            {"relative": relative, "slopes": found["sensitivity"]["slopes"]},
        )


def _judge_detector(subject: str, found: Mapping[str, Any]) -> Iterator[Finding]:
    if found["false_alarms"] > found["allowed"]:
        yield Finding(
            "trust.false-alarms",
            subject,
            "drift detector",
            "medium",
            f"drift detector alarms without drift: expected at most {found['allowed']} of "
            f"{found['splits']} splits, got {found['false_alarms']}",
            "Rows of the hold-out depend on each other; give the detector coarser rows.",
            {"false_alarms": found["false_alarms"], "splits": found["splits"]},
        )
    if found["missed"]:
        yield Finding(
            "trust.missed-shift",
            subject,
            "drift detector",
            "low",
            f"a shift by half a standard deviation is not seen in {', '.join(found['missed'])}",
            "Use more rows, if drift of these inputs must be seen.",
            {"missed": found["missed"]},
        )


def _judge_opinion(subject: str, found: Mapping[str, Any]) -> Iterator[Finding]:
    if found["status"] == "skipped":
        yield Finding(
            "trust.second-opinion-missing",
            subject,
            "alibi-detect",
            "info",
            f"no second opinion: {found['reason']}",
            "Record a licence decision in the target's policy and run make install, if wanted.",
            {},
        )
    elif not found["agrees"] or found["is_drift"]:
        said = "drift" if found["is_drift"] else f"p-values {found['largest_gap']} apart"
        yield Finding(
            "trust.second-opinion-differs",
            subject,
            "alibi-detect",
            "medium",
            f"expected alibi-detect to agree that halves of one month do not differ, got {said}",
            "Look at p_values of both detectors in the report.",
            {"largest_gap": found["largest_gap"], "is_drift": found["is_drift"]},
        )
