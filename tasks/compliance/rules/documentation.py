"""Rule: a person can find out what the model is for and where it must not be used."""

from __future__ import annotations

from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held

_SHORTEST = 200


def check(subject: Subject) -> Outcome:
    """Demand purpose, limits, an author and at least one page that says something."""
    manifest = subject.manifest
    stated = {
        "description": manifest.description,
        "intended_use": manifest.intended_use,
        "limitations": manifest.limitations,
        "authors": manifest.authors,
    }
    problems = [
        (f"manifest.json: {name}", "is empty") for name, value in stated.items() if not value
    ]
    pages = [entry for entry in subject.files if entry.path.startswith("docs/")]
    pages = [entry for entry in pages if entry.path.endswith((".md", ".html", ".txt"))]
    if sum(entry.size for entry in pages) < _SHORTEST:
        problems.append(("docs", f"expected at least {_SHORTEST} characters of documentation"))
    return broken(problems) if problems else held(f"{len(pages)} pages in docs")


RULE = Rule(
    id="documentation",
    level="L1",
    title="Purpose, limits and use are documented",
    severity="medium",
    remedy="Fill description, intended_use, limitations and authors in manifest.json, and write"
    " docs/model_card.md.",
    check=check,
)
