"""The open-loop load: latency counts from the intended moment."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.verify import load


class Machine:
    """A clock that only moves when somebody waits or works."""

    def __init__(self, seconds: float, stall: dict[int, float] | None = None) -> None:
        self.time = 0.0
        self.seconds = seconds
        self.stall = stall or {}

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds

    def ask(self, number: int) -> bool:
        self.time += self.stall.get(number, self.seconds)
        return number not in self.stall


def test_idle_server_answers_in_its_own_time() -> None:
    """Without a queue, latency is the time of one answer."""
    machine = Machine(0.001)
    moments = np.arange(1, 101) * 0.01
    found = load.run(machine.ask, moments, now=machine.now, wait=machine.wait)
    assert found.latency_ms == pytest.approx({"p50": 1.0, "p95": 1.0, "p99": 1.0})
    assert (found.requests, found.errors) == (100, 0)


def test_a_stall_is_charged_to_all_who_waited() -> None:
    """Requests that were due during a stall count their waiting, as their callers would."""
    machine = Machine(0.001, stall={10: 0.5})
    moments = np.arange(1, 101) * 0.01
    found = load.run(machine.ask, moments, now=machine.now, wait=machine.wait)
    assert found.errors == 1
    assert found.slowest_ms == pytest.approx(500, abs=1)
    assert found.latency_ms["p50"] > 20


def test_an_overloaded_server_is_late_for_good() -> None:
    """When work comes faster than it is done, throughput is what the server can."""
    machine = Machine(0.02)
    found = load.run(machine.ask, np.arange(1, 201) * 0.01, now=machine.now, wait=machine.wait)
    assert found.answered_per_s == pytest.approx(50, rel=0.02)
    assert found.busy > 0.98


def test_arrivals_are_a_seeded_poisson_process() -> None:
    """The same seed gives the same moments; gaps have the mean and spread of an exponential."""
    first = load.arrivals(200, 50, seed=1)
    assert (first == load.arrivals(200, 50, seed=1)).all()
    gaps = np.diff(first)
    assert gaps.mean() == pytest.approx(1 / 200, rel=0.05)  # 10,000 gaps: 1 % standard error
    assert gaps.std() == pytest.approx(1 / 200, rel=0.1)
