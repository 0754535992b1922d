"""What a batch's own description, footers and counts say, held against its contract.

Nothing here reads data: the engine hands in what it found, and findings come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from contracts import schema
from contracts.base import clock
from contracts.base.report import Finding, Severity
from contracts.rules import Rule
from contracts.schema import Column
from contracts.terms import Contract

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Broken:
    """What the engine found for a rule that does not hold.

    Attributes:
        rule: The rule.
        count: Rows that break it; for ``row_count`` and ``null_share`` the rows or nulls found.
        samples: Some of the rows, with key and the rule's columns, personal data masked.
    """

    rule: Rule
    count: int
    samples: tuple[Mapping[str, Any], ...] = ()


def schema_findings(
    contract: Contract, columns: Sequence[Column], subject: str, file: str
) -> list[Finding]:
    """Compare the data's own schema with the promised one; no finding means equal hashes."""
    actual = schema.schema_hash(columns)
    if actual == contract.schema_hash:
        return []
    found = schema.differences(contract.schema, columns)
    missing = {name: kind for name, kind, other in found if not other}
    extra = {name: other for name, kind, other in found if not kind}
    findings = []
    for name, promised, other in found:
        rule, message = _change(name, promised, other, missing, extra)
        findings.append(
            Finding(
                rule=rule,
                subject=subject,
                location=name,
                severity="critical",
                message=message,
                remedy=f"Have {contract.contact} restore the column, or publish "
                f"{contract.name} {contract.version.bumped('major')} and move consumers to it.",
                evidence={
                    "file": file,
                    "expected_hash": contract.schema_hash,
                    "found_hash": actual,
                    "expected": promised,
                    "found": other,
                },
            )
        )
    return findings


def _change(
    name: str, promised: str, other: str, missing: Mapping[str, str], extra: Mapping[str, str]
) -> tuple[str, str]:
    if promised and other:
        return "data.column-type", f"column {name}: expected type {promised}, got {other}"
    if promised:
        twins = [column for column, kind in extra.items() if kind == promised]
        hint = f"; was it renamed to {twins[0]}?" if len(twins) == 1 else ""
        return "data.column-missing", f"column {name} ({promised}) is missing{hint}"
    twins = [column for column, kind in missing.items() if kind == other]
    hint = f"; is it {twins[0]} renamed?" if len(twins) == 1 else ""
    return "data.column-unexpected", f"column {name} ({other}) is not in the contract{hint}"


def freshness_findings(
    contract: Contract, newest: datetime | None, moment: datetime, subject: str
) -> list[Finding]:
    """Judge the age of the newest row at the batch's logical time."""
    sla = contract.freshness
    if sla is None:
        return []
    evidence = {
        "newest": clock.to_text(newest) if newest else None,
        "judged_as_of": clock.to_text(moment),
        "sla_ms": sla.sla_ms,
    }

    def finding(rule: str, message: str, remedy: str) -> list[Finding]:
        return [Finding(rule, subject, sla.column, "critical", message, remedy, evidence)]

    if newest is None:
        message = f"column {sla.column} has no value, so the age of the data is unknown"
        return finding("data.stale", message, f"Have {contract.contact} deliver the batch again.")
    age_ms = (moment - newest) // _MILLISECOND
    evidence["age_ms"] = age_ms
    if age_ms > sla.sla_ms:
        message = (
            f"newest {sla.column} is {spoken(age_ms)} old at {clock.to_text(moment)}; "
            f"expected at most {spoken(sla.sla_ms)}, newest is {clock.to_text(newest)}"
        )
        remedy = f"Ask {contract.contact} for the current batch; do not load this one."
        return finding("data.stale", message, remedy)
    if -age_ms > sla.ahead_ms:
        message = (
            f"newest {sla.column} {clock.to_text(newest)} lies {spoken(-age_ms)} after "
            f"{clock.to_text(moment)}; expected at most {spoken(sla.ahead_ms)}"
        )
        return finding("data.ahead", message, "Check the producer's clock and the logical time.")
    return []


def lineage_findings(contract: Contract, lineage: Mapping[str, Any], subject: str) -> list[Finding]:
    """Demand that a batch says which commit produced it."""
    commit = lineage.get("commit")
    if isinstance(commit, str) and commit.strip():
        return []
    return [
        Finding(
            rule="data.lineage-missing",
            subject=subject,
            location="batch.json: lineage.commit",
            severity="high",
            message="the batch does not say which commit produced it; "
            f"expected one that comes from {contract.lineage_anchor}",
            remedy="Let the producing job write lineage.commit into batch.json.",
            evidence={"lineage": sorted(map(str, lineage)), "anchor": contract.lineage_anchor},
        )
    ]


def time_findings(moment: datetime, as_of: datetime, subject: str) -> list[Finding]:
    """Refuse a batch that is delivered for a moment that has not come yet."""
    if moment <= as_of:
        return []
    return [
        Finding(
            rule="data.from-future",
            subject=subject,
            location="batch.json: logical_time",
            severity="critical",
            message=f"the batch is for {clock.to_text(moment)}; "
            f"expected at most {clock.to_text(as_of)}, the moment of this run",
            remedy="Run as of a later moment, or correct the batch's logical time.",
        )
    ]


def rule_finding(broken: Broken, rows: int, subject: str, contract: Contract) -> Finding:
    """Say which rule does not hold, for how many rows, and show some."""
    rule = broken.rule
    return Finding(
        rule=f"data.{rule.kind.replace('_', '-')}:{rule.id}",
        subject=subject,
        location=", ".join(rule.columns) or "rows",
        severity=rule.severity,
        message=_sentence(rule, broken.count, rows),
        remedy=f"Have {contract.contact} correct the rows, or change rule {rule.id} in a new "
        "version of the contract.",
        evidence={
            "count": broken.count,
            "rows": rows,
            "samples": [dict(sample) for sample in broken.samples],
        },
    )


def row_count_holds(rule: Rule, rows: int) -> bool:
    """Tell whether a number of rows keeps a ``row_count`` rule."""
    low = rule.minimum if isinstance(rule.minimum, int) else 0
    return rows >= low and (not isinstance(rule.maximum, int) or rows <= rule.maximum)


def null_share_holds(rule: Rule, nulls: int, rows: int) -> bool:
    """Tell whether a number of nulls keeps a ``null_share`` rule."""
    return nulls <= float(rule.maximum or 0) * rows


def regraded(finding: Finding, severity: Severity, why: str) -> Finding:
    """Return a finding with another severity that says why and what it was."""
    evidence = {**finding.evidence, "severity_by_rule": finding.severity, "regraded": why}
    return Finding(
        finding.rule,
        finding.subject,
        finding.location,
        severity,
        finding.message,
        finding.remedy,
        evidence,
    )


def spoken(milliseconds: int) -> str:
    """Return a length of time for people, such as ``30 d 20 h``."""
    seconds, rest = divmod(abs(milliseconds), 1000)
    if seconds == 0:
        return f"{rest} ms"
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def promise(rule: Rule) -> str:
    """Return what a rule promises, in a few words."""
    if rule.kind == "null_share":
        return f"at most {rule.maximum:.2%} null"
    return {
        "row_count": f"{_interval(rule)} rows",
        "not_null": "a value in every row",
        "unique": "each combination once" if len(rule.columns) > 1 else "each value once",
        "range": f"values {_interval(rule)}",
        "length": f"lengths {_interval(rule)}",
        "pattern": f"values like {rule.pattern}",
        "allowed": f"one of {_some(rule.values)}",
    }[rule.kind]


def _sentence(rule: Rule, count: int, rows: int) -> str:
    if rule.kind == "row_count":
        return f"the batch has {rows} rows; expected {promise(rule)}"
    subject = ", ".join(rule.columns)
    if rule.kind == "null_share":
        share = count / rows if rows else 0.0
        return f"{subject}: {share:.4%} of {rows} rows are null; expected {promise(rule)}"
    verb = "breaks" if count == 1 else "break"
    return f"{subject}: {count} of {rows} rows {verb} rule {rule.id}; expected {promise(rule)}"


def _interval(rule: Rule) -> str:
    if rule.minimum is None:
        return f"at most {rule.maximum}"
    if rule.maximum is None:
        return f"at least {rule.minimum}"
    return f"from {rule.minimum} to {rule.maximum}"


def _some(values: Sequence[Any]) -> str:
    shown = ", ".join(map(str, values[:8]))
    return f"{shown} and {len(values) - 8} more" if len(values) > 8 else shown
