"""Small statistics that several checks share: ranking quality, rank agreement, row weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def roc_auc(label: Array, score: Array) -> float:
    """Return the share of (late, punctual) pairs in the right order, ties counting half.

    With only one kind of label there is no pair; then 0.5, which says nothing.
    """
    positive = int((label > 0).sum())
    negative = len(label) - positive
    if not positive or not negative:
        return 0.5
    _, inverse, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[inverse]
    above = rank[label > 0].sum() - positive * (positive + 1) / 2
    return float(above / (positive * negative))


def kendall_tau(one: Array, other: Array) -> float:
    """Return Kendall's tau-b of two lists of values; 1 for fewer than two values."""
    if len(one) < 2:
        return 1.0
    upper = np.triu_indices(len(one), 1)
    first = np.sign(one[:, None] - one[None, :])[upper]
    second = np.sign(other[:, None] - other[None, :])[upper]
    size = float(np.sqrt((first != 0).sum() * float((second != 0).sum())))
    return float((first * second).sum() / size) if size else 1.0


def resamples(rows: int, count: int, seed: int) -> Array:
    """Return bootstrap weights: how often each row is drawn, one line a resample."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(rows, np.full(rows, 1 / rows), size=count)


def rounded(value: float, digits: int = 6) -> float:
    """Return a plain number for a report."""
    return round(float(value), digits)
