"""Whether two engines compute the same function, with limits that rounding itself sets.

A fixed tolerance is either too tight for correct pairs or too loose for wrong ones. Here a run in
double precision says how much each engine errs by rounding alone; four times the larger error is
the limit for their distance (two follows from the triangle inequality, the rest is margin). What
the judged engine errs counts only up to eight times the reference's own error, or a wrong engine
would widen its own limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MARGIN = 4.0
_TRUST = 8.0
_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Distance:
    """How far apart two engines are by one measure.

    Attributes:
        found: Distance of the judged engine to the reference in single precision.
        limit: What rounding explains.
        reference_error: The reference in single precision, to double precision.
        engine_error: The judged engine, to the reference in double precision.
    """

    found: float
    limit: float
    reference_error: float
    engine_error: float

    @property
    def holds(self) -> bool:
        """Whether the distance is explained by rounding; never for NaN."""
        return self.found <= self.limit

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; a distance that is no number is text."""
        return {**{name: _plain(value) for name, value in vars(self).items()}, "holds": self.holds}


@dataclass(frozen=True)
class Equivalence:
    """The comparison of one output.

    Attributes:
        output: Its name.
        rows: Rows compared.
        relative_l2: Norm of the difference over the norm of the answer.
        maximum: Largest difference of one value.
    """

    output: str
    rows: int
    relative_l2: Distance
    maximum: Distance

    @property
    def holds(self) -> bool:
        """Whether both measures hold."""
        return self.relative_l2.holds and self.maximum.holds

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "output": self.output,
            "rows": self.rows,
            "relative_l2": self.relative_l2.to_dict(),
            "maximum": self.maximum.to_dict(),
            "holds": self.holds,
        }


def compare(
    engine: Mapping[str, Array], single: Mapping[str, Array], double: Mapping[str, Array]
) -> list[Equivalence]:
    """Compare an engine's outputs with the reference's, output by output.

    Args:
        engine: Outputs of the engine that is judged.
        single: Outputs of the reference in single precision.
        double: Outputs of the reference in double precision.

    Returns:
        One comparison for each output of the reference; an output that the engine does not have,
        or of another shape, is infinitely far away.
    """
    found = []
    for name in sorted(single):
        wanted = single[name]
        given = engine.get(name)
        if given is None or given.shape != wanted.shape:
            given = np.full(wanted.shape, np.inf)
        floor = _EPSILON * float(np.max(np.abs(double[name]), initial=0.0))
        found.append(
            Equivalence(
                output=name,
                rows=len(wanted),
                relative_l2=_distance(_relative, given, wanted, double[name], _EPSILON),
                maximum=_distance(_maximum, given, wanted, double[name], floor),
            )
        )
    return found


def _distance(measure: Any, engine: Array, single: Array, double: Array, floor: float) -> Distance:
    """Measure one distance; ``floor`` is what one rounding of the answer alone may cost."""
    reference = max(measure(single, double), floor / 2)
    own = measure(engine, double)
    # A wrong engine's own error must not widen the limit it is held to.
    counted = min(own, _TRUST * reference) if np.isfinite(own) else 0.0
    limit = MARGIN * max(reference, counted)
    return Distance(measure(engine, single), limit, measure(single, double), own)


def _relative(one: Array, other: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        difference = one.astype(np.float64) - other.astype(np.float64)
        scale = float(np.linalg.norm(other.astype(np.float64)))
        size = float(np.linalg.norm(difference))
    return size / scale if scale > 0 else size


def _maximum(one: Array, other: Array) -> float:
    with np.errstate(invalid="ignore"):
        difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return float(np.max(difference, initial=0.0))


def _plain(value: float) -> float | str:
    return float(f"{value:.6g}") if np.isfinite(value) else str(value)
