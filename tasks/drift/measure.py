"""Judges how far a bundle of new data is from the bundle a model was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from contracts.base.digest import Digest
from contracts.base.errors import InputError
from contracts.base.report import Finding, Report, Severity, conclude
from contracts.features import pointer, reader
from contracts.features.bundle import BundleColumn
from contracts.features.reader import Bundle
from tasks import reuse
from tasks.drift import distance
from tasks.workspace import Workspace

STAGE = "drift"
_AREAS = ("tasks/drift",)

_NOTABLE = 0.1  # distance from which a shift is worth a person's look
_ALPHA = 0.001  # over all features together
_UNSEEN = 0.1  # share of rows in categories that training never saw
_GONE = 0.5  # growth of the share of missing values that no season explains
_FEWER = 0.05  # growth worth a look


def measure(workspace: Workspace, definition: str, reference: str, current: str) -> Report:
    """Compare two bundles of one definition, feature by feature.

    Args:
        workspace: Where bundles are.
        definition: Name of the feature definition.
        reference: Feature version a model was trained on.
        current: Feature version of the new data.

    Raises:
        ObjectMissing: If a version is not published.
        DigestMismatch: If a bundle was damaged.
        InputError: If the two do not have the same features.
    """
    roots = [
        pointer.read(workspace.objects, definition, version).root
        for version in (reference, current)
    ]
    return reuse.once(
        workspace,
        STAGE,
        {"definition": definition, "reference": roots[0], "current": roots[1]},
        lambda: _measure(workspace, definition, reference, current, roots),
        areas=_AREAS,
    )


def _measure(
    workspace: Workspace, definition: str, reference: str, current: str, roots: list[Digest]
) -> Report:
    start = workspace.clock.monotonic()
    old, new = (
        reader.open_version(workspace.objects, definition, version, root=root)
        for version, root in zip((reference, current), roots, strict=True)
    )
    if old.manifest.definition_digest != new.manifest.definition_digest:
        raise InputError(
            "bundles of two definitions cannot be compared",
            expected=old.manifest.definition_digest,
            found=new.manifest.definition_digest,
            location=definition,
        )
    subject = f"{definition}@{current}"
    findings: list[Finding] = []
    rows = []
    for column in old.manifest.features:
        row = _compare(column, old, new)
        rows.append(row)
        findings += _judge(subject, row, _ALPHA / len(old.manifest.features))
    facts = {"reference": reference, "current": current, "features": rows}
    seconds = round(workspace.clock.monotonic() - start, 3)
    return conclude(STAGE, subject, findings, facts=facts, measurements={"seconds": seconds})


def _compare(column: BundleColumn, old: Bundle, new: Bundle) -> dict[str, Any]:
    first, missing_first = _values(old, column)
    second, missing_second = _values(new, column)
    row: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "missing_reference": _rounded(missing_first),
        "missing_current": _rounded(missing_second),
        "distance": None,
        "p_value": None,
        "unseen": 0.0,
    }
    if len(first) and len(second):
        compare = distance.numeric if column.kind == "numeric" else distance.categorical
        found = compare(first, second)
        row["distance"], row["p_value"] = _rounded(found.size), _rounded(found.p_value)
    if column.kind == "categorical" and len(second):
        row["unseen"] = _rounded(float(np.mean(~np.isin(second, np.unique(first)))))
    return row


def _values(bundle: Bundle, column: BundleColumn) -> tuple[Any, float]:
    """Return the values that are there, and the share that is missing."""
    values = bundle.table()[column.name].combine_chunks()
    missing = values.null_count / len(values) if len(values) else 0.0
    present = values.drop_null().to_numpy(zero_copy_only=False)
    return present.astype("f8" if column.kind == "numeric" else "U"), missing


def _judge(subject: str, row: dict[str, Any], alpha: float) -> Iterator[Finding]:
    grown = row["missing_current"] - row["missing_reference"]
    if grown >= _FEWER:
        yield _finding(
            "drift.missing",
            subject,
            row,
            "high" if grown >= _GONE else "low",
            f"{row['missing_current']:.1%} of the values are missing, "
            f"{row['missing_reference']:.1%} in training",
        )
    if row["unseen"] > 0:
        yield _finding(
            "drift.unseen-category",
            subject,
            row,
            "high" if row["unseen"] >= _UNSEEN else "info",
            f"{row['unseen']:.2%} of the rows hold a category that training never saw",
        )
    if row["distance"] is not None and row["distance"] >= _NOTABLE and row["p_value"] < alpha:
        rule = f"drift.{row['kind']}"
        message = f"the distribution moved by {row['distance']:.3f} against training"
        yield _finding(rule, subject, row, "low", message)


def _finding(
    rule: str, subject: str, row: dict[str, Any], severity: Severity, message: str
) -> Finding:
    remedy = (
        "Find out what changed at the source; train on newer data if it is meant to stay."
        if severity == "high"
        else "Watch the model's error on this feature's range."
    )
    return Finding(rule, subject, row["name"], severity, message, remedy, row)


def _rounded(value: float) -> float:
    """Return six digits: what is reported must not depend on the order of a sum."""
    return float(f"{value:.6g}")
