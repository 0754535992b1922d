"""Rule: the contracts behind the training data class every column's personal data."""

from __future__ import annotations

from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Look up each contract the manifest names and read its classes."""
    problems, classed = [], 0
    for source in subject.manifest.data:
        if not source.contract:
            problems.append((f"manifest.json: data {source.name}", "names no contract"))
            continue
        columns = subject.columns.get(source.contract)
        if columns is None:
            problems.append((source.contract, "contract cannot be found"))
            continue
        classed += len(columns)
        problems += [
            (f"{source.contract}: {name}", "column has no personal-data class")
            for name, kind in sorted(columns.items())
            if not kind
        ]
    if not subject.manifest.data:
        problems.append(("manifest.json: data", "names no data set, so no contract is known"))
    if problems:
        return broken(problems)
    personal = sorted(
        f"{name}.{column}"
        for name, columns in subject.columns.items()
        for column, kind in (columns or {}).items()
        if kind not in ("", "none")
    )
    return held(f"{classed} columns classed, {len(personal)} personal", personal=personal)


RULE = Rule(
    id="personal-data",
    level="L1",
    title="The contracts class every column's personal data",
    severity="high",
    remedy="Name each data set's contract in manifest.json, and publish a contract that classes"
    ' every column, "none" included.',
    check=check,
)
