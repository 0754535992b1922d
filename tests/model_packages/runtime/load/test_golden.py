"""Golden answers are compared as numbers, text and shapes should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from model_packages.format.cases import Case, Tensor, Tolerance
from model_packages.runtime.backends.fake import FakeSession
from model_packages.runtime.load import golden

_NAN = float("nan")
_INF = float("inf")


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "message"),
    [
        ([1.0], [1.0], Tolerance(), ""),
        ([1.1], [1.0], Tolerance(absolute=0.2), ""),
        ([1.1], [1.0], Tolerance(relative=0.2), ""),
        ([1.1], [1.0], Tolerance(), "differs by 0.1"),
        ([0.1], [0.0], Tolerance(relative=9.0), "differs"),
        ([_NAN], [_NAN], Tolerance(), ""),
        ([_NAN], [1.0], Tolerance(absolute=9.0), "NaN"),
        ([_INF], [_INF], Tolerance(), ""),
        ([_INF], [1.0], Tolerance(absolute=9.0), "differs"),
        ([1.0, 2.0], [1.0], Tolerance(), "shape"),
        (["a"], ["a"], Tolerance(), ""),
        (["a"], ["b"], Tolerance(absolute=9.0), "values differ"),
        ([1], [2], Tolerance(absolute=9.0), "values differ"),
    ],
)
def test_answers_are_compared(
    found: list[Any], expected: list[Any], tolerance: Tolerance, message: str
) -> None:
    """NaN equals NaN, tolerances count for floats only, shapes must agree."""
    difference = golden.compare(_array(found), _array(expected), tolerance)
    assert message in difference.message
    assert bool(message) == bool(difference.message)


def _array(values: list[Any]) -> Any:
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def case(data: Any, answer: float = 1.0) -> Case:
    return Case(
        "valid_01",
        (Tensor("value", "FP32", (1,), data),),
        (Tensor("sum", "FP32", (1,), (answer,)),),
        Tolerance(),
    )


def test_differences_are_reported_as_figures() -> None:
    """So that a person sees how far off an answer is."""
    (result,) = golden.run(FakeSession(), [case((4.0,), 2.0)])
    assert not result.passed
    assert (result.absolute, result.relative) == (2.0, 1.0)
    assert "output sum: differs by 2 absolute, 1 relative" in result.message


def test_a_case_that_cannot_be_run_failed() -> None:
    """A value that does not fit is no reason to stop the other cases."""
    results = golden.run(FakeSession(), [case((None,)), case((1.0,))])
    assert [result.passed for result in results] == [False, True]
    assert "another type" in results[0].message
