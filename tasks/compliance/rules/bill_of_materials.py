"""Rule: a strict-valid bill of materials names the model, its data and all it runs on."""

from __future__ import annotations

from contracts.base import digest
from contracts.base.errors import InputError
from tasks.compliance import bom
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Build the bill and validate it; libraries that are not installed cannot be named."""
    problems = [
        (item.name, "is needed at run time but not installed, so its version is unknown")
        for item in subject.libraries
        if not item.version
    ]
    try:
        document = bom.build(subject)
    except InputError as err:
        problems.append(("bom.cdx.json", str(err)))
    if problems:
        return broken(problems)
    count = 1 + len(subject.libraries) + len(subject.manifest.data)
    return held(f"{count} components", digest=digest.of_bytes(document))


RULE = Rule(
    id="bill-of-materials",
    level="L1",
    title="A strict-valid bill of materials names model, data and libraries",
    severity="high",
    remedy="Install the pinned run-time libraries, and give every component a name.",
    check=check,
)
