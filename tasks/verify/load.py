"""A short open-loop load: requests come when they come, whether or not the last one is answered.

Latency counts from the intended moment of sending, so a stall is charged to every request that
had to wait for it. One server takes requests in order, as one slot of the runtime does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERCENTILES = (50.0, 95.0, 99.0)


@dataclass(frozen=True)
class LoadResult:
    """What callers would have seen.

    Attributes:
        requests: Requests sent.
        offered_per_s: Rate at which they were meant to be sent.
        answered_per_s: Answers a second from the first intended moment to the last answer.
        errors: Requests that were not answered.
        latency_ms: Percentiles by name, such as ``p99``.
        slowest_ms: The slowest answer.
        busy: Share of the time in which the model computed.
    """

    requests: int
    offered_per_s: float
    answered_per_s: float
    errors: int
    latency_ms: dict[str, float]
    slowest_ms: float
    busy: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


def arrivals(rate: float, seconds: float, seed: int) -> NDArray[np.float64]:
    """Return intended moments of a Poisson process, in seconds from the start; at least one."""
    generator = np.random.default_rng(seed)
    count = max(1, round(rate * seconds))
    return np.cumsum(generator.exponential(1.0 / rate, count))


def run(
    ask: Callable[[int], bool],
    moments: NDArray[np.float64],
    *,
    now: Callable[[], float],
    wait: Callable[[float], None],
) -> LoadResult:
    """Send requests at their moments and measure.

    Args:
        ask: Sends request number n and returns whether it was answered.
        moments: Intended moments, in seconds from the start.
        now: A clock that never runs backwards, in seconds.
        wait: Waits for so many seconds.
    """
    start = now()
    latency = np.empty(len(moments))
    errors, busy = 0, 0.0
    for index, moment in enumerate(moments):
        early = start + float(moment) - now()
        if early > 0:
            wait(early)
        begin = now()
        errors += not ask(index)
        end = now()
        busy += end - begin
        latency[index] = end - start - float(moment)
    total = now() - start
    spread = np.percentile(latency * 1000, PERCENTILES)
    return LoadResult(
        requests=len(moments),
        offered_per_s=round(len(moments) / float(moments[-1]), 1),
        answered_per_s=round((len(moments) - errors) / total, 1),
        errors=errors,
        latency_ms={
            f"p{level:g}": round(float(value), 4)
            for level, value in zip(PERCENTILES, spread, strict=True)
        },
        slowest_ms=round(float(latency.max()) * 1000, 4),
        busy=round(busy / total, 4),
    )
