"""Greedy batching: whenever the model is free, everything that waits goes, up to its limit.

A batch never holds more rows than ``max_batch_size``, never mixes rows of different shapes, and
answers each request with exactly its own rows. One request that breaks the model fails alone.
All methods run on the event loop; only ``_work`` runs on the inference thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.base.clock import Clock
from contracts.base.errors import CaissonError, Overloaded, RequestInvalid, RuntimeFault
from model_packages.runtime.backends.interface import Array, Session
from model_packages.runtime.serve.figures import SlotStatistics
from model_packages.runtime.serve.messages import DeadlineExceeded, NotReady

_log = logging.getLogger(__name__)

# Weight of the newest batch in the running mean of the cost of a row.
_NEWEST = 0.2
_PAUSE_S = 0.005


class QueueFull(Overloaded):
    """As many requests wait as may wait; ``retry_after_s`` says when to come back."""

    def __init__(self, message: str, retry_after_s: int, **parts: str) -> None:
        """Remember when to come back."""
        super().__init__(message, **parts)
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class Job:
    """One request on its way through the model.

    Attributes:
        inputs: One array for each input, all with ``rows`` rows.
        rows: Number of rows.
        deadline: When its time is over, in monotonic seconds.
        done: Called once, on the loop, with its answers or its error.
        gone: Says whether nobody waits for it any more.
        queued: When it was queued; set by the batcher.
        settled: Whether ``done`` was called; set by the batcher.
    """

    inputs: dict[str, Array]
    rows: int
    deadline: float
    done: Callable[[Outcome], None]
    gone: Callable[[], bool]
    queued: float = field(default=0.0)
    settled: bool = field(default=False)


Outcome = list[Array] | CaissonError


class Batcher:
    """The queue and the inference thread of one model. Construct on a loop, then ``start``."""

    def __init__(
        self,
        session: Session,
        *,
        max_rows: int,
        waiting: int,
        clock: Clock,
        statistics: SlotStatistics,
    ) -> None:
        """Prepare a batcher.

        Args:
            session: The open model.
            max_rows: Most rows in one run.
            waiting: Most requests that wait.
            clock: For durations and deadlines.
            statistics: Where to count.
        """
        self._session = session
        self._max_rows = max_rows
        self._limit = waiting
        self._clock = clock
        self._statistics = statistics
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._running_since = 0.0
        self._scheduled = False
        self._closed = False
        self._seconds_per_row = 0.0
        self._mixed = any(-1 in spec.shape[1:] for spec in session.inputs)
        self._hand_over: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="inference", daemon=True)

    def start(self) -> None:
        """Start the inference thread."""
        self._thread.start()

    @property
    def pending(self) -> int:
        """Requests that wait or are computed."""
        return len(self._waiting) + len(self._running)

    def submit(self, job: Job) -> None:
        """Queue a job; its ``done`` is called later, on the loop.

        Raises:
            RequestInvalid: If it alone has more rows than a batch may have.
            QueueFull: If too many wait already.
            NotReady: If the slot is being retired.
        """
        if self._closed:
            raise NotReady("the slot is being retired", remedy="Send the request again.")
        if job.rows > self._max_rows:
            raise RequestInvalid(
                "too many rows in one request",
                expected=f"at most {self._max_rows}",
                found=str(job.rows),
                remedy="Divide the request.",
            )
        if len(self._waiting) >= self._limit:
            retry = self.retry_after_s()
            raise QueueFull(
                f"{self._limit} requests wait already", retry, remedy=f"Retry in {retry} s."
            )
        job.queued = self._clock.monotonic()
        self._waiting.append(job)
        if not self._running and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._fire)

    def retry_after_s(self) -> int:
        """Return the whole seconds in which the queue will have drained at its present rate."""
        rows = sum(job.rows for job in self._waiting) + sum(job.rows for job in self._running)
        return max(1, math.ceil(rows * self._seconds_per_row))

    def expire(self, now: float) -> None:
        """Answer those whose time is over, also while the model computes on."""
        for job in self._running:
            if now >= job.deadline:
                _settle(job, _late())
        if any(now >= job.deadline for job in self._waiting):
            late = [job for job in self._waiting if now >= job.deadline]
            self._waiting = deque(job for job in self._waiting if now < job.deadline)
            for job in late:
                _settle(job, _late())

    def running_s(self, now: float) -> float:
        """Return for how long the present run has lasted; 0 if the model is free."""
        return now - self._running_since if self._running else 0.0

    async def drain(self, limit_s: float) -> bool:
        """Wait until nothing is pending.

        Returns:
            Whether that was so within the limit.
        """
        end = self._clock.monotonic() + limit_s
        while self.pending and self._clock.monotonic() < end:
            await asyncio.sleep(_PAUSE_S)
        return not self.pending

    def close(self) -> None:
        """Refuse what waits and end the thread after its present run."""
        self._closed = True
        for job in self._waiting:
            _settle(job, NotReady("the slot was retired", remedy="Send the request again."))
        self._waiting.clear()
        self._hand_over.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; returns whether it did. Not to be called on the loop."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _fire(self) -> None:
        self._scheduled = False
        if self._running:
            return
        now = self._clock.monotonic()
        batch = self._take(now)
        if batch:
            self._running = batch
            self._running_since = now
            self._hand_over.put(batch)

    def _take(self, now: float) -> list[Job]:
        """Take the oldest job and those behind it that fit, in order; drop what is late or gone."""
        batch: list[Job] = []
        passed_over: list[Job] = []
        rows = 0
        while self._waiting and rows < self._max_rows:
            job = self._waiting[0]
            if now >= job.deadline or job.gone():
                _settle(self._waiting.popleft(), _late())
            elif batch and self._mixed and _shapes(job) != _shapes(batch[0]):
                passed_over.append(self._waiting.popleft())
            elif rows + job.rows > self._max_rows:
                break
            else:
                batch.append(self._waiting.popleft())
                rows += job.rows
        self._waiting.extendleft(reversed(passed_over))
        return batch

    def _finished(
        self, batch: Sequence[Job], outcomes: Sequence[Outcome], begun: float, ended: float
    ) -> None:
        rows = sum(job.rows for job in batch)
        seconds = ended - begun
        cost = seconds / rows
        known = self._seconds_per_row
        self._seconds_per_row = cost if not known else known + _NEWEST * (cost - known)
        self._statistics.batches += 1
        self._statistics.rows += rows
        self._statistics.compute.record(seconds)
        self._running = []
        self._fire()  # the model works on while the answers are written
        for job, outcome in zip(batch, outcomes, strict=True):
            self._statistics.queue.record(begun - job.queued)
            _settle(job, outcome)

    # The inference thread.

    def _work(self) -> None:
        while (batch := self._hand_over.get()) is not None:
            begun = self._clock.monotonic()
            outcomes = self._compute(batch)
            ended = self._clock.monotonic()
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
                self._loop.call_soon_threadsafe(self._finished, batch, outcomes, begun, ended)

    def _compute(self, batch: Sequence[Job]) -> list[Outcome]:
        try:
            return _divide(self._session.run(_join(batch)), batch)
        except Exception as err:  # noqa: BLE001 - the serving loop: a model's defect is an answer
            if len(batch) == 1:
                return [_fault(err)]
        return [outcome for job in batch for outcome in self._compute([job])]


def _join(batch: Sequence[Job]) -> dict[str, Array]:
    first = batch[0].inputs
    if len(batch) == 1:
        return first
    return {name: np.concatenate([job.inputs[name] for job in batch]) for name in first}


def _divide(answers: Sequence[Array], batch: Sequence[Job]) -> list[Outcome]:
    rows = sum(job.rows for job in batch)
    for array in answers:
        if len(array) != rows:
            raise RuntimeFault(
                "model answered another number of rows", expected=str(rows), found=str(len(array))
            )
    outcomes: list[Outcome] = []
    start = 0
    for job in batch:
        end = start + job.rows
        outcomes.append([array[start:end] for array in answers])
        start = end
    return outcomes


def _shapes(job: Job) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((name, array.shape[1:]) for name, array in job.inputs.items())


def _settle(job: Job, outcome: Outcome) -> None:
    if not job.settled:
        job.settled = True
        job.done(outcome)


def _late() -> DeadlineExceeded:
    return DeadlineExceeded(
        "the request's time is over", remedy="Send fewer requests at once, or allow more time."
    )


def _fault(err: Exception) -> CaissonError:
    if isinstance(err, CaissonError):
        return err
    _log.error("the model failed", exc_info=err)
    return RuntimeFault(f"the model failed: {type(err).__name__}")
