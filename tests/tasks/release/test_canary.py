"""The canary's verdict: three values, with sample size and power."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.errors import InputError
from tasks.release.canary import CanaryPlan, analyse, look_sizes, needed_answers
from tasks.release.targets.interface import SlotStatistics

BOUNDS = tuple(0.25 * 2 ** (step / 4) for step in range(60))
PLAN = CanaryPlan()


def answered(answers: int, errors: int = 0, *, bucket: int = 20) -> SlotStatistics:
    """Statistics of a slot whose latencies spread over five buckets around one."""
    counts = [0] * (len(BOUNDS) + 1)
    for place in range(answers):
        counts[bucket + place % 5] += 1
    return SlotStatistics(answers, errors, BOUNDS, tuple(counts))


def drawn(rng: random.Random, answers: int, share: float, scale: float) -> SlotStatistics:
    """Statistics of a slot with an error share and log-normal latencies around ``scale`` ms."""
    counts = [0] * (len(BOUNDS) + 1)
    for _ in range(answers):
        latency = scale * math.exp(rng.gauss(0, 0.6))
        counts[max(0, min(len(BOUNDS), math.ceil(4 * math.log2(latency / BOUNDS[0]))))] += 1
    errors = sum(rng.random() < share for _ in range(answers))
    return SlotStatistics(answers, errors, BOUNDS, tuple(counts))


def joined(first: SlotStatistics, second: SlotStatistics) -> SlotStatistics:
    """The sum of two readings."""
    counts = tuple(a + b for a, b in zip(first.counts, second.counts, strict=True))
    return SlotStatistics(
        first.answers + second.answers, first.errors + second.errors, BOUNDS, counts
    )


def canary(rng: random.Random, live: float, candidate: float, slowness: float) -> str:
    """Run a canary with all its looks and return its outcome."""
    size = look_sizes(PLAN)
    ours, theirs = answered(0), answered(0)
    for look in range(7):
        more = size(look) - ours.answers
        ours = joined(ours, drawn(rng, more, candidate, 5 * slowness))
        theirs = joined(theirs, drawn(rng, more * 4, live, 5))
        outcome = analyse(PLAN, theirs, ours, look=look).outcome
        if outcome != "inconclusive":
            return outcome
    return "inconclusive"


@pytest.mark.parametrize(
    ("live", "candidate", "slowness", "expected"),
    [
        (0.001, 0.001, 1.0, "pass"),
        (0.0, 0.0, 1.0, "pass"),
        (0.001, 0.021, 1.0, "fail"),
        (0.001, 0.001, 1.5, "fail"),
        (0.0, 1.0, 1.0, "fail"),
    ],
)
def test_simulated_releases(live: float, candidate: float, slowness: float, expected: str) -> None:
    """Equal releases pass, and two points more errors or half as slow again are caught.

    The plan promises a false alarm in 1 of 50 and a power of 0.8. Of 60 runs with a fixed seed at
    most 4 may alarm (5 would have a chance of 1 in 180) and at least 40 must be decided rightly.
    """
    rng = random.Random(20261130)
    outcomes = Counter(canary(rng, live, candidate, slowness) for _ in range(60))
    assert outcomes[expected] >= 40
    if expected == "pass":
        assert outcomes["fail"] <= 4
    else:
        assert outcomes["pass"] <= 4


@given(st.integers(0, 99), st.integers(0, 5000))
@settings(max_examples=40, deadline=None)
def test_small_samples_never_pass(answers: int, live: int) -> None:
    """Below the smallest sample nothing passes, however good the figures are."""
    analysis = analyse(PLAN, answered(live), answered(answers))
    assert analysis.outcome == "inconclusive"
    assert analysis.needed > answers


@given(st.integers(100, 3000), st.data())
@settings(max_examples=40, deadline=None)
def test_pass_has_power_and_bound(answers: int, data: st.DataObject) -> None:
    """What passes has the power asked for and excludes the limit."""
    errors = data.draw(st.integers(0, 20))
    analysis = analyse(PLAN, answered(answers * 4, errors), answered(answers, errors // 4))
    if analysis.outcome == "pass":
        assert analysis.power >= PLAN.power
        assert analysis.error_interval[1] < PLAN.max_error_delta


@given(st.integers(0, 60), st.integers(50, 2000))
@settings(max_examples=40, deadline=None)
def test_more_errors_never_help(errors: int, answers: int) -> None:
    """One error more never turns an outcome into a better one."""
    rank = ("fail", "inconclusive", "pass").index
    live = answered(4 * answers, 4)
    first = analyse(PLAN, live, answered(answers, min(errors, answers)))
    second = analyse(PLAN, live, answered(answers, min(errors + 1, answers)))
    assert rank(second.outcome) <= rank(first.outcome)


@given(st.integers(0, 40))
@settings(max_examples=20, deadline=None)
def test_slower_never_helps(buckets: int) -> None:
    """A slower candidate never has a better outcome."""
    rank = ("fail", "inconclusive", "pass").index
    live = answered(2000)
    first = analyse(PLAN, live, answered(500, bucket=10 + buckets))
    second = analyse(PLAN, live, answered(500, bucket=11 + buckets))
    assert rank(second.outcome) <= rank(first.outcome)


def test_needed_sample_suffices() -> None:
    """The sample the plan says it needs has the power it asks for, one half of it has not."""
    needed = needed_answers(PLAN)
    live = needed * 4
    assert analyse(PLAN, answered(live), answered(needed)).outcome == "pass"
    assert analyse(PLAN, answered(live // 2), answered(needed // 2)).outcome == "inconclusive"


def test_needed_sample_grows_with_errors() -> None:
    """The more errors are normal, the more answers are needed to see two points more."""
    sizes = [needed_answers(PLAN, share) for share in (0.0, 0.001, 0.01, 0.1)]
    assert sizes == sorted(set(sizes))


def test_looks_spend_the_false_alarm_rate() -> None:
    """All looks of both metrics together spend no more than the plan allows."""
    assert sum(2 * PLAN.level(look) for look in range(40)) <= PLAN.false_alarm + 1e-12


def test_unmeasured_latency_is_inconclusive() -> None:
    """Latency nobody measured never passes."""
    blind = SlotStatistics(2000, 0)
    analysis = analyse(PLAN, blind, SlotStatistics(500, 0))
    assert analysis.outcome == "inconclusive"
    assert "not measured" in " ".join(analysis.reasons)
    assert analysis.to_dict()["latency_ratio"] is None


def test_silent_live_slot_is_inconclusive() -> None:
    """Without answers of the live slot there is nothing to compare with."""
    assert analyse(PLAN, answered(0), answered(500)).outcome == "inconclusive"


def test_out_of_range_plans_are_refused() -> None:
    """A plan nobody could follow is refused, with every figure that is wrong."""
    with pytest.raises(InputError, match=r"share=1\.5.*power=1"):
        CanaryPlan(share=1.5, power=1)


def test_readings_that_run_backwards_are_refused() -> None:
    """A slot that was loaded again during the canary cannot be compared."""
    with pytest.raises(InputError, match="backwards"):
        answered(5).since(answered(6))
    with pytest.raises(InputError, match="buckets"):
        answered(5).since(SlotStatistics(1, 0, (1.0,), (0, 1)))
    assert answered(5).since(SlotStatistics()).answers == 5
