"""Stages side by side: all of a wave end, and an error is an outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from contracts.base.errors import CaissonError, DigestMismatch, InputError
from contracts.base.progress import STAGE, Progress
from contracts.base.report import Report, skipped
from flows import context
from flows.waves import Outcome, aside, attempt, tried, wave
from tests.fakes import world


def raising(err: Exception) -> Callable[[], Report]:
    def call() -> Report:
        raise err

    return call


async def value(report: Report) -> Report:
    return report


def test_a_failing_stage_lets_its_wave_finish() -> None:
    """What one stage raises is its outcome; the other of the wave still ends and reports."""
    ended = threading.Event()

    def slow() -> Report:
        ended.wait(10)
        return world.report("slow")

    def bad() -> Report:
        ended.set()
        raise DigestMismatch("not what was promised")

    outcomes = asyncio.run(wave({"bad": bad, "slow": slow}, "about this"))
    assert [item.verdict for item in outcomes] == ["error", "pass"]
    assert isinstance(outcomes[0].error, DigestMismatch)
    assert [item.subject for item in outcomes] == ["about this", "s"]


def test_an_internal_fault_is_an_error_too(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours stops its own stage only, says what it is, and is logged whole."""
    (outcome,) = asyncio.run(wave({"bad": raising(KeyError("wanted"))}))
    assert outcome.verdict == "error"
    assert "internal fault: KeyError: 'wanted'" in str(outcome.error)
    assert outcome.error is not None
    assert outcome.error.exit_status == 2
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("verdict", "required", "blocks"),
    [
        ("pass", True, False),
        ("fail", True, True),
        ("fail", False, True),
        ("error", True, True),
        ("error", False, True),
        ("skip", True, True),
        ("skip", False, False),
    ],
)
def test_what_blocks(verdict: str, required: bool, blocks: bool) -> None:
    """A failure and an error always block, a skip only where the stage is required."""
    outcomes = {
        "pass": world.passed("trust"),
        "fail": Outcome("trust", Report("trust", "s", "fail"), None),
        "skip": Outcome("trust", skipped("trust", "s", "no key"), None),
        "error": Outcome("trust", None, InputError("x")),
    }
    assert outcomes[verdict].verdict == verdict
    assert outcomes[verdict].blocks(["trust"] if required else []) is blocks


def test_requiring_a_report_raises_why_there_is_none() -> None:
    """The error of the stage itself is raised, and there always is one."""
    with pytest.raises(InputError, match="no such file"):
        Outcome("trust", None, InputError("no such file")).require()
    with pytest.raises(CaissonError, match="trust: did not report"):
        Outcome("trust", None, None).require()
    assert world.passed("trust").require().stage == "trust"


def test_whoever_watches_hears_of_each_stage() -> None:
    """A stage is told when it begins and when it ends, also if it fails."""
    heard: list[Progress] = []
    with context.watched(heard.append):
        asyncio.run(attempt("trust", value(world.report("trust"))))
        asyncio.run(wave({"verify": raising(InputError("x"))}))
    assert [(step.stage, step.done, step.unit) for step in heard] == [
        ("trust", 0, STAGE),
        ("trust", 1, STAGE),
        ("verify", 0, STAGE),
        ("verify", 1, STAGE),
    ]


def test_trying_returns_the_error() -> None:
    """Work that is no stage is guarded in the same way."""

    async def failing() -> int:
        raise InputError("x")

    async def good() -> int:
        return 3

    assert asyncio.run(tried(good())) == 3
    assert isinstance(asyncio.run(tried(failing())), InputError)


def test_cancelling_does_not_wait_for_children() -> None:
    """A cancelled stage is told to end until it has, and the cancellation goes on."""
    started, told = threading.Event(), threading.Event()

    def child() -> Report:
        started.set()
        assert told.wait(30)
        raise InputError("was cancelled")

    async def command() -> None:
        work = asyncio.create_task(aside(child, stop=told.set))
        await asyncio.to_thread(started.wait)
        work.cancel()
        await work

    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(command())
    assert told.is_set()
    assert time.monotonic() - begun < 20
