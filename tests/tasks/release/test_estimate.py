"""Laws of the intervals and tests that compare two slots."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.release import estimate

counts = st.integers(1, 400).flatmap(
    lambda answers: st.tuples(st.integers(0, answers), st.just(answers))
)
levels = st.sampled_from([0.001, 0.01, 0.05, 0.2])


@given(counts, counts, levels)
@settings(max_examples=60, deadline=None)
def test_interval_holds_estimate(
    live: tuple[int, int], candidate: tuple[int, int], alpha: float
) -> None:
    """The interval of a difference is ordered, within -1 and 1, and holds the difference."""
    low, high = estimate.difference(live, candidate, alpha)
    found = candidate[0] / candidate[1] - live[0] / live[1]
    assert -1 <= low <= found + 1e-12
    assert found - 1e-12 <= high <= 1


@given(counts, counts, levels)
@settings(max_examples=60, deadline=None)
def test_interval_changes_sides(
    live: tuple[int, int], candidate: tuple[int, int], alpha: float
) -> None:
    """Exchanging the slots mirrors the interval."""
    low, high = estimate.difference(live, candidate, alpha)
    other_low, other_high = estimate.difference(candidate, live, alpha)
    assert low == pytest.approx(-other_high)
    assert high == pytest.approx(-other_low)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_exact_test_sums_to_one(answers: int, live_answers: int, errors: int) -> None:
    """Fisher's p value of the smallest possible count is one, and it falls with more errors."""
    total = min(errors, answers + live_answers)
    smallest = max(0, total - live_answers)
    values = [
        estimate.excess((total - count, live_answers), (count, answers))
        for count in range(smallest, min(total, answers) + 1)
    ]
    assert values[0] == pytest.approx(1)
    assert all(later < earlier + 1e-12 for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])
def test_exact_test_keeps_its_level(alpha: float, share: float) -> None:
    """Over all outcomes of two equal slots the exact test alarms at most at its level."""
    answers, live_answers = 40, 90

    def chance(errors: int, total: int) -> float:
        return math.comb(total, errors) * share**errors * (1 - share) ** (total - errors)

    alarms = sum(
        chance(errors, answers) * chance(live_errors, live_answers)
        for errors in range(answers + 1)
        for live_errors in range(live_answers + 1)
        if estimate.excess((live_errors, live_answers), (errors, answers)) <= alpha
    )
    assert alarms <= alpha + 1e-9


@given(st.integers(1, 3000), st.floats(0, 1), st.integers(-1, 3001))
@settings(max_examples=60, deadline=None)
def test_binomial_is_a_distribution(answers: int, share: float, limit: int) -> None:
    """The probability of few errors lies between 0 and 1 and rises with the limit."""
    value = estimate.binomial_below(limit, answers, share)
    assert 0 <= value <= estimate.binomial_below(limit + 1, answers, share) + 1e-9 <= 1 + 2e-9


def test_binomial_agrees_with_counting() -> None:
    """A case small enough to count by hand."""
    assert estimate.binomial_below(1, 3, 0.5) == pytest.approx(0.5)
    assert estimate.binomial_below(0, 3, 1.0) == 0
    assert estimate.binomial_below(0, 3, 0.0) == 1


def test_nothing_answered_says_nothing() -> None:
    """Without answers the interval is everything that is possible."""
    assert estimate.difference((0, 0), (1, 5), 0.01) == (-1.0, 1.0)
    assert estimate.wilson(0, 0, 0.01) == (0.0, 1.0)


@given(st.lists(st.integers(0, 50), min_size=6, max_size=6), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_latency_ratio_is_a_shift(counted: list[int], steps: int) -> None:
    """Moving every answer up by buckets of a factor two multiplies the latency by two each."""
    bounds = [2.0**step for step in range(12)]
    first = estimate.log_latency(bounds, [0, *counted, *[0] * 6])
    second = estimate.log_latency(bounds, [*[0] * (1 + steps), *counted, *[0] * (6 - steps)])
    if sum(counted) < 2:
        assert first is None
        assert second is None
    else:
        assert first is not None
        assert second is not None
        assert second.mean - first.mean == pytest.approx(steps * math.log(2))
        assert second.variance == pytest.approx(first.variance, abs=1e-9)


def test_latency_without_buckets_is_unknown() -> None:
    """A histogram without bounds is not read."""
    assert estimate.log_latency([], [5]) is None
