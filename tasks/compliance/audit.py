"""The audit: every rule and requirement, the level achieved, and three documents that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base import canonical, digest
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from contracts.base.report import Finding, Report, Severity, conclude
from model_packages.format.levels import MEANING, Level, meets, up_to
from tasks.compliance import bom, requirements
from tasks.compliance.closure import Library
from tasks.compliance.requirements import Outcome, Requirement, Standing
from tasks.compliance.rule import Rule, Subject
from tasks.pages.sarif import sarif

STAGE = "compliance"
FORMAT_VERSION = 0


@dataclass(frozen=True)
class Audit:
    """Everything an audit makes.

    Attributes:
        report: The stage's report; its facts name the documents by digest.
        documents: Bytes by file name: audit.json, audit.sarif, and bom.cdx.json if one could be
            made.
    """

    report: Report
    documents: Mapping[str, bytes]


def audit(
    subject: Subject,
    rules: Sequence[Rule],
    table: Sequence[Requirement],
    tools: Sequence[Library] = (),
) -> Audit:
    """Judge a package.

    Args:
        subject: The package and what it is judged by.
        rules: The rules of this area.
        table: The level table.
        tools: The pipeline's own tools: listed, never judged.
    """
    outcomes = {rule.id: _checked(rule, subject) for rule in rules}
    standings = requirements.stand(table, outcomes, subject.reports)
    achieved = requirements.achieved(standings)
    findings = [
        *_findings(subject, rules, outcomes),
        *_level_findings(subject, standings, achieved),
    ]
    following = _next(achieved)
    facts: dict[str, Any] = {
        "claimed_level": subject.manifest.compliance_level,
        "achieved_level": achieved,
        "policy": subject.policy.digest,
        "next_level": following,
        "lacking": _lacking(standings, following),
        "requirements": [item.to_dict() for item in standings],
        "libraries": [item.to_dict() for item in subject.libraries],
        "tools": [item.to_dict() for item in tools],
    }
    documents = _documents(subject, findings, facts)
    facts["documents"] = {name: digest.of_bytes(data) for name, data in sorted(documents.items())}
    return Audit(conclude(STAGE, str(subject.package), findings, facts=facts), documents)


def _checked(rule: Rule, subject: Subject) -> Outcome:
    """Run one rule; input it cannot read is a breach of it, with the reason."""
    try:
        return rule.check(subject)
    except InputError as err:
        return Outcome("fail", str(err), ((err.location or "package", err.message),))


def _findings(
    subject: Subject, rules: Sequence[Rule], outcomes: Mapping[str, Outcome]
) -> Iterator[Finding]:
    """Turn breaches into findings; above the levels in question they inform and do not block."""
    judged = {*up_to(subject.manifest.compliance_level), *up_to(subject.policy.level)}
    for rule in rules:
        outcome = outcomes[rule.id]
        severity: Severity = rule.severity if rule.level in judged else "low"
        for location, message in outcome.problems if outcome.status == "fail" else ():
            yield Finding(
                f"{STAGE}.{rule.id}",
                str(subject.package),
                location,
                severity,
                f"{location}: {message}.",
                rule.remedy,
                dict(outcome.evidence or {}),
            )


def _level_findings(
    subject: Subject, standings: Sequence[Standing], achieved: Level | None
) -> Iterator[Finding]:
    """Compare the level achieved with the claim, and with what the target demands."""
    claimed, demanded = subject.manifest.compliance_level, subject.policy.level
    for rule, level, who, remedy in (
        (
            "level-claim",
            claimed,
            "the manifest claims",
            "Meet what is listed, or claim the level that was achieved.",
        ),
        (
            "level-demand",
            demanded,
            f"the target {subject.policy.target} demands",
            "Meet what is listed, or choose another target.",
        ),
    ):
        if meets(achieved, level) or (rule == "level-demand" and meets(claimed, level)):
            continue  # what the claim includes is said once, with the claim
        missing = requirements.lacking(standings, level)
        names = "; ".join(f"{item.requirement.id} {item.requirement.title}" for item in missing)
        found = achieved or "no level"
        yield Finding(
            f"{STAGE}.{rule}",
            str(subject.package),
            level,
            "high",
            f"{who[0].upper()}{who[1:]} {level} ({MEANING[level]}), {found} is achieved; missing:"
            f" {names}.",
            remedy,
            {"missing": [item.requirement.id for item in missing]},
        )


def _next(achieved: Level | None) -> Level | None:
    if achieved is None:
        return "L1"
    above = {"L1": "L2", "L2": "L3"}
    return above.get(achieved)  # type: ignore[return-value] # the table holds levels only


def _lacking(standings: Sequence[Standing], level: Level | None) -> list[dict[str, str]]:
    if level is None:
        return []
    return [
        {
            "id": item.requirement.id,
            "level": item.requirement.level,
            "title": item.requirement.title,
            "status": item.status,
            "reason": item.reason,
            "remedy": item.requirement.remedy,
        }
        for item in requirements.lacking(standings, level)
    ]


def _documents(
    subject: Subject, findings: Sequence[Finding], facts: Mapping[str, Any]
) -> dict[str, bytes]:
    documents = {
        "audit.sarif": sarif(findings, version=str(FORMAT_VERSION)),
        "audit.json": canonical.dumps(
            {
                "format_version": FORMAT_VERSION,
                "package": subject.package.to_dict(),
                "model": f"{subject.manifest.name} {subject.manifest.version}",
                "target": subject.policy.target,
                **facts,
                "findings": [finding.to_dict() for finding in findings],
                "evidence": _evidence(subject.reports),
            }
        ),
    }
    try:
        documents["bom.cdx.json"] = bom.build(subject)
    except InputError:
        return documents  # the rule bill-of-materials already says why
    return documents


def _evidence(reports: Mapping[str, Report]) -> dict[str, Digest]:
    return {name: report.digest for name, report in sorted(reports.items())}
