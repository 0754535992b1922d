"""Distances between two samples and how likely chance makes them as large.

The textbook formulas on numpy; only the tails of the distributions come from ``scipy.special``,
whose import is a tenth of the price of ``scipy.stats``. The tests compare with the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.base.errors import InputError


@dataclass(frozen=True)
class Distance:
    """How far two samples are apart.

    Attributes:
        size: From 0, equal, to 1: the KS distance, or Cramer's V.
        p_value: How likely two samples of one distribution are as far apart or farther.
    """

    size: float
    p_value: float


def numeric(reference: NDArray[np.float64], current: NDArray[np.float64]) -> Distance:
    """Return the two-sample Kolmogorov-Smirnov distance, its p-value by the limit distribution.

    Raises:
        InputError: If a sample is empty.
    """
    from scipy import special

    if not len(reference) or not len(current):
        raise InputError("a sample without values cannot be compared")
    first, second = np.sort(reference), np.sort(current)
    points = np.concatenate([first, second])
    below_first = np.searchsorted(first, points, side="right") / len(first)
    below_second = np.searchsorted(second, points, side="right") / len(second)
    size = float(np.max(np.abs(below_first - below_second)))
    weight = np.sqrt(len(first) * len(second) / (len(first) + len(second)))
    return Distance(size, float(special.kolmogorov(weight * size)))


def categorical(reference: Any, current: Any) -> Distance:
    """Return Cramer's V of two samples of categories, and the p-value of chi-square.

    Raises:
        InputError: If a sample is empty.
    """
    from scipy import special

    if not len(reference) or not len(current):
        raise InputError("a sample without values cannot be compared")
    names, codes = np.unique(np.concatenate([reference, current]), return_inverse=True)
    if len(names) == 1:
        return Distance(0.0, 1.0)
    counts = np.stack(
        [
            np.bincount(codes[: len(reference)], minlength=len(names)),
            np.bincount(codes[len(reference) :], minlength=len(names)),
        ]
    )
    total = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p_value = float(special.chdtrc(len(names) - 1, statistic))
    return Distance(float(np.sqrt(statistic / total)), p_value)
