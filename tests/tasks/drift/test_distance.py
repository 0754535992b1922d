"""The distances equal those of scipy.stats, and obey the laws of distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from contracts.base.errors import InputError
from tasks.drift import distance

samples = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=60).map(np.array)
words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=60).map(np.array)


@settings(deadline=None, max_examples=40)
@given(samples, samples)
def test_numbers_are_compared_as_scipy_does(first: np.ndarray, second: np.ndarray) -> None:
    """The distance is scipy's Kolmogorov-Smirnov statistic, ties included."""
    found = distance.numeric(first, second)
    expected = stats.ks_2samp(first, second, method="exact")
    assert found.size == pytest.approx(expected.statistic, abs=1e-12)
    assert 0 <= found.p_value <= 1


def test_the_limit_distribution_is_reached() -> None:
    """For large samples the p-value is that of the exact test, to a part in a hundred."""
    chance = np.random.default_rng(1)
    first, second = chance.normal(size=4000), chance.normal(0.05, size=5000)
    found = distance.numeric(first, second)
    expected = stats.ks_2samp(first, second, method="exact")
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.05)


@settings(deadline=None, max_examples=40)
@given(words, words)
def test_categories_are_compared_as_scipy_does(first: np.ndarray, second: np.ndarray) -> None:
    """Cramer's V and the p-value are those of scipy's contingency table."""
    found = distance.categorical(first, second)
    names = sorted({*first, *second})
    if len(names) == 1:
        assert (found.size, found.p_value) == (0.0, 1.0)
        return
    table = np.array([[(sample == name).sum() for name in names] for sample in (first, second)])
    expected = stats.chi2_contingency(table, correction=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    size = stats.contingency.association(table, method="cramer")
    assert found.size == pytest.approx(size, rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(samples, samples)
def test_a_distance_is_symmetric_and_zero_for_equals(first: np.ndarray, second: np.ndarray) -> None:
    """Order does not matter, and a sample is at no distance from itself."""
    assert distance.numeric(first, second) == distance.numeric(second, first)
    assert distance.numeric(first, first) == distance.Distance(0.0, 1.0)
    assert distance.categorical(first, first).size == pytest.approx(0.0, abs=1e-9)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Of samples of one distribution about five in a hundred have a p-value under 0.05."""
    chance = np.random.default_rng(7)
    draws = [
        distance.numeric(chance.normal(size=2000), chance.normal(size=300)).p_value
        for _ in range(400)
    ]
    # 400 draws at 5 %: 20 expected, standard deviation 4.4; the limit is conservative.
    assert 5 <= sum(value < 0.05 for value in draws) <= 35


def test_nothing_cannot_be_compared() -> None:
    """A sample without values is an input error."""
    empty, full = np.array([]), np.array([1.0])
    for compare in (distance.numeric, distance.categorical):
        for pair in ((empty, full), (full, empty)):
            with pytest.raises(InputError, match="without values"):
                compare(*pair)
