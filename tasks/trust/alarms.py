"""Whether the drift detector can be believed: quiet without drift, and loud when there is one.

The detector is the two-sample Kolmogorov-Smirnov test on every number, at a level corrected for
their count. It is also what alibi-detect's KSDrift computes, which gives a second opinion on the
first split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.sample import Sample
from tasks.trust.scores import Array, rounded

LEVEL = 0.05
_TERMS = 101
_SHIFT = 0.5  # standard deviations; a shift that everybody would call drift


@dataclass(frozen=True)
class Alarms:
    """How the detector behaved.

    Attributes:
        inputs: Names of the numbers it watches.
        level: Level of one test, after correction for their count.
        splits: Halvings of the rows without any drift.
        false_alarms: How many of them it called drift.
        allowed: Most false alarms that chance explains 99 times of 100.
        missed: Inputs whose shift by half a standard deviation it did not see.
        p_values: Of the first split, by input; compared with the second opinion.
    """

    inputs: tuple[str, ...]
    level: float
    splits: int
    false_alarms: int
    allowed: int
    missed: tuple[str, ...]
    p_values: Mapping[str, float]

    @property
    def calibrated(self) -> bool:
        """Whether it alarms no more often than its level says."""
        return self.false_alarms <= self.allowed

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "inputs": list(self.inputs),
            "level": rounded(self.level, 8),
            "splits": self.splits,
            "false_alarms": self.false_alarms,
            "allowed": self.allowed,
            "missed": list(self.missed),
            "p_values": {name: rounded(value) for name, value in self.p_values.items()},
            "shift": _SHIFT,
        }


def numbers(sample: Sample) -> dict[str, Array]:
    """Return the numeric columns with missing values set to the median."""
    found = {}
    for name, values in sample.inputs.items():
        if values.dtype != object and not np.isnan(values).all():
            found[name] = np.where(np.isnan(values), np.nanmedian(values), values)
    return found


def halves(rows: int, seed: int) -> tuple[Array, Array]:
    """Return two random halves of row numbers."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.sort(order[: rows // 2]), np.sort(order[rows // 2 :])


def watch(sample: Sample, *, splits: int, seed: int) -> Alarms:
    """Try the detector on halves without drift, and on a half that was shifted."""
    columns = numbers(sample)
    level = LEVEL / max(len(columns), 1)
    false_alarms = 0
    first: dict[str, float] = {}
    for split in range(splits):
        one, other = halves(len(sample), seed + split)
        found = {name: p_value(values[one], values[other]) for name, values in columns.items()}
        first = first or found
        false_alarms += any(value < level for value in found.values())
    one, other = halves(len(sample), seed)
    missed = [
        name
        for name, values in columns.items()
        if p_value(values[one], values[other] + _SHIFT * values.std()) >= level and values.std() > 0
    ]
    return Alarms(
        tuple(columns), level, splits, false_alarms, binomial_bound(splits, LEVEL), tuple(missed),
        first,
    )  # fmt: skip


def p_value(one: Array, other: Array) -> float:
    """Return the two-sided Kolmogorov-Smirnov p-value, by Kolmogorov's limit with Stephens' term.

    With ties it is too large, never too small, so the detector errs to silence.
    """
    points = np.concatenate([one, other])
    first = np.searchsorted(np.sort(one), points, "right") / len(one)
    second = np.searchsorted(np.sort(other), points, "right") / len(other)
    distance = float(np.abs(first - second).max())
    size = float(np.sqrt(len(one) * len(other) / (len(one) + len(other))))
    scaled = (size + 0.12 + 0.11 / size) * distance
    if scaled < 0.2:
        return 1.0
    terms = np.arange(1, _TERMS)
    series = 2 * np.sum((-1.0) ** (terms - 1) * np.exp(-2 * (terms * scaled) ** 2))
    return float(np.clip(series, np.finfo(float).tiny, 1.0))


def binomial_bound(trials: int, chance: float, confidence: float = 0.99) -> int:
    """Return the most successes that chance explains with the given confidence."""
    term, total, count = (1 - chance) ** trials, 0.0, 0
    while True:
        total += term
        if total >= confidence or count >= trials:
            return count
        term *= (trials - count) / (count + 1) * chance / (1 - chance)
        count += 1
