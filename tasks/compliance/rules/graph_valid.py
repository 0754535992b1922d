"""Rule: the graph passes the ONNX checker, on its path and not only on its parsed form."""

from __future__ import annotations

from contracts.base.errors import InputError
from model_packages.graph import reading
from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held

_NEWEST_IR = 13
_OLDEST_OPSET = 11


def check(subject: Subject) -> Outcome:
    """Run the checker and look at the versions of format and operators."""
    try:
        model = reading.load(subject.graph)
        reading.check(subject.graph)
    except InputError as err:
        return broken([("model.onnx", f"{err.message}: {err.found}".rstrip(": "))])
    opsets = {item.domain or "ai.onnx": int(item.version) for item in model.opset_import}
    problems = []
    if model.ir_version > _NEWEST_IR:
        problems.append(("model.onnx", f"format version {model.ir_version} is not supported"))
    if opsets.get("ai.onnx", _OLDEST_OPSET) < _OLDEST_OPSET:
        problems.append(("model.onnx", f"operator set {opsets['ai.onnx']} is below 11"))
    if problems:
        return broken(problems)
    words = ", ".join(f"{name} {version}" for name, version in sorted(opsets.items()))
    return held(f"format {model.ir_version}, operators {words}")


RULE = Rule(
    id="graph-valid",
    level="L1",
    title="The graph passes the ONNX checker on its path",
    severity="high",
    remedy="Export the model again and run onnx.checker.check_model on the file.",
    check=check,
)
