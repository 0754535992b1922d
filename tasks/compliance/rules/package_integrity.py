"""Rule: the files are exactly those the package's digest promises."""

from __future__ import annotations

from model_packages.format import inventory, layout
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Hash every file again, compare the set digest, and look for what does not belong."""
    _, findings = layout.examine(subject.folder)
    problems = [(item.location, item.message) for item in findings if item.rule != "package.pickle"]
    found = inventory.set_digest(subject.files)
    if found != subject.package.set_digest:
        promised = subject.package.set_digest
        problems.append(("set digest", f"expected {promised}, got {found}"))
    size = sum(entry.size for entry in subject.files)
    if problems:
        return broken(problems)
    return held(f"{len(subject.files)} files, {size} bytes", set_digest=found)


RULE = Rule(
    id="package-integrity",
    level="L1",
    title="Every file has its promised digest and none is undeclared",
    severity="critical",
    remedy="Fetch the package again by digest, or build it again from its source.",
    check=check,
)
