"""Stages side by side: what each said, or why it could not say anything."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from contracts.base.errors import CaissonError, PackageMissing
from contracts.base.progress import STAGE, Progress
from contracts.base.report import Report
from flows import context
from tasks import child

Call = Callable[[], Report]
Result = TypeVar("Result")

_PAUSE_S = 0.05

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How one stage ended.

    Attributes:
        stage: Name of the stage.
        report: What it said; None if it could not say anything.
        error: Why it could not; None if it could.
        seconds: How long it took, wall time.
        about: What it was about, where no report says so.
    """

    stage: str
    report: Report | None
    error: CaissonError | None
    seconds: float = 0.0
    about: str = ""

    @property
    def subject(self) -> str:
        """What was judged, or should have been."""
        return self.report.subject if self.report else self.about

    @property
    def verdict(self) -> Literal["pass", "fail", "skip", "error"]:
        """The report's verdict, or ``error`` if there is none."""
        return "error" if self.report is None else self.report.verdict

    def blocks(self, required: Iterable[str]) -> bool:
        """Whether later waves must not start: a failure, an error, or a required skip."""
        if self.verdict == "skip":
            return self.stage in set(required)
        return self.verdict != "pass"

    def require(self) -> Report:
        """Return the report.

        Raises:
            CaissonError: Why there is none.
        """
        if self.report is None:
            raise self.error or CaissonError("did not report", location=self.stage)
        return self.report


async def wave(calls: Mapping[str, Call], about: str = "") -> list[Outcome]:
    """Run stages side by side and wait for all, whatever any of them says.

    Args:
        calls: For each stage's name, the call with its arguments bound.
        about: What they are about, for those that cannot say.
    """
    running = [attempt(name, aside(call), about) for name, call in calls.items()]
    return list(await asyncio.gather(*running))


async def attempt(stage: str, work: Awaitable[Report], about: str = "") -> Outcome:
    """Wait for one piece of work, tell the watcher, and say how it ended.

    Args:
        stage: Name to report it under.
        work: The stage or flow, started or not.
        about: What it is about, if it cannot say.
    """
    start = time.monotonic()
    tell = context.watcher()
    tell(Progress(stage, 0, 1, STAGE))
    found = await tried(work)
    tell(Progress(stage, 1, 1, STAGE))
    seconds = time.monotonic() - start
    if isinstance(found, CaissonError):
        return Outcome(stage, None, found, seconds, about)
    return Outcome(stage, found, None, seconds, about)


async def tried(work: Awaitable[Result]) -> Result | CaissonError:
    """Return what work comes to, or the error that kept it; a fault of ours is logged whole."""
    try:
        return await work
    except CaissonError as err:
        return err
    except ImportError as err:
        return PackageMissing.of(err)
    except Exception as err:  # the flow's edge: one subject must not stop the others
        logger.exception("internal fault")
        return CaissonError(
            f"internal fault: {type(err).__name__}: {err}",
            remedy="This is a fault of Caisson; the log has its trace.",
        )


async def aside(
    call: Callable[..., Result],
    *arguments: Any,
    stop: Callable[[], None] = child.stop_all,
    **named: Any,
) -> Result:
    """Run a blocking call in a thread; when cancelled, make it end instead of waiting for it.

    Args:
        call: What blocks.
        arguments: Its arguments.
        stop: Makes it end soon; called until it has. Ends all child processes by default.
        named: Its arguments by name.
    """
    work = asyncio.ensure_future(asyncio.to_thread(partial(call, *arguments, **named)))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            stop()
            await asyncio.wait([work], timeout=_PAUSE_S)
        if not work.cancelled():
            work.exception()  # seen: nobody else will ask
        raise
