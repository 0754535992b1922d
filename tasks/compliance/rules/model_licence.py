"""Rule: the model's own licence is stated, readable and allowed."""

from __future__ import annotations

from tasks.compliance import licences
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Parse the manifest's licence and ask the policy about its categories."""
    stated = subject.manifest.license.strip()
    if not stated:
        return broken([("manifest.json: license", "expected an SPDX expression, got nothing")])
    judged = licences.classify(stated, subject.manifest.name, "weights", subject.policy.licences)
    if not judged.passes:
        message = f"licence {stated!r} cannot be used: {judged.reason}"
        return broken([("manifest.json: license", message)])
    return held(f"{judged.expression}: {judged.reason}", categories=list(judged.categories))


RULE = Rule(
    id="model-licence",
    level="L1",
    title="The model's licence is stated and may be used",
    severity="high",
    remedy='State an SPDX expression such as "Apache-2.0" as license in manifest.json, or record'
    " a decision in the target's policy.",
    check=check,
)
