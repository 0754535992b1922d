"""Findings as SARIF 2.1.0, the format code hosts and editors read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.base import canonical
from contracts.base.report import Finding, Severity

_LEVELS: Mapping[Severity, str] = {
    "critical": "error",
    "high": "error",
    "medium": "error",
    "low": "warning",
    "info": "note",
}
# Ranks that code hosts sort by, on the scale of CVSS.
_RANKS: Mapping[Severity, str] = {
    "critical": "9.5",
    "high": "8.0",
    "medium": "5.5",
    "low": "2.5",
    "info": "0.0",
}


def sarif(findings: Iterable[Finding], *, version: str = "0") -> bytes:
    """Return findings as one SARIF run; equal findings give equal bytes.

    Args:
        findings: What was found, of any stages.
        version: Version of the rules, to print beside the tool's name.
    """
    ordered = list(findings)
    rules = sorted({finding.rule for finding in ordered})
    driver = {
        "name": "caisson",
        "version": version,
        "rules": [{"id": rule, "name": _name(rule)} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding, rules) for finding in ordered],
        "columnKind": "utf16CodeUnits",
    }
    return canonical.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def _result(finding: Finding, rules: list[str]) -> dict[str, Any]:
    text = f"{finding.message} {finding.remedy}".strip()
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [
            {
                "logicalLocations": [
                    {
                        "name": finding.location or finding.subject,
                        "fullyQualifiedName": f"{finding.subject}#{finding.location}",
                    }
                ]
            }
        ],
        "partialFingerprints": {"caisson/v0": finding.fingerprint},
        "properties": {
            "security-severity": _RANKS[finding.severity],
            "severity": finding.severity,
            "subject": finding.subject,
        },
    }


def _name(rule: str) -> str:
    return "".join(word.capitalize() for word in rule.replace(".", "-").split("-"))
