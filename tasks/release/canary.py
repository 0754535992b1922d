"""Three-valued analysis of a canary: pass, fail, or inconclusive with what is missing.

A pure function of what both slots answered in the same minutes. It states its sample size and its
power: below the power the plan asks for it answers inconclusive, however good the figures look.
The false-alarm rate holds over all looks of one canary, because each look spends a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from contracts.base.errors import InputError
from tasks.release import estimate
from tasks.release.targets.interface import SlotStatistics

Outcome = Literal["pass", "fail", "inconclusive"]

# Looks at 1/8, 1/4, 1/2 and the whole of the sample the plan needs; later ones share the rest.
_SPENDING = (0.1, 0.1, 0.1, 0.4)
_PLANNED = len(_SPENDING) - 1
_LARGEST_SAMPLE = 1 << 20
# A latency is worse beyond doubt if even its lower bound uses up this part of the tolerance.
_LATENCY_PART = 0.25


@dataclass(frozen=True)
class CanaryPlan:
    """What a canary must show.

    Attributes:
        share: Share of requests the candidate answers.
        minimum_answers: Answers of the candidate below which nothing is decided.
        power: Probability with which a candidate at the limit is found, and an equal one passes.
        false_alarm: Probability that an equal candidate fails, over all looks together.
        max_error_delta: Largest rise of the error share that is tolerated.
        max_latency_ratio: Largest ratio of the latencies that is tolerated.
        baseline_error_share: Error share of a healthy slot, to plan the sample with.
        latency_dependence: Neighbouring latencies are alike; so many count as one.
    """

    share: float = 0.2
    minimum_answers: int = 100
    power: float = 0.8
    false_alarm: float = 0.02
    max_error_delta: float = 0.02
    max_latency_ratio: float = 1.5
    baseline_error_share: float = 0.001
    latency_dependence: float = 4.0

    def __post_init__(self) -> None:
        """Refuse a plan that no canary could follow.

        Raises:
            InputError: If a figure is out of its range; all of them are named.
        """
        ranges = {
            "share": 0 < self.share < 1,
            "minimum_answers": self.minimum_answers >= 1,
            "power": 0 < self.power < 1,
            "false_alarm": 0 < self.false_alarm <= 0.5,
            "max_error_delta": 0 < self.max_error_delta < 1,
            "max_latency_ratio": self.max_latency_ratio > 1,
            "baseline_error_share": 0 <= self.baseline_error_share < 1,
            "latency_dependence": self.latency_dependence >= 1,
        }
        wrong = [f"{name}={getattr(self, name)}" for name, fine in ranges.items() if not fine]
        if wrong:
            raise InputError("canary plan is out of range", found=", ".join(wrong))

    def level(self, look: int) -> float:
        """Return the error probability one metric may spend at a look, counted from 0."""
        if look <= _PLANNED:
            part = _SPENDING[look]
        else:
            part = (1 - sum(_SPENDING)) * 0.5 ** (look - _PLANNED)
        return self.false_alarm / 2 * part


@dataclass(frozen=True)
class Analysis:
    """What a canary has shown so far.

    Attributes:
        outcome: pass, fail or inconclusive.
        reasons: Why, in sentences.
        share: Share of requests the candidate answered.
        answers: Answers of the candidate.
        live_answers: Answers of the live slot in the same time.
        needed: Answers of the candidate the plan needs at the error share seen.
        power: Probability of finding a candidate at the error limit with this sample.
        error_difference: Error share of the candidate less that of the live slot.
        error_interval: Score interval of that difference.
        latency_ratio: Ratio of the geometric mean latencies; None if not measured.
        latency_interval: Its interval.
        latency_power: Probability of finding a latency at the limit with this sample.
        look: Which look this was, counted from 0.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    share: float
    answers: int
    live_answers: int
    needed: int
    power: float
    error_difference: float
    error_interval: tuple[float, float]
    latency_ratio: float | None
    latency_interval: tuple[float, float] | None
    latency_power: float
    look: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class _Metric:
    outcome: Outcome
    reason: str
    power: float
    value: float | None
    interval: tuple[float, float] | None


def needed_answers(plan: CanaryPlan, error_share: float | None = None) -> int:
    """Return how many answers of the candidate the plan needs to decide about errors.

    Args:
        plan: What must be shown.
        error_share: Error share of a healthy slot; the plan's own if None.
    """
    share = plan.baseline_error_share if error_share is None else error_share

    def enough(answers: int) -> bool:
        live = round(answers * (1 - plan.share) / plan.share)
        level = plan.level(_PLANNED)
        powers = _error_powers(plan, (round(share * live), live), answers, share, level)
        return min(powers) >= plan.power

    high = plan.minimum_answers
    while not enough(high) and high < _LARGEST_SAMPLE:
        high *= 2
    low = max(plan.minimum_answers, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def look_sizes(plan: CanaryPlan) -> Callable[[int], int]:
    """Return the sizes of the candidate's sample at which looks are taken."""
    needed = needed_answers(plan)

    def size(look: int) -> int:
        if look >= _PLANNED:
            return needed << (look - _PLANNED)
        return max(1, needed >> (_PLANNED - look))

    return size


def analyse(
    plan: CanaryPlan, live: SlotStatistics, candidate: SlotStatistics, *, look: int = _PLANNED
) -> Analysis:
    """Say what a canary has shown.

    Args:
        plan: What must be shown.
        live: What the live slot answered since the canary began.
        candidate: What the candidate answered since then.
        look: How many looks were taken before.

    Returns:
        fail if errors or latency are worse beyond doubt; pass if both are within the limits beyond
        doubt and the sample has the power asked for; inconclusive otherwise.
    """
    level = plan.level(look)
    errors = _errors(plan, live, candidate, level)
    latency = _latency(plan, live, candidate, level)
    observed = _share(live)
    needed = max(plan.minimum_answers, _needed_if_short(plan, errors, observed, candidate.answers))
    reasons = [metric.reason for metric in (errors, latency)]
    if "fail" in (errors.outcome, latency.outcome):
        outcome: Outcome = "fail"
    elif candidate.answers < plan.minimum_answers:
        outcome = "inconclusive"
        reasons.insert(0, f"{candidate.answers} answers of {plan.minimum_answers} required")
    else:
        both_pass = errors.outcome == latency.outcome == "pass"
        outcome = "pass" if both_pass else "inconclusive"
    return Analysis(
        outcome=outcome,
        reasons=tuple(reasons),
        share=plan.share,
        answers=candidate.answers,
        live_answers=live.answers,
        needed=needed,
        power=errors.power,
        error_difference=errors.value or 0.0,
        error_interval=errors.interval or (-1.0, 1.0),
        latency_ratio=latency.value,
        latency_interval=latency.interval,
        latency_power=latency.power,
        look=look,
    )


def _errors(
    plan: CanaryPlan, live: SlotStatistics, candidate: SlotStatistics, level: float
) -> _Metric:
    """Compare the error shares."""
    ours, theirs = (candidate.errors, candidate.answers), (live.errors, live.answers)
    low, high = estimate.difference(theirs, ours, level)
    share, live_share = _share(candidate), _share(live)
    powers = _error_powers(plan, theirs, candidate.answers, _share(live), level)
    figures = f"errors {share:.2%} against {live_share:.2%}, difference {low:+.2%} to {high:+.2%}"
    if high < plan.max_error_delta and powers[0] >= plan.power:
        outcome: Outcome = "pass"
        reason = f"{figures}: below {plan.max_error_delta:+.2%}"
    elif high >= plan.max_error_delta and estimate.excess(theirs, ours) <= level:
        outcome, reason = "fail", f"{figures}: more errors beyond doubt"
    else:
        outcome = "inconclusive"
        reason = f"{figures}: power {powers[0]:.2f} of {plan.power:.2f}, limit not excluded yet"
    return _Metric(outcome, reason, powers[0], share - live_share, (low, high))


def _latency(
    plan: CanaryPlan, live: SlotStatistics, candidate: SlotStatistics, level: float
) -> _Metric:
    """Compare the geometric mean latencies."""
    ours = estimate.log_latency(candidate.bounds_ms, candidate.counts)
    theirs = estimate.log_latency(live.bounds_ms, live.counts)
    if ours is None or theirs is None:
        return _Metric("inconclusive", "latency was not measured in both slots", 0.0, None, None)
    variance = ours.variance / ours.answers + theirs.variance / theirs.answers
    deviation = max(1e-9, math.sqrt(variance * plan.latency_dependence))
    z, gap = estimate.quantile(1 - level), ours.mean - theirs.mean
    limit = math.log(plan.max_latency_ratio)
    low, high = gap - z * deviation, gap + z * deviation
    found = estimate.normal_share((limit * (1 - _LATENCY_PART)) / deviation - z)
    figures = f"latency x{math.exp(gap):.2f}, {math.exp(low):.2f} to {math.exp(high):.2f}"
    if high < limit:
        outcome: Outcome = "pass"
        reason = f"{figures}: below x{plan.max_latency_ratio:.2f}"
    elif low > limit * _LATENCY_PART:
        outcome, reason = "fail", f"{figures}: slower beyond doubt"
    else:
        outcome, reason = "inconclusive", f"{figures}: power {found:.2f}, limit not excluded yet"
    return _Metric(outcome, reason, found, math.exp(gap), (math.exp(low), math.exp(high)))


def _error_powers(
    plan: CanaryPlan, live: tuple[int, int], answers: int, share: float, level: float
) -> tuple[float, float]:
    """Return the probabilities to fail a candidate at the limit and to pass an equal one.

    Exact in the candidate's errors; those of the live slot, which are more, count as given.
    """
    if not live[1] or not answers:
        return 0.0, 0.0
    at_limit = min(1.0, share + plan.max_error_delta)
    alarm = _first(answers, lambda errors: estimate.excess(live, (errors, answers)) <= level)
    late = _first(
        answers,
        lambda errors: (
            estimate.difference(live, (errors, answers), level)[1] >= plan.max_error_delta
        ),
    )
    found = 1 - estimate.binomial_below(max(alarm, late) - 1, answers, at_limit)
    return found, estimate.binomial_below(late - 1, answers, share)


def _first(answers: int, reached: Callable[[int], bool]) -> int:
    """Return the smallest number of errors for which a rising condition holds."""
    low, high = 0, answers + 1
    while low < high:
        middle = (low + high) // 2
        if middle > answers or reached(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _needed_if_short(plan: CanaryPlan, errors: _Metric, observed: float, answers: int) -> int:
    """Return the sample needed at the error share seen; the present one if it suffices."""
    if errors.power >= plan.power:
        return min(answers, needed_answers(plan))
    return needed_answers(plan, observed)


def _share(slot: SlotStatistics) -> float:
    return slot.errors / slot.answers if slot.answers else 0.0
