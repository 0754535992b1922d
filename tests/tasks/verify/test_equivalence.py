"""Equivalence limits: rounding passes, anything else does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.verify import equivalence


def _answers(seed: int, rows: int = 512) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.01, 0.99, rows)


def _compare(engine: np.ndarray, double: np.ndarray) -> equivalence.Equivalence:
    single = double.astype(np.float32)
    (found,) = equivalence.compare({"p": engine}, {"p": single}, {"p": double})
    return found


@given(seed=st.integers(0, 10_000))
def test_rounding_holds(seed: int) -> None:
    """An engine that differs from double precision by its last bits is equivalent."""
    double = _answers(seed)
    signs = np.random.default_rng(seed + 1).choice([-1, 1], len(double))
    engine = (double * (1 + signs * 5e-8)).astype(np.float32)
    assert _compare(engine, double).holds


@given(seed=st.integers(0, 10_000), part=st.floats(1e-4, 10.0))
def test_a_wrong_engine_never_widens_its_own_limit(seed: int, part: float) -> None:
    """However far an engine is off, its error does not raise what it is allowed."""
    double = _answers(seed)
    engine = (double * (1 + part)).astype(np.float32)
    found = _compare(engine, double)
    assert not found.holds
    assert found.relative_l2.limit <= 4 * 8 * 2e-7


def test_one_wrong_value_is_seen() -> None:
    """A single value that is off shows in the largest difference."""
    double = _answers(3, rows=100_000)
    engine = double.astype(np.float32)
    engine[17] += 1e-4
    assert not _compare(engine, double).maximum.holds


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_far_away(wrong: float) -> None:
    """NaN and infinity never pass, and the report can still be written."""
    double = _answers(4)
    engine = double.astype(np.float32)
    engine[0] = wrong
    found = _compare(engine, double)
    assert not found.holds
    assert isinstance(found.to_dict()["maximum"]["found"], str)


def test_missing_output_is_far_away() -> None:
    """An engine that lacks an output, or gives another shape, is not equivalent."""
    double = _answers(5)
    single = {"p": double.astype(np.float32)}
    for engine in ({}, {"p": single["p"][:-1]}):
        (found,) = equivalence.compare(engine, single, {"p": double})
        assert not found.holds


def test_answers_of_zero_are_compared_absolutely() -> None:
    """A model that answers zero everywhere has no relative error to divide by."""
    zero = np.zeros(8)
    assert _compare(zero.astype(np.float32), zero).holds
    assert not _compare(np.full(8, 1e-3, dtype=np.float32), zero).holds
