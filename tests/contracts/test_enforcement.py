"""What a verdict means for a batch under each policy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts import enforcement
from contracts.base.report import Report
from contracts.judge import judge
from tests.fakes import batches

ROWS = {"amount": {0: -1.0}}


def _verdict(root: Path, policy: str, broken: str) -> tuple[Any, Report]:
    contract = batches.make(on_violation=policy)
    content = batches.table(batches.rows(**(ROWS if broken in ("rows", "both") else {})))
    delivery: dict[str, Any] = {}
    if broken in ("stale", "both"):
        delivery["moment"] = batches.MOMENT + timedelta(days=9)
    if broken == "nulls":
        content = batches.table(batches.rows(amount=dict.fromkeys(range(4))))
    return contract, judge(contract, batches.deliver(root, content, **delivery))


@pytest.mark.parametrize(
    ("policy", "broken", "action", "alert"),
    [
        ("REJECT_AND_ALERT", "nothing", "accept", False),
        ("REJECT_AND_ALERT", "rows", "reject", True),
        ("REJECT_AND_ALERT", "stale", "reject", True),
        ("QUARANTINE_AND_ALERT", "nothing", "accept", False),
        ("QUARANTINE_AND_ALERT", "rows", "quarantine", True),
        ("QUARANTINE_AND_ALERT", "stale", "reject", True),
        ("QUARANTINE_AND_ALERT", "both", "reject", True),
        ("QUARANTINE_AND_ALERT", "nulls", "reject", True),
        ("WARN", "nothing", "accept", False),
        ("WARN", "rows", "warn", True),
        ("WARN", "stale", "warn", True),
    ],
)
def test_policy_decides(tmp_path: Path, policy: str, broken: str, action: str, alert: bool) -> None:
    """Only row-level faults are put in quarantine; the rest rejects, unless the policy warns."""
    decision = enforcement.decide(*_verdict(tmp_path, policy, broken))
    assert (decision.action, decision.alert) == (action, alert)
    assert decision.loads == (action != "reject")


def test_warned_report_passes_and_hides_nothing(tmp_path: Path) -> None:
    """Findings of an accepted batch are low, and remember how bad they were."""
    _, verdict = _verdict(tmp_path, "WARN", "rows")
    told = enforcement.warned(verdict)
    assert told.verdict == "pass"
    assert [finding.message for finding in told.findings] == [
        finding.message for finding in verdict.findings
    ]
    assert told.findings[0].evidence["severity_by_rule"] == "high"
    assert told.facts == verdict.facts
