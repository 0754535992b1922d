"""Rule: no file carries a secret."""

from __future__ import annotations

import re

from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held

_PATTERNS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})"),
    "a GitLab token": re.compile(r"\bglpat-[A-Za-z0-9_-]{20}"),
    "a Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{20,}"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a JSON web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/:@]{3,}@"),
    "a password": re.compile(
        r"(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)\b[\"']?\s*[:=]\s*"
        r"[\"'][^\"'\s<>{}$]{8,}[\"']"
    ),
}


def check(subject: Subject) -> Outcome:
    """Search every text file for known shapes of secrets; the secret itself is not repeated."""
    problems, looked = [], 0
    for entry in subject.files:
        text = subject.text(entry.path)
        if text is None:
            continue
        looked += 1
        for name, pattern in _PATTERNS.items():
            match = pattern.search(text)
            if match:
                line = text.count("\n", 0, match.start()) + 1
                problems.append((f"{entry.path}:{line}", f"holds {name}"))
    return broken(problems) if problems else held(f"{looked} text files searched")


RULE = Rule(
    id="no-secrets",
    level="L1",
    title="No secrets in any file",
    severity="critical",
    remedy="Remove the secret, revoke it, and build the package again.",
    check=check,
)
