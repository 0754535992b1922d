"""Makes a page's document from the facts of the stages.

It reads, where they are present and well-formed, and leaves out what is not:

==========  ===================================================================================
stage       names read
==========  ===================================================================================
train       ``facts.metrics``: ``calibration.reliability`` [{predicted, observed, rows}],
            ``slices`` {group: [{value, roc_auc, rows}]}
trust       ``facts.importance``: ``inputs`` [{name, reliance, low, high}], ``ties``
hardware    ``facts.matrix`` [{device, check, status, passed, reason}], ``measurements.figures``
verify      ``facts.equivalence`` [{output, maximum: {found, limit}}], ``measurements.load``
compliance  ``facts``: claimed_level, achieved_level, lacking, requirements
==========  ===================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contracts.base.report import Report
from tasks.pages.document import (
    CalibrationPoint,
    ErrorBar,
    Interval,
    LatencySeries,
    MatrixCell,
    ReportDocument,
    RequirementRow,
    SliceRow,
)


def gather(document: ReportDocument) -> ReportDocument:
    """Fill the parts of a document that its reports know and its maker left empty.

    Args:
        document: Title, reports and whatever only the caller knows: lineage, links, identities,
            the deployment's latency.
    """
    known = {report.stage: report for report in document.reports}
    trust = _fact(known, "trust", "importance")
    metrics = _fact(known, "train", "metrics")
    audit = known["compliance"].facts if "compliance" in known else {}
    return replace(
        document,
        claimed_level=document.claimed_level or str(audit.get("claimed_level") or ""),
        achieved_level=document.achieved_level or _achieved(audit),
        lacking=document.lacking or tuple(_lacking(audit.get("lacking"))),
        requirements=document.requirements or tuple(_requirements(audit.get("requirements"))),
        importance=document.importance or tuple(_importance(trust)),
        errors=document.errors or tuple(_errors(_fact(known, "verify", "equivalence"))),
        latencies=tuple(_verified(known.get("verify"))) + document.latencies,
        matrix=document.matrix or tuple(_matrix(known.get("hardware"))),
        calibration=document.calibration
        or tuple(_calibration(_get(_get(metrics, "calibration"), "reliability"))),
        slices=document.slices or tuple(_slices(_get(metrics, "slices"))),
    )


def latency(name: str, percentiles: Mapping[str, Any], count: int, note: str = "") -> LatencySeries:
    """Return a series from percentiles named ``p50``, ``p99.9`` and so on."""
    points = []
    for key, value in percentiles.items():
        if key.startswith("p") and key[1:].replace(".", "", 1).isdigit() and _number(value):
            points.append((float(key[1:]), float(value)))
    return LatencySeries(name, tuple(sorted(points)), count, note)


def _fact(known: Mapping[str, Report], stage: str, name: str) -> Any:
    return known[stage].facts.get(name) if stage in known else None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _rows(value: Any, *names: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list that have every name."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if isinstance(item, Mapping) and all(name in item for name in names):
                yield item


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _achieved(audit: Mapping[str, Any]) -> str:
    if not audit:
        return ""
    return str(audit.get("achieved_level") or "none")


def _lacking(value: Any) -> Iterator[str]:
    for row in _rows(value, "id", "level", "title", "status", "reason"):
        yield f"{row['level']} {row['id']}: {row['title']} ({row['status']}: {row['reason']})"


def _requirements(value: Any) -> Iterator[RequirementRow]:
    for row in _rows(value, "id", "level", "title", "status", "reason"):
        yield RequirementRow(row["id"], row["level"], row["title"], row["status"], row["reason"])


def _importance(value: Any) -> Iterator[Interval]:
    ties = {}
    for tie in _get(value, "ties") or []:
        if isinstance(tie, Sequence) and not isinstance(tie, str):
            note = f"not told apart: {', '.join(str(name) for name in tie)}"
            ties.update({str(name): note for name in tie})
    named = ("name", "reliance", "low", "high")
    rows = [row for row in _rows(_get(value, "inputs"), *named) if all(map(_number, _ends(row)))]
    for row in sorted(rows, key=lambda row: -row["reliance"]):
        yield Interval(str(row["name"]), *_ends(row), ties.get(str(row["name"]), ""))


def _ends(row: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return row["reliance"], row["low"], row["high"]


def _errors(value: Any) -> Iterator[ErrorBar]:
    for row in _rows(value, "output", "maximum"):
        found, limit = _get(row["maximum"], "found"), _get(row["maximum"], "limit")
        if _number(found) and _number(limit) and limit > 0:
            yield ErrorBar(row["output"], float(found), float(limit))


def _verified(report: Report | None) -> Iterator[LatencySeries]:
    load = report.measurements.get("load") if report else None
    if isinstance(load, Mapping) and isinstance(load.get("latency_ms"), Mapping):
        rate = load.get("offered_per_s")
        note = f"offered at {rate:g} a second, open loop" if _number(rate) else "open loop"
        series = latency("verify", load["latency_ms"], int(load.get("requests") or 0), note)
        if series.percentiles:
            yield series


def _matrix(report: Report | None) -> Iterator[MatrixCell]:
    if report is None:
        return
    figures = report.measurements.get("figures")
    measured = figures if isinstance(figures, Mapping) else {}
    names = ("device", "check", "status", "passed", "reason")
    for row in _rows(report.facts.get("matrix"), *names):
        shown = measured.get(f"{row['device']} {row['check']}") or row["reason"]
        yield MatrixCell(row["device"], row["check"], row["status"], row["passed"], shown)


def _calibration(value: Any) -> Iterator[CalibrationPoint]:
    for row in _rows(value, "predicted", "observed", "rows"):
        if _number(row["predicted"]) and _number(row["observed"]) and row["rows"]:
            yield CalibrationPoint(row["predicted"], row["observed"], int(row["rows"]))


def _slices(value: Any) -> Iterator[SliceRow]:
    for group, rows in sorted(value.items()) if isinstance(value, Mapping) else ():
        for row in _rows(rows, "rows"):
            metric = next((name for name in ("roc_auc", "auc") if _number(row.get(name))), "")
            label = row.get("value", row.get("name", ""))
            if metric:
                score = float(row[metric])
                low, high = row.get("low", score), row.get("high", score)
                yield SliceRow(f"{group} = {label}", metric, score, low, high, int(row["rows"]))
