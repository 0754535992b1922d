"""Many stages as one report, for flows that go through more than one subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base.report import Finding, Report, conclude
from flows.waves import Outcome


def conclude_all(
    stage: str, subject: str, outcomes: Sequence[Outcome], facts: Mapping[str, Any]
) -> Report:
    """Join what stages said about several subjects.

    Args:
        stage: Name of the flow.
        subject: What it was about.
        outcomes: How its stages ended.
        facts: What else the flow established.
    """
    reports = [item.report for item in outcomes if item.report is not None]
    findings = [finding for report in reports for finding in report.findings]
    findings += [_could_not(item) for item in outcomes if item.error is not None]
    measured: dict[str, Any] = {"seconds": _seconds(outcomes)}
    if reports and all(report.measurements.get("unchanged") for report in reports):
        measured["unchanged"] = True
    stages = [
        {
            "stage": item.stage,
            "subject": item.report.subject if item.report else "",
            "verdict": item.verdict,
        }
        for item in sorted(outcomes, key=_place)
    ]
    return conclude(
        stage, subject, findings, facts={**facts, "stages": stages}, measurements=measured
    )


def _place(outcome: Outcome) -> tuple[str, str]:
    return outcome.stage, outcome.report.subject if outcome.report else ""


def _seconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    total: dict[str, float] = {}
    for item in outcomes:
        total[item.stage] = round(total.get(item.stage, 0.0) + item.seconds, 3)
    return total


def _could_not(outcome: Outcome) -> Finding:
    error = outcome.error.to_dict() if outcome.error else {}
    return Finding(
        rule=f"{outcome.stage}.could-not-check",
        subject=outcome.stage,
        location=str(error.get("location", "")),
        severity="high",
        message=str(outcome.error),
        remedy=str(error.get("remedy", "")) or "Remove the cause and run it again.",
        evidence=error,
    )
