"""Which inputs a model relies on, and whether that answer is stable.

Each input's column is shuffled within the rows while the others stay; how much the answers move
is how much the model relies on it. All shuffles of one input go through the graph in batches. Rows
are then resampled to see whether the order of inputs would be another one for other rows of the
same kind: Kendall's tau, intervals, and neighbours that cannot be told apart are reported as ties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.sample import Sample
from tasks.trust.scores import Array, kendall_tau, resamples, roc_auc, rounded

Predict = Callable[[Mapping[str, Array]], Array]

_INTERVAL = (2.5, 97.5)
_FEW = 20  # resamples for what needs a sort each


@dataclass(frozen=True)
class Importance:
    """How much a model relies on one input.

    Attributes:
        name: The input.
        reliance: Mean absolute change of the answer when its column is shuffled.
        low: Lower end of the 95 % interval over resampled rows.
        high: Upper end.
        auc_drop: Loss of ranking quality when it is shuffled.
        auc_low: Lower end of its 95 % interval.
        auc_high: Upper end.
        share: Its part of all inputs' losses of ranking quality.
    """

    name: str
    reliance: float
    low: float
    high: float
    auc_drop: float
    auc_low: float
    auc_high: float
    share: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            key: value if isinstance(value, str) else rounded(value)
            for key, value in vars(self).items()
        }


@dataclass(frozen=True)
class Ranking:
    """All inputs, the most important first.

    Attributes:
        inputs: Their importance.
        tau_median: Median of Kendall's tau between the ranking and those of resampled rows.
        tau_minimum: The least of them.
        ties: Runs of neighbours whose order the rows do not settle.
        auc: Ranking quality of the model on the unshuffled rows.
        resamples: How many there were.
    """

    inputs: tuple[Importance, ...]
    tau_median: float
    tau_minimum: float
    ties: tuple[tuple[str, ...], ...]
    auc: float
    resamples: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "inputs": [item.to_dict() for item in self.inputs],
            "tau_median": rounded(self.tau_median),
            "tau_minimum": rounded(self.tau_minimum),
            "ties": [list(tie) for tie in self.ties],
            "auc": rounded(self.auc),
            "resamples": self.resamples,
        }


def rank(
    predict: Predict,
    sample: Sample,
    *,
    repeats: int,
    bootstraps: int,
    seed: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ranking:
    """Rank the inputs of a model.

    Args:
        predict: The model: columns to one answer a row.
        sample: Rows it was not trained on, with their label.
        repeats: Shuffles an input.
        bootstraps: Resamples of the rows.
        seed: Of shuffles and resamples.
        progress: Hears how many inputs are done.
    """
    names = list(sample.inputs)
    base = predict(sample.inputs)
    shuffled = np.empty((len(names), repeats, len(sample)))
    generator = np.random.default_rng(seed)
    for index, name in enumerate(names):
        for turn in range(repeats):
            mixed = sample.inputs[name][generator.permutation(len(sample))]
            shuffled[index, turn] = predict({**sample.inputs, name: mixed})
        progress(index + 1, len(names))
    moved = np.abs(shuffled - base).mean(axis=1)
    weights = resamples(len(sample), bootstraps, seed)
    varied = moved @ weights.T / len(sample)
    reliance = moved.mean(axis=1)
    taus = [kendall_tau(reliance, varied[:, column]) for column in range(bootstraps)]
    drops, drop_low, drop_high = _drops(sample.label, base, shuffled, seed)
    low, high = np.percentile(varied, _INTERVAL, axis=1)
    order = sorted(range(len(names)), key=lambda index: (-reliance[index], names[index]))
    gained = np.maximum(drops, 0.0)
    share = gained / gained.sum() if gained.sum() > 0 else gained
    columns = (reliance, low, high, drops, drop_low, drop_high, share)
    return Ranking(
        inputs=tuple(Importance(names[i], *(float(c[i]) for c in columns)) for i in order),
        tau_median=float(np.median(taus)),
        tau_minimum=float(np.min(taus)),
        ties=_ties([names[i] for i in order], varied[order]),
        auc=roc_auc(sample.label, base),
        resamples=bootstraps,
    )


def _drops(label: Array, base: Array, shuffled: Array, seed: int) -> tuple[Array, Array, Array]:
    """Return each input's loss of ranking quality with its interval."""

    def losses(rows: Array) -> Array:
        before = roc_auc(label[rows], base[rows])
        return np.array(
            [
                before - np.mean([roc_auc(label[rows], turn[rows]) for turn in turns])
                for turns in shuffled
            ]
        )

    rows = np.arange(len(label))
    generator = np.random.default_rng(seed)
    drawn = [losses(generator.integers(0, len(label), len(label))) for _ in range(_FEW)]
    low, high = np.percentile(np.array(drawn), _INTERVAL, axis=0)
    return losses(rows), low, high


def _ties(names: list[str], varied: Array) -> tuple[tuple[str, ...], ...]:
    """Return runs of neighbours whose difference is not above zero in nearly all resamples."""
    runs: list[list[str]] = [[names[0]]] if names else []
    for index in range(1, len(names)):
        difference = varied[index - 1] - varied[index]
        if np.percentile(difference, _INTERVAL[0]) <= 0:
            runs[-1].append(names[index])
        else:
            runs.append([names[index]])
    return tuple(tuple(run) for run in runs if len(run) > 1)
