"""Batching: answers are those of single requests, limits hold, nobody waits in vain."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.clock import Clock, SystemClock
from contracts.base.errors import CaissonError, RequestInvalid, RuntimeFault
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.fake import FakeSession, sums
from model_packages.runtime.serve.batcher import Batcher, Job, Outcome, QueueFull
from model_packages.runtime.serve.figures import SlotStatistics
from model_packages.runtime.serve.messages import DeadlineExceeded, NotReady
from tests.fakes.clock import FixedClock

_WIDE = (TensorSpec("x", "FP32", (-1, -1)),)


class Bench:
    """A batcher and the outcomes it gave."""

    def __init__(
        self,
        session: FakeSession,
        *,
        max_rows: int = 8,
        waiting: int = 100,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.statistics = SlotStatistics()
        self.batcher = Batcher(
            session,
            max_rows=max_rows,
            waiting=waiting,
            clock=self.clock,
            statistics=self.statistics,
        )
        self.batcher.start()
        self.outcomes: dict[int, Outcome] = {}
        self.submitted = 0

    def submit(
        self,
        array: Any,
        *,
        seconds: float = 60,
        gone: Callable[[], bool] = lambda: False,
    ) -> int:
        number = self.submitted
        self.submitted += 1

        def done(outcome: Outcome) -> None:
            assert number not in self.outcomes, "answered twice"
            self.outcomes[number] = outcome

        deadline = self.clock.monotonic() + seconds
        self.batcher.submit(Job({"x": array}, len(array), deadline, done, gone))
        return number

    async def settle(self) -> None:
        async with asyncio.timeout(20):
            while len(self.outcomes) < self.submitted:
                await asyncio.sleep(0.001)

    def error(self, number: int) -> CaissonError:
        outcome = self.outcomes[number]
        assert isinstance(outcome, CaissonError)
        return outcome


def run(body: Callable[[], Any]) -> None:
    asyncio.run(body())


_REQUESTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=30)


@settings(deadline=None)
@given(_REQUESTS, st.integers(5, 12), st.randoms(use_true_random=False))
def test_batched_answers_equal_single_ones(
    requests: list[tuple[int, int]], max_rows: int, random: Any
) -> None:
    """Whatever is batched with what, each request gets exactly its own rows."""
    arrays = [
        np.array([[random.random() for _ in range(width)] for _ in range(rows)], np.float32)
        for rows, width in requests
    ]
    session = FakeSession(inputs=_WIDE)

    async def body() -> None:
        bench = Bench(session, max_rows=max_rows)
        for array in arrays:
            bench.submit(array)
        await bench.settle()
        for number, array in enumerate(arrays):
            outcome = bench.outcomes[number]
            assert isinstance(outcome, list)
            np.testing.assert_array_equal(outcome[0], sums({"x": array}).astype(np.float32))
        assert bench.statistics.rows == sum(rows for rows, _ in requests)
        assert bench.statistics.queue.count == len(requests)
        bench.batcher.close()

    run(body)
    assert max(session.batches) <= max_rows


def test_what_waits_goes_together_and_in_order() -> None:
    """While the model computes, others gather; shapes are never mixed."""
    hold = threading.Event()
    session = FakeSession(inputs=_WIDE, hold=hold)

    async def body() -> None:
        bench = Bench(session, max_rows=4)
        bench.submit(np.ones((1, 1), np.float32))
        await asyncio.sleep(0.01)
        for width in (1, 2, 1, 2, 1, 1, 1):
            bench.submit(np.ones((1, width), np.float32))
        hold.set()
        await bench.settle()
        bench.batcher.close()

    run(body)
    assert session.batches == [1, 4, 2, 1]


def test_limits_are_told_apart() -> None:
    """Too many rows is the client's mistake, a full queue is not."""
    hold = threading.Event()

    async def body() -> None:
        bench = Bench(FakeSession(hold=hold), max_rows=2, waiting=1)
        with pytest.raises(RequestInvalid, match="at most 2, got 3"):
            bench.batcher.submit(
                Job({"x": np.ones(3)}, 3, 1e9, lambda outcome: None, lambda: False)
            )
        bench.submit(np.ones(1))
        await asyncio.sleep(0.01)
        bench.submit(np.ones(1))
        with pytest.raises(QueueFull) as caught:
            bench.batcher.submit(
                Job({"x": np.ones(1)}, 1, 1e9, lambda outcome: None, lambda: False)
            )
        assert caught.value.retry_after_s == 1
        assert caught.value.http_status == 429
        hold.set()
        await bench.settle()
        assert bench.batcher.pending == 0
        bench.batcher.close()

    run(body)


def test_retry_after_follows_the_drain_rate() -> None:
    """What waits, at the measured cost of a row."""
    clock = FixedClock()
    hold = threading.Event()

    def slow(inputs: Any) -> None:
        clock.advance(3.0 * len(inputs["x"]))

    async def body() -> None:
        session = FakeSession(fault=slow)
        bench = Bench(session, clock=clock)
        bench.submit(np.ones(2))
        await bench.settle()
        session.hold = hold
        bench.submit(np.ones(1))
        await asyncio.sleep(0.01)
        bench.submit(np.ones(4))
        assert bench.batcher.retry_after_s() == 15
        hold.set()
        await bench.settle()
        bench.batcher.close()

    run(body)


def test_one_request_that_breaks_the_model_fails_alone() -> None:
    """Those that were batched with it get their answers."""
    hold = threading.Event()

    def fault(inputs: Any) -> None:
        if (inputs["x"] < 0).any():
            raise ValueError("negative")

    async def body() -> None:
        bench = Bench(FakeSession(hold=hold, fault=fault))
        bench.submit(np.ones(1))
        await asyncio.sleep(0.01)
        good = [bench.submit(np.ones(1)), bench.submit(np.ones(2))]
        bad = bench.submit(-np.ones(1))
        hold.set()
        await bench.settle()
        assert all(isinstance(bench.outcomes[number], list) for number in good)
        assert isinstance(bench.error(bad), RuntimeFault)
        assert "ValueError" in str(bench.error(bad))
        assert "negative" not in str(bench.error(bad)), "a model's words may hold data"
        bench.batcher.close()

    run(body)


def test_a_model_that_answers_other_rows_is_a_fault() -> None:
    """Rows are never guessed."""

    class Short(FakeSession):
        def run(self, inputs: Any) -> list[Any]:
            return [np.zeros(1)]

    async def body() -> None:
        bench = Bench(Short())
        number = bench.submit(np.ones(2))
        await bench.settle()
        assert "another number of rows" in str(bench.error(number))
        bench.batcher.close()

    run(body)


def test_deadlines_are_kept_in_the_queue_and_in_the_model() -> None:
    """The late are answered at once, and their late answers are thrown away."""
    clock = FixedClock()
    hold = threading.Event()

    async def body() -> None:
        bench = Bench(FakeSession(hold=hold), clock=clock)
        running = bench.submit(np.ones(1), seconds=1)
        await asyncio.sleep(0.01)
        waiting = bench.submit(np.ones(1), seconds=1)
        patient = bench.submit(np.ones(1), seconds=9)
        bench.batcher.expire(clock.monotonic())
        assert not bench.outcomes
        clock.advance(2)
        assert bench.batcher.running_s(clock.monotonic()) == 2
        bench.batcher.expire(clock.monotonic())
        assert isinstance(bench.error(running), DeadlineExceeded)
        assert isinstance(bench.error(waiting), DeadlineExceeded)
        hold.set()
        await bench.settle()
        assert isinstance(bench.outcomes[patient], list)
        assert bench.batcher.running_s(clock.monotonic()) == 0
        bench.batcher.close()

    run(body)


def test_late_and_abandoned_requests_are_dropped_when_their_turn_comes() -> None:
    """No time is spent on what nobody waits for."""
    clock = FixedClock()
    hold = threading.Event()
    session = FakeSession(hold=hold)

    async def body() -> None:
        bench = Bench(session, clock=clock)
        bench.submit(np.ones(1))
        await asyncio.sleep(0.01)
        bench.submit(np.ones(1), seconds=1)
        bench.submit(np.ones(1), gone=lambda: True)
        clock.advance(2)
        hold.set()
        await bench.settle()
        bench.batcher.close()

    run(body)
    assert session.batches == [1]


def test_closing_refuses_what_waits_and_ends_the_thread() -> None:
    """Nothing is left without an answer."""
    hold = threading.Event()

    async def body() -> None:
        bench = Bench(FakeSession(hold=hold))
        running = bench.submit(np.ones(1))
        await asyncio.sleep(0.01)
        waiting = bench.submit(np.ones(1))
        assert not await bench.batcher.drain(0.01)
        bench.batcher.close()
        assert isinstance(bench.error(waiting), NotReady)
        with pytest.raises(NotReady):
            bench.submit(np.ones(1))
        bench.submitted -= 1
        hold.set()
        await bench.settle()
        assert isinstance(bench.outcomes[running], list)
        assert await bench.batcher.drain(1)
        assert await asyncio.to_thread(bench.batcher.join, 5)

    run(body)
