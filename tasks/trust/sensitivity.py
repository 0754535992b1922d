"""How much answers move when numbers are measured a little differently.

Steps are parts of each input's own spread, because a step that is small for one is a leap for
another. The mean over draws is judged, never the largest of one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.sample import Sample
from tasks.trust.importance import Predict
from tasks.trust.scores import Array, rounded


@dataclass(frozen=True)
class Sensitivity:
    """How much the answers move.

    Attributes:
        radius: Largest step, in standard deviations of each input.
        draws: Random directions tried.
        relative: Mean of the answers' change over the answers' size.
        worst: The largest change of one answer in any draw; for information.
        slopes: Mean absolute change of the answer a standard deviation, by input.
    """

    radius: float
    draws: int
    relative: float
    worst: float
    slopes: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "radius": self.radius,
            "draws": self.draws,
            "relative": rounded(self.relative),
            "worst": rounded(self.worst),
            "slopes": {name: rounded(value) for name, value in self.slopes.items()},
        }


def measure(
    predict: Predict, sample: Sample, *, radius: float, draws: int, seed: int
) -> Sensitivity:
    """Move all numbers at once within ``radius``, and each alone by ``radius`` either way."""
    base = predict(sample.inputs)
    spread = {
        name: float(np.nanstd(values)) if not np.isnan(values).all() else 0.0
        for name, values in sample.inputs.items()
        if values.dtype != object
    }
    generator = np.random.default_rng(seed)
    size = max(float(np.linalg.norm(base)), 1e-12)
    changes: list[float] = []
    worst = 0.0
    for _ in range(draws):
        moved = dict(sample.inputs)
        for name, deviation in spread.items():
            step = generator.uniform(-radius, radius, len(sample)) * deviation
            moved[name] = (moved[name] + step).astype(np.float32)
        difference = predict(moved) - base
        changes.append(float(np.linalg.norm(difference)) / size)
        worst = max(worst, float(np.abs(difference).max()))
    slopes = {
        name: _slope(predict, sample, name, radius * deviation, radius)
        for name, deviation in spread.items()
    }
    return Sensitivity(radius, draws, float(np.mean(changes)) if changes else 0.0, worst, slopes)


def _slope(predict: Predict, sample: Sample, name: str, step: float, radius: float) -> float:
    if step == 0:
        return 0.0

    def answers(by: float) -> Array:
        moved = (sample.inputs[name] + by).astype(np.float32)
        return predict({**sample.inputs, name: moved})

    return float(np.abs(answers(step) - answers(-step)).mean() / (2 * radius))
