"""Where the demo's time went: into each stage, and into the engines around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Written for MLflow's sake: what these stages take is the engines' share.
BOOKKEEPING = ("lineage", "reconcile")

Interval = tuple[str, float, float]


def by_stage(worked: Iterable[Interval]) -> dict[str, float]:
    """Return the seconds of each stage; subjects judged side by side each count in full."""
    total: dict[str, float] = {}
    for name, start, end in worked:
        total[name] = total.get(name, 0.0) + end - start
    return {name: round(seconds, 3) for name, seconds in sorted(total.items())}


def engines(worked: Sequence[Interval], *, flows: float, server: float) -> float:
    """Return the seconds that Prefect and MLflow cost.

    All time inside flows in which no stage worked counts, also the little that is ours, such as
    writing pages. So it is an upper bound.

    Args:
        worked: When which stage worked, as ``tasks/engine.py`` noted it.
        flows: Wall time of all flows, one after the other.
        server: Wall time until the Prefect server answered, and until it had everything.
    """
    stages = [(start, end) for name, start, end in worked if name not in BOOKKEEPING]
    return round(server + flows - _covered(stages), 3)


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the time covered by at least one interval."""
    total = 0.0
    until = float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
