"""Histograms keep their promise on precision, and readings can be subtracted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError
from model_packages.runtime.serve.figures import Histogram, SlotStatistics

_MICROSECONDS = st.lists(st.integers(0, 2**40), min_size=1, max_size=50)


def filled(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record((value + 0.5) / 1e6)
    return histogram


@given(_MICROSECONDS, st.floats(0.01, 1.0))
def test_a_quantile_is_at_most_a_sixteenth_too_high(values: list[int], share: float) -> None:
    """And never too low."""
    ordered = sorted(values)
    exact = ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
    found = filled(values).quantile_us(share)
    assert exact <= found + 1
    assert found <= max(ordered) + 1
    assert any(value <= found + 1 and found <= value * 1.0625 + 1 for value in ordered)


@given(_MICROSECONDS, _MICROSECONDS)
def test_a_later_reading_minus_an_earlier_one_is_what_came_between(
    earlier: list[int], later: list[int]
) -> None:
    """A canary compares only what happened during it."""
    both = filled(earlier + later)
    between = both.since(filled(earlier))
    assert between.counts == filled(later).counts
    assert between.total_us == filled(later).total_us


@given(_MICROSECONDS)
def test_figures_read_back_equal(values: list[int]) -> None:
    """They travel as JSON."""
    statistics = SlotStatistics(answers=3, rows=5, batches=2, faults=1, latency=filled(values))
    statistics.errors["request-invalid"] += 2
    assert SlotStatistics.from_dict(statistics.to_dict()) == statistics
    empty = statistics.since(statistics)
    assert (empty.answers, empty.errors.total(), empty.latency.count) == (0, 0, 0)


def test_an_empty_histogram_has_no_quantile() -> None:
    """Nothing happened yet."""
    assert Histogram().to_dict()["p99_us"] == 0


def test_entries_fall_into_buckets() -> None:
    """For those who count in fixed bounds."""
    assert filled([1, 10, 100, 1000]).in_buckets([5, 50]) == (1, 1, 2)


@pytest.mark.parametrize("data", [{}, {"steps": {"a": 1}}, {"steps": 1}, {"steps": {}}])
def test_what_is_no_histogram_is_refused(data: object) -> None:
    """A target of another version may answer otherwise."""
    with pytest.raises(InputError, match="not a histogram"):
        Histogram.from_dict(data)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InputError):
        SlotStatistics.from_dict({"answers": 1})
