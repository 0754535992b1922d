"""Golden cases: run them through a session and compare within their tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contracts.base.errors import CaissonError
from model_packages.format.cases import Case, Tensor, Tolerance
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array, Session


@dataclass(frozen=True)
class Difference:
    """How far one output is from the golden one.

    Attributes:
        absolute: Largest absolute difference.
        relative: Largest difference relative to the golden value.
        message: What is wrong; empty if within tolerance.
    """

    absolute: float = 0.0
    relative: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One golden case, run.

    Attributes:
        case: Name of the case.
        passed: Whether every output is within tolerance.
        rows: Rows of the case.
        absolute: Largest absolute difference over all outputs.
        relative: Largest relative difference over all outputs.
        message: What is wrong; empty if it passed.
    """

    case: str
    passed: bool
    rows: int
    absolute: float = 0.0
    relative: float = 0.0
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


def run(session: Session, cases: Sequence[Case]) -> list[CaseResult]:
    """Run cases, one at a time, and compare every output."""
    return [_run_case(session, case) for case in cases]


def arrays(specs: Sequence[TensorSpec], given: Sequence[Tensor]) -> dict[str, Array]:
    """Return the tensors of a case as arrays of the declared types.

    Raises:
        RequestInvalid: If a value does not fit its type.
    """
    by_name = {tensor.name: tensor for tensor in given}
    return {
        spec.name: tensors.from_json(spec, by_name[spec.name].shape, list(by_name[spec.name].data))
        for spec in specs
    }


def compare(found: Array, expected: Array, tolerance: Tolerance) -> Difference:
    """Compare one output with the golden one; NaN equals NaN, text must be identical."""
    if found.shape != expected.shape:
        return Difference(message=f"expected shape {list(expected.shape)}, got {list(found.shape)}")
    if expected.dtype.kind != "f":
        same = bool(np.array_equal(found, expected))
        return Difference(message="" if same else "values differ")
    left, right = found.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return Difference(message="NaN where a number is expected, or the other way round")
    return _distance(left, right, tolerance)


def _distance(left: Array, right: Array, tolerance: Tolerance) -> Difference:
    compared = ~(np.isnan(right) | (left == right))
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.abs(left[compared] - right[compared])
        scale = np.abs(right[compared])
        absolute = float(difference.max(initial=0.0))
        relative = float((difference / scale).max(initial=0.0))
        within = difference <= tolerance.absolute + tolerance.relative * scale
    if within.all():
        return Difference(absolute, relative)
    text = (
        f"differs by {absolute:.3g} absolute, {relative:.3g} relative; "
        f"allowed are {tolerance.absolute:.3g} + {tolerance.relative:.3g} x golden value"
    )
    return Difference(absolute, relative, text)


def _run_case(session: Session, case: Case) -> CaseResult:
    try:
        found = session.run(arrays(session.inputs, case.inputs))
        expected = arrays([_lenient(spec) for spec in session.outputs], case.outputs)
    except CaissonError as err:
        return CaseResult(case.name, False, case.rows, message=str(err))
    problems = []
    absolute = relative = 0.0
    for spec, array in zip(session.outputs, found, strict=True):
        difference = compare(array, expected[spec.name], case.tolerance)
        absolute = max(absolute, difference.absolute)
        relative = max(relative, difference.relative)
        if difference.message:
            problems.append(f"output {spec.name}: {difference.message}")
    return CaseResult(case.name, not problems, case.rows, absolute, relative, "; ".join(problems))


def _lenient(spec: TensorSpec) -> TensorSpec:
    """Let a golden answer hold missing values, which its own comparison judges."""
    return TensorSpec(spec.name, spec.datatype, spec.shape, nullable=True)
