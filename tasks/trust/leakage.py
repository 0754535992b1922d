"""Whether one input already knows the answer.

A label that leaks into the inputs shows twice: the model hangs on that one input, and the input
alone ranks the rows nearly as well as the model. Neither alone is proof, so both are demanded,
unless the input alone is nearly perfect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.sample import Sample
from tasks.trust.importance import Ranking
from tasks.trust.scores import Array, roc_auc, rounded

_BINS = 20


@dataclass(frozen=True)
class LeakageLimits:
    """When an input counts as leaked.

    Attributes:
        share: Part of all losses of ranking quality that one input may have ...
        auc: ... if it alone ranks the rows at least this well.
        auc_alone: Ranking quality of one input that is too good whatever the model does with it.
    """

    share: float = 0.5
    auc: float = 0.8
    auc_alone: float = 0.95


@dataclass(frozen=True)
class Suspect:
    """What one input knows by itself.

    Attributes:
        name: The input.
        share: Its part of all losses of ranking quality.
        auc: Ranking quality of this input alone, cross-fitted.
        leaked: Whether it passes the limits.
    """

    name: str
    share: float
    auc: float
    leaked: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "share": rounded(self.share),
            "auc": rounded(self.auc),
            "leaked": self.leaked,
        }


def look(sample: Sample, ranking: Ranking, limits: LeakageLimits, seed: int) -> list[Suspect]:
    """Return what each input knows by itself, the best first."""
    shares = {item.name: item.share for item in ranking.inputs}
    found = []
    for name, values in sample.inputs.items():
        auc = alone(values, sample.label, seed)
        hangs = shares[name] >= limits.share and auc >= limits.auc
        found.append(Suspect(name, shares[name], auc, bool(hangs or auc >= limits.auc_alone)))
    return sorted(found, key=lambda item: (-item.auc, item.name))


def alone(values: Array, label: Array, seed: int) -> float:
    """Return the ranking quality of one column: rates learned on one half, judged on the other.

    Numbers are cut at their quantiles, so that a relation of any shape counts.
    """
    groups = _groups(values)
    side = np.random.default_rng(seed).permutation(len(label)) % 2
    score = np.empty(len(label))
    for half in (0, 1):
        learn, judge = side != half, side == half
        count = np.bincount(groups[learn], minlength=groups.max() + 1)
        late = np.bincount(groups[learn], label[learn], minlength=groups.max() + 1)
        prior = float(label[learn].mean()) if learn.any() else 0.5
        # Rare groups are pulled to the mean by two imagined rows, or noise would rank them.
        score[judge] = ((late + 2 * prior) / (count + 2))[groups[judge]]
    return float(np.mean([roc_auc(label[side == half], score[side == half]) for half in (0, 1)]))


def _groups(values: Array) -> Array:
    if values.dtype == object:
        return np.unique(values.astype(str), return_inverse=True)[1]
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values), dtype=int)
    edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, "right"))


def leaked(suspects: Iterable[Suspect]) -> list[Suspect]:
    """Return the inputs that pass the limits."""
    return [suspect for suspect in suspects if suspect.leaked]
