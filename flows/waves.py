"""Stages side by side: what each said, or why it could not say anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from contracts.base.errors import CaissonError
from contracts.base.report import Report

Call = Callable[[], Report]


@dataclass(frozen=True)
class Outcome:
    """How one stage ended.

    Attributes:
        stage: Name of the stage.
        report: What it said; None if it could not say anything.
        error: Why it could not; None if it could.
        seconds: How long it took, wall time.
    """

    stage: str
    report: Report | None
    error: CaissonError | None
    seconds: float

    @property
    def verdict(self) -> Literal["pass", "fail", "skip", "error"]:
        """The report's verdict, or ``error`` if there is none."""
        return "error" if self.report is None else self.report.verdict

    def blocks(self, required: Iterable[str]) -> bool:
        """Whether later waves must not start: a failure, an error, or a required skip."""
        if self.verdict == "skip":
            return self.stage in set(required)
        return self.verdict != "pass"


async def wave(calls: Mapping[str, Call]) -> list[Outcome]:
    """Run stages side by side and wait for all, whatever any of them says.

    Args:
        calls: For each stage's name, the call with its arguments bound.
    """
    running = [attempt(name, asyncio.to_thread(call)) for name, call in calls.items()]
    return list(await asyncio.gather(*running))


async def attempt(stage: str, work: Awaitable[Report]) -> Outcome:
    """Wait for one piece of work and say how it ended; only faults of ours are raised.

    Args:
        stage: Name to report it under.
        work: The stage or flow, started or not.
    """
    start = time.monotonic()
    try:
        report = await work
    except CaissonError as err:
        return Outcome(stage, None, err, time.monotonic() - start)
    return Outcome(stage, report, None, time.monotonic() - start)
