"""Estimates for comparing two slots: shares of errors, and latency read from histograms.

Standard library only. Error shares are compared with Fisher's exact test, whose false-alarm
rate never exceeds the level asked for, and bounded with Newcombe's score interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()


def quantile(level: float) -> float:
    """Return the standard normal quantile of a level between 0 and 1."""
    return _NORMAL.inv_cdf(level)


def normal_share(value: float) -> float:
    """Return the share of a standard normal distribution below a value."""
    return _NORMAL.cdf(value)


def wilson(errors: int, answers: int, alpha: float) -> tuple[float, float]:
    """Return the one-sided score bounds of a share, each at level ``alpha``."""
    if answers == 0:
        return 0.0, 1.0
    z = quantile(1 - alpha)
    share = errors / answers
    scale = 1 + z * z / answers
    centre = (share + z * z / (2 * answers)) / scale
    variance = share * (1 - share) / answers + z * z / (4 * answers**2)
    half = z * math.sqrt(variance) / scale
    low = 0.0 if errors == 0 else max(0.0, centre - half)
    high = 1.0 if errors == answers else min(1.0, centre + half)
    return low, high


def difference(
    live: tuple[int, int], candidate: tuple[int, int], alpha: float
) -> tuple[float, float]:
    """Return bounds of (share of the candidate - share of the live slot), Newcombe's method.

    Args:
        live: Errors and answers of the live slot.
        candidate: Errors and answers of the candidate.
        alpha: Error probability of each side.
    """
    (live_low, live_high), (low, high) = wilson(*live, alpha), wilson(*candidate, alpha)
    if not live[1] or not candidate[1]:
        return -1.0, 1.0
    live_share, share = live[0] / live[1], candidate[0] / candidate[1]
    below = math.hypot(share - low, live_high - live_share)
    above = math.hypot(high - share, live_share - live_low)
    return max(-1.0, share - live_share - below), min(1.0, share - live_share + above)


def excess(live: tuple[int, int], candidate: tuple[int, int]) -> float:
    """Return Fisher's one-sided p value for the candidate having more errors than the live slot."""
    errors, answers = live[0] + candidate[0], live[1] + candidate[1]
    total = _choose(answers, errors)
    centre = errors * candidate[1] / answers if answers else 0.0

    def term(count: int) -> float:
        return _choose(candidate[1], count) + _choose(live[1], errors - count) - total

    first, last = max(candidate[0], errors - live[1]), min(errors, candidate[1])
    return _sum(term, first, last, centre)


def binomial_below(limit: int, answers: int, share: float) -> float:
    """Return the probability of at most ``limit`` errors in ``answers`` at an error share."""
    if limit < 0:
        return 0.0
    if limit >= answers or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    won, lost = math.log(share), math.log1p(-share)

    def term(count: int) -> float:
        return _choose(answers, count) + count * won + (answers - count) * lost

    return _sum(term, 0, limit, answers * share)


@dataclass(frozen=True)
class LogLatency:
    """Latency on a logarithmic scale, where a ratio is a difference.

    Attributes:
        mean: Mean of log milliseconds.
        variance: Variance of log milliseconds.
        answers: Answers measured.
    """

    mean: float
    variance: float
    answers: int


def log_latency(bounds_ms: Sequence[float], counts: Sequence[int]) -> LogLatency | None:
    """Read a latency histogram; None if it holds fewer than two answers.

    Args:
        bounds_ms: Upper bounds of the buckets, rising.
        counts: Answers in each bucket; the last, beyond the highest bound, included.
    """
    answers = sum(counts)
    if answers < 2 or not bounds_ms:
        return None
    edges = [bounds_ms[0] / 2, *bounds_ms, bounds_ms[-1] * 2]
    middles = [(math.log(low) + math.log(high)) / 2 for low, high in itertools.pairwise(edges)]
    weighted = list(zip(middles, counts, strict=True))
    mean = sum(middle * count for middle, count in weighted) / answers
    spread = sum(count * (middle - mean) ** 2 for middle, count in weighted) / (answers - 1)
    return LogLatency(mean, spread, answers)


def _choose(total: int, chosen: int) -> float:
    """Return the logarithm of a binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


def _sum(term: Callable[[int], float], first: int, last: int, centre: float) -> float:
    """Add probabilities given as logarithms, leaving out those far too small to matter.

    Args:
        term: Logarithm of the probability of a count.
        first: Smallest count to add.
        last: Largest count to add.
        centre: Expected count; its square root bounds the deviation from above.
    """
    reach = 30 + math.ceil(14 * math.sqrt(centre))
    low = max(first, math.floor(centre) - reach)
    high = min(last, max(low, math.ceil(centre)) + reach)
    return min(1.0, sum(math.exp(term(count)) for count in range(low, high + 1)))
