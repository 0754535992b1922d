"""Rule: constants kept beside the graph stay inside the package."""

from __future__ import annotations

from contracts.base.errors import InputError
from model_packages.graph import reading
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held


def check(subject: Subject) -> Outcome:
    """Follow every reference, also those in sub-graphs, functions and attributes."""
    try:
        names = reading.external_data(reading.load(subject.graph), subject.graph)
    except InputError as err:
        found = f" {err.found}" if err.found else ""
        return broken([("model.onnx", f"{err.message}{found}")])
    listed = {entry.path for entry in subject.files}
    problems = [(name, "is not among the package's files") for name in names if name not in listed]
    if problems:
        return broken(problems)
    return held(", ".join(names) or "no external data")


RULE = Rule(
    id="external-data",
    level="L1",
    title="External data stays inside the package",
    severity="critical",
    remedy="Save the model with its data in model.onnx.data beside the graph.",
    check=check,
)
