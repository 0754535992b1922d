"""Rule: the licence of everything the package runs on is known and allowed."""

from __future__ import annotations

from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Judge each library of the run-time closure."""
    if not subject.libraries:
        return Outcome("not-evaluated", "the run-time libraries are not known")
    problems = [
        (
            f"{item.name} {item.version}".strip(),
            f"{item.license.expression or 'licence unknown'}: {item.license.reason}",
        )
        for item in subject.libraries
        if not item.license.passes
    ]
    if problems:
        return broken(problems)
    decided = [item.name for item in subject.libraries if item.license.ruling == "decided"]
    note = f", {', '.join(decided)} by decision" if decided else ""
    return held(f"{len(subject.libraries)} libraries{note}")


RULE = Rule(
    id="dependency-licences",
    level="L2",
    title="Every run-time library's licence is classed, restricted ones are decided",
    severity="high",
    remedy="Record a decision about the library in the target's policy, or replace it.",
    check=check,
)
