"""Rule: the licence of every data set the model was made from is known and allowed."""

from __future__ import annotations

from tasks.compliance import licences
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Judge each data set the manifest names."""
    sources = subject.manifest.data
    if not sources:
        return broken([("manifest.json: data", "names no data set")])
    problems = []
    for source in sources:
        judged = licences.classify(source.license, source.name, "data", subject.policy.licences)
        if not judged.passes:
            problems.append((f"manifest.json: data {source.name}", judged.reason))
    return broken(problems) if problems else held(f"{len(sources)} data sets")


RULE = Rule(
    id="data-licences",
    level="L2",
    title="Every data set's licence is classed, restricted ones are decided",
    severity="high",
    remedy="State each data set's SPDX licence in manifest.json, or record a decision.",
    check=check,
)
