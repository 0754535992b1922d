"""Decides what a verdict means for a batch, by the contract's ``on_violation``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from contracts import checks, judge
from contracts.base import report
from contracts.base.report import Report
from contracts.terms import Contract

Action = Literal["accept", "reject", "quarantine", "warn"]


@dataclass(frozen=True)
class Decision:
    """What happens to a batch.

    Attributes:
        action: ``accept`` it whole, ``reject`` it, put its bad rows in ``quarantine``, or
            ``warn`` and accept it.
        alert: Whether somebody must be told.
        reason: Why, in words.
    """

    action: Action
    alert: bool
    reason: str

    @property
    def loads(self) -> bool:
        """Whether any of the batch may be loaded."""
        return self.action != "reject"


def decide(contract: Contract, verdict: Report) -> Decision:
    """Decide what happens to a batch.

    ``QUARANTINE_AND_ALERT`` applies where single rows are at fault. A schema, freshness, lineage
    or row-count violation concerns the whole batch, and rejects it under that policy too.

    Args:
        contract: The contract.
        verdict: What ``judge`` said.
    """
    if verdict.verdict == "pass":
        return Decision("accept", False, "the batch keeps the contract")
    blocking = [finding for finding in verdict.findings if finding.blocks]
    names = ", ".join(sorted({finding.rule for finding in blocking})[:5]) or verdict.reason
    if contract.on_violation == "WARN":
        return Decision("warn", True, f"accepted with a warning: {names}")
    if contract.on_violation == "QUARANTINE_AND_ALERT" and _only_rows(contract, verdict):
        return Decision("quarantine", True, f"rows that break {names} are put aside")
    return Decision("reject", True, f"rejected: {names}")


def warned(verdict: Report, why: str = "on_violation is WARN") -> Report:
    """Return the report of a batch that is accepted, whole or in part, in spite of violations.

    Findings keep what they say and become ``low``; their evidence keeps the severity they had,
    and why it was lowered.
    """
    findings = [
        checks.regraded(finding, "low", why) if finding.blocks else finding
        for finding in verdict.findings
    ]
    told = report.conclude(judge.STAGE, verdict.subject, findings, facts=verdict.facts)
    return replace(told, measurements=verdict.measurements)


def _only_rows(contract: Contract, verdict: Report) -> bool:
    by_row = {
        f"data.{rule.kind.replace('_', '-')}:{rule.id}"
        for rule in contract.all_rules
        if rule.by_row
    }
    return all(finding.rule in by_row for finding in verdict.findings if finding.blocks)
