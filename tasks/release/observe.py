"""Runs a canary: routes a share of requests to the candidate and watches until it is decided.

Who produces the requests is not its business: it is handed a function to call between looks, which
waits, or sends requests, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contracts.base.clock import Clock
from contracts.base.digest import Digest
from contracts.base.errors import ServerUnavailable
from contracts.base.progress import Progress, Reporter
from tasks.release.canary import Analysis, CanaryPlan, analyse, look_sizes, needed_answers
from tasks.release.targets.interface import SlotStatistics, Target

Pump = Callable[[], None]


@dataclass(frozen=True)
class Pair:
    """The two releases a canary compares."""

    live: Digest
    candidate: Digest


@dataclass(frozen=True)
class Patience:
    """How long a canary may take.

    Attributes:
        lease_s: Seconds after which the target returns to the live slot by itself.
        timeout_s: Seconds after which too few answers mean inconclusive.
    """

    lease_s: float
    timeout_s: float


def observe(
    target: Target,
    pair: Pair,
    plan: CanaryPlan,
    patience: Patience,
    *,
    pump: Pump,
    clock: Clock,
    progress: Reporter,
) -> Analysis:
    """Canary the candidate until the analysis decides or time is up.

    Args:
        target: Where both run.
        pair: Which two.
        plan: What must be shown.
        patience: Lease and time-out.
        pump: Called between looks; produces requests or waits for those of others.
        clock: For the time-out.
        progress: Hears of the answers so far.

    Returns:
        The last analysis.

    Raises:
        ServerUnavailable: If the target lost one of the two.
    """
    deadline = clock.monotonic() + patience.timeout_s
    size, needed, look = look_sizes(plan), needed_answers(plan), 0
    start = _both(target.statistics(), pair)
    while True:
        target.route(plan.share, patience.lease_s)
        pump()
        now = _both(target.statistics(), pair)
        live, candidate = now[0].since(start[0]), now[1].since(start[1])
        progress(Progress("canary", candidate.answers, needed, "answers"))
        over = clock.monotonic() >= deadline
        if over or candidate.answers >= size(look):
            while candidate.answers >= size(look + 1):
                look += 1
            analysis = analyse(plan, live, candidate, look=look)
            if over or analysis.outcome != "inconclusive":
                return analysis
            look += 1


def _both(
    statistics: Mapping[Digest, SlotStatistics], pair: Pair
) -> tuple[SlotStatistics, SlotStatistics]:
    missing = [package for package in (pair.live, pair.candidate) if package not in statistics]
    if missing:
        raise ServerUnavailable(
            "target no longer holds a release of the canary",
            expected=f"{pair.live} and {pair.candidate}",
            found=", ".join(statistics) or "no release",
            remedy="Look at the logs of the target, then deploy again.",
        )
    return statistics[pair.live], statistics[pair.candidate]
