"""Findings, reports and verdicts: what a check says, as plain data.

A failed check is a value here; being unable to check is an exception; not checking is a
``skip`` with its reason, which is never a pass where a pass is required.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import ReportInvalid

Severity = Literal["critical", "high", "medium", "low", "info"]
Verdict = Literal["pass", "fail", "skip"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_KINDS: Mapping[str, type] = {"str": str, "Mapping[str, Any]": Mapping}
_BLOCKING: frozenset[Severity] = frozenset({"critical", "high", "medium"})


@dataclass(frozen=True)
class Finding:
    """One thing a check found.

    Attributes:
        rule: Stable id of the rule, such as ``data.column-missing``.
        subject: What was judged: a batch, bundle or package, by name or digest.
        location: Where in it: a column, file, operator, layer.
        severity: How bad it is; ``low`` and ``info`` never block.
        message: One sentence with what was expected and what was found.
        remedy: What to do next.
        evidence: Plain data that proves it: counts, samples, digests.
    """

    rule: str
    subject: str
    location: str
    severity: Severity
    message: str
    remedy: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> bool:
        """Whether the finding alone makes a report fail."""
        return self.severity in _BLOCKING

    @property
    def fingerprint(self) -> Digest:
        """Identity over rebuilds: rule and location."""
        return digest.of_json([self.rule, self.location])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "evidence": dict(self.evidence)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Read plain data back.

        Raises:
            ReportInvalid: If a field is missing, unknown or of the wrong kind.
        """
        values = _fields(cls, data)
        if values["severity"] not in SEVERITIES:
            raise ReportInvalid("unknown severity", found=repr(values["severity"]))
        return cls(**values)


@dataclass(frozen=True)
class Report:
    """What a stage says about a subject.

    Attributes:
        stage: Name of the stage.
        subject: What was judged.
        verdict: pass, fail or skip.
        findings: What was found, worst first.
        facts: What was established; the same for the same input, so part of the digest.
        measurements: What varies from run to run: seconds, hosts; not part of the digest.
        reason: Why it was skipped; empty otherwise.
    """

    stage: str
    subject: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    measurements: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        """Keep the verdict honest.

        Raises:
            ReportInvalid: If a pass carries a blocking finding or a skip has no reason.
        """
        if self.verdict == "pass" and any(finding.blocks for finding in self.findings):
            raise ReportInvalid("a report with blocking findings cannot pass", location=self.stage)
        if self.verdict == "skip" and not self.reason:
            raise ReportInvalid("a skipped stage must say why", location=self.stage)

    @property
    def digest(self) -> Digest:
        """Identity of what was said, without measurements."""
        content = self.to_dict()
        del content["measurements"]
        return digest.of_json(content)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "format_version": 0,
            "stage": self.stage,
            "subject": self.subject,
            "verdict": self.verdict,
            "findings": [finding.to_dict() for finding in self.findings],
            "facts": dict(self.facts),
            "measurements": dict(self.measurements),
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """Read plain data back.

        Raises:
            ReportInvalid: If a field is missing, unknown or of the wrong kind.
        """
        content = dict(data) if isinstance(data, Mapping) else {}
        if content.pop("format_version", None) != 0:
            raise ReportInvalid("unknown report format", expected="format_version 0")
        values = _fields(cls, content)
        if values["verdict"] not in VERDICTS or not isinstance(values["findings"], list | tuple):
            raise ReportInvalid("malformed report", found=repr(values["verdict"]))
        values["findings"] = tuple(Finding.from_dict(item) for item in values["findings"])
        return cls(**values)


def conclude(
    stage: str,
    subject: str,
    findings: Iterable[Finding],
    *,
    facts: Mapping[str, Any] | None = None,
    measurements: Mapping[str, Any] | None = None,
) -> Report:
    """Make a report whose verdict follows from its findings."""
    ordered = tuple(sorted(findings, key=_order))
    verdict: Verdict = "fail" if any(finding.blocks for finding in ordered) else "pass"
    return Report(stage, subject, verdict, ordered, facts or {}, measurements or {})


def skipped(stage: str, subject: str, reason: str) -> Report:
    """Make a report that says why nothing was checked."""
    return Report(stage, subject, "skip", reason=reason)


def merge(first: Report, second: Report) -> Report:
    """Join two reports of one stage and subject into one.

    Findings are united without repeats; facts and measurements of either side are kept. The
    verdict is the worse one, where fail is worse than skip and skip worse than pass. Joining is
    associative, and commutative wherever both sides agree on the facts they share.

    Raises:
        ReportInvalid: If stage or subject differ, or the same fact has two values.
    """
    if (first.stage, first.subject) != (second.stage, second.subject):
        raise ReportInvalid("reports of different stages or subjects cannot be merged")
    for name in first.facts.keys() & second.facts.keys():
        if first.facts[name] != second.facts[name]:
            raise ReportInvalid(f"fact {name} has two values", location=first.stage)
    unique = {digest.of_json(item.to_dict()): item for item in first.findings + second.findings}
    worst = max(first.verdict, second.verdict, key=("pass", "skip", "fail").index)
    reasons = sorted({part for side in (first, second) for part in side.reason.split("; ") if part})
    return replace(
        first,
        verdict=worst,
        findings=tuple(sorted(unique.values(), key=_order)),
        facts={**first.facts, **second.facts},
        measurements={**first.measurements, **second.measurements},
        reason="; ".join(reasons),
    )


def _order(finding: Finding) -> tuple[int, str, str, str, Digest]:
    rank = SEVERITIES.index(finding.severity)
    content = digest.of_json(finding.to_dict())
    return rank, finding.rule, finding.location, finding.subject, content


def _fields(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    known = set(cls.__dataclass_fields__)
    if not isinstance(data, Mapping) or set(data) != known:
        raise ReportInvalid(
            f"fields of a {cls.__name__.lower()} do not match",
            expected=", ".join(sorted(known)),
            found=", ".join(sorted(map(str, data)))
            if isinstance(data, Mapping)
            else repr(data)[:80],
        )
    for name, value in data.items():
        kind = _KINDS.get(cls.__dataclass_fields__[name].type, object)
        if not isinstance(value, kind):
            raise ReportInvalid(f"{name} is of the wrong kind", found=repr(value)[:80])
    return dict(data)
