"""Rule: operators come from the standard domains, also in functions and sub-graphs."""

from __future__ import annotations

from contracts.base.errors import InputError
from model_packages.graph import reading
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held

ALLOWED = frozenset({"ai.onnx", "ai.onnx.ml"})


def check(subject: Subject) -> Outcome:
    """Look at every operator; functions the file defines itself are judged by their bodies."""
    try:
        model = reading.load(subject.graph)
    except InputError as err:
        return broken([("model.onnx", err.message)])
    own = {f"{item.domain or 'ai.onnx'}::{item.name}" for item in model.functions}
    counts = reading.operators(model)
    problems = [
        ("model.onnx", f"{name} is a custom operator, used {count} times")
        for name, count in sorted(counts.items())
        if name.partition("::")[0] not in ALLOWED and name not in own
    ]
    if problems:
        return broken(problems)
    return held(f"{sum(counts.values())} operators of {len(counts)} kinds")


RULE = Rule(
    id="operator-domains",
    level="L2",
    title="Operators come from allowed domains, also in functions and sub-graphs",
    severity="high",
    remedy="Replace custom operators by standard ones; the runtime loads no operator libraries.",
    check=check,
)
