"""Many stages as one report, for flows that go through more than one subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base.errors import CaissonError
from contracts.base.report import Finding, Report, conclude
from flows.waves import Outcome

COULD_NOT = "could-not-check"


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
    findings += [could_not(item) for item in outcomes if item.error is not None]
    stages = [
        {"stage": item.stage, "subject": item.subject, "verdict": item.verdict}
        for item in sorted(outcomes, key=lambda item: (item.stage, item.subject))
    ]
    return conclude(
        stage, subject, findings, facts={**facts, "stages": stages}, measurements=measured(outcomes)
    )


def measured(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what varies from run to run: seconds, and whether nothing was done at all."""
    unchanged = all(
        item.report is not None and item.report.measurements.get("unchanged") for item in outcomes
    )
    return {"seconds": seconds(outcomes), **({"unchanged": True} if outcomes and unchanged else {})}


def seconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return how long stages took in all, wall time, in the order they first ended."""
    total: dict[str, float] = {}
    for item in outcomes:
        total[item.stage] = round(total.get(item.stage, 0.0) + item.seconds, 3)
    return total


def could_not(outcome: Outcome) -> Finding:
    """Return what an error means for a report: nothing was judged, and whose fault that is."""
    error = outcome.error or CaissonError("did not report")
    return Finding(
        rule=f"{outcome.stage}.{COULD_NOT}",
        subject=outcome.about or outcome.stage,
        location=error.location or outcome.about,
        severity="high",
        message=f"{outcome.stage} could not be judged: {error}",
        remedy=error.remedy or "Remove the cause and run it again.",
        evidence={**error.to_dict(), "exit_status": error.exit_status},
    )


def exit_status(report: Report) -> int:
    """Return what a report means to a caller: 0 passed, 1 refused, 2 could not be judged."""
    could_not_judge = [
        int(item.evidence.get("exit_status", 2))
        for item in report.findings
        if item.rule.endswith(COULD_NOT)
    ]
    return max([0 if report.verdict == "pass" else 1, *could_not_judge])
