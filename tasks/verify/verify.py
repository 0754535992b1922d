"""Verifies a built package: golden answers, equivalence with its float model, and a short load.

The measuring runs in a process of its own; what it finds is judged here.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.base.digest import Digest
from contracts.base.errors import ManifestInvalid
from contracts.base.report import Finding, Report, conclude
from contracts.features import reader
from contracts.objects import content
from model_packages.oci.reference import PackageRef
from model_packages.oci.unpack import PackageTree, open_package
from tasks import child, sample
from tasks.verify.options import VerifyOptions
from tasks.workspace import Workspace

STAGE = "verify"

_MEMORY = 4 * 2**30
_NO_REFERENCE = "the package has no float reference; equivalence was not checked"


def verify(
    workspace: Workspace,
    ref: PackageRef,
    reference: Digest | None,
    holdout_version: str,
    options: VerifyOptions,
) -> Report:
    """Verify one package.

    Args:
        workspace: Where the package and the bundle are.
        ref: Which package.
        reference: Digest of its float reference; None skips equivalence and says so.
        holdout_version: Feature version whose rows are asked.
        options: How much.

    Raises:
        CaissonError: If the package or the bundle cannot be opened, or the graph not be loaded.
    """
    layout = workspace.packages(ref.repository)
    package = open_package(layout, ref.digest, workspace.objects_path / "unpacked")
    found = _measure(workspace, package, reference, holdout_version, options)
    limit = options.latency_limit_ms or float(package.settings.timeout_ms)
    findings = [
        *_judge_golden(ref, found["golden"]),
        *_judge_equivalence(ref, found["equivalence"]),
        *_judge_load(ref, found["load"], limit),
    ]
    facts = {
        "package_digest": ref.digest,
        "reference_digest": reference,
        "holdout_version": holdout_version,
        "rows": options.rows,
        "golden": found["golden"],
        "equivalence": found["equivalence"] or {"skipped": _NO_REFERENCE},
        "latency_limit_ms": limit,
        "load_protocol": "open loop, Poisson arrivals, latency from the intended moment of sending",
    }
    measurements = {
        "load": found["load"],
        "cold_start_s": found["cold_start_s"],
        "isolation": found["isolation"],
        **found["usage"],
    }
    return conclude(STAGE, str(ref), findings, facts=facts, measurements=measurements)


def _measure(
    workspace: Workspace,
    package: PackageTree,
    reference: Digest | None,
    holdout_version: str,
    options: VerifyOptions,
) -> dict[str, Any]:
    training = package.manifest.training
    if training is None:
        raise ManifestInvalid(
            "package does not say which features it takes", location="manifest.json: training"
        )
    with _scratch(workspace) as scratch:
        bundle = reader.open_version(workspace.objects, training.definition, holdout_version)
        rows = sample.draw(
            bundle.table(),
            package.manifest.inputs,
            training.label,
            rows=options.rows,
            seed=options.seed,
        )
        sample.write(rows, scratch / "rows.npz")
        if reference is not None:
            content.fetch(workspace.objects, reference, scratch / "reference.pt2")
        return child.run(
            [sys.executable, "-m", "tasks.verify.measure"],
            {
                "package": str(package.folder),
                "sample": str(scratch / "rows.npz"),
                "reference": str(scratch / "reference.pt2") if reference else None,
                "options": options.to_dict(),
            },
            folder=scratch,
            limits=child.Limits(wall_s=options.wall_s, memory_bytes=_MEMORY),
            progress=workspace.progress,
            environment={"PYTHONPATH": str(workspace.root), "PYTHONDONTWRITEBYTECODE": "1"},
        )


@contextlib.contextmanager
def _scratch(workspace: Workspace) -> Iterator[Path]:
    """Yield an empty folder that a later sweep removes should we be killed."""
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".verify-", suffix=".part", dir=workspace.tmp) as name:
        yield Path(name)


def _judge_golden(ref: PackageRef, golden: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for case in golden:
        if case["problems"]:
            yield Finding(
                rule="verify.golden-mismatch",
                subject=ref.digest,
                location=f"test_cases/{case['case']}",
                severity="high",
                message=f"{case['case']}: {case['problems'][0]}",
                remedy="Restore the trained weights, or train again so that both belong together.",
                evidence={"problems": case["problems"]},
            )


def _judge_equivalence(
    ref: PackageRef, compared: list[Mapping[str, Any]] | None
) -> Iterator[Finding]:
    if compared is None:
        yield Finding(
            rule="verify.reference-missing",
            subject=ref.digest,
            location="reference.pt2",
            severity="low",
            message=_NO_REFERENCE,
            remedy="Train the model here; train.py keeps a reference.",
        )
        return
    for item in compared:
        for measure in ("relative_l2", "maximum"):
            distance = item[measure]
            if not distance["holds"]:
                yield Finding(
                    rule="verify.not-equivalent",
                    subject=ref.digest,
                    location=f"output {item['output']}: {measure}",
                    severity="high",
                    message=(
                        f"output {item['output']} differs from the float reference: expected "
                        f"{measure} of at most {distance['limit']}, got {distance['found']}"
                    ),
                    remedy="The graph or a weight was changed after training; export it again.",
                    evidence=distance,
                )


def _judge_load(
    ref: PackageRef, load: Mapping[str, Any] | None, limit_ms: float
) -> Iterator[Finding]:
    if load is None:
        return
    if load["errors"]:
        yield _load_finding(
            ref, "errors", f"expected every request answered, got {load['errors']} errors", load
        )
    if load["latency_ms"]["p99"] > limit_ms:
        worst = load["latency_ms"]["p99"]
        message = f"99th percentile: expected at most {limit_ms:g} ms, got {worst:g} ms"
        yield _load_finding(ref, "latency", message, load)


def _load_finding(ref: PackageRef, what: str, message: str, load: Mapping[str, Any]) -> Finding:
    return Finding(
        rule=f"verify.load-{what}",
        subject=ref.digest,
        location="load",
        severity="high",
        message=message,
        remedy="Make the graph smaller, raise threads or timeout_ms, or use an idle machine.",
        evidence={name: load[name] for name in ("requests", "offered_per_s", "errors")},
    )
