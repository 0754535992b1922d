"""Running a flow for a command: a server while it runs, and no work done twice."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.base.progress import Progress
from contracts.base.report import Report
from flows import context, recall, server
from flows.cli import console, session
from flows.context import Context
from tests.fakes import world


class Server:
    """Notes whether it is there while a flow runs."""

    def __init__(self) -> None:
        self.up = False
        self.lingers: list[float] = []

    @contextlib.contextmanager
    def ensure(self, workspace: object, linger: float) -> Iterator[None]:
        self.lingers.append(linger)
        self.up = True
        try:
            yield
        finally:
            self.up = False


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("CAISSON_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CAISSON_LINGER", "7")
    found = Server()
    monkeypatch.setattr(server, "ensure", found.ensure)
    return found


def test_a_flow_runs_while_the_server_is_up(local: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow is found by name, called with its parameters, and heard by whoever watches."""
    heard: list[Progress] = []

    @contextlib.contextmanager
    def progress(*, quiet: bool) -> Iterator[Any]:
        yield heard.append

    async def flow(model: str, as_of: str) -> tuple[str, str, bool]:
        context.current(as_of).workspace.progress(Progress("train", 1, 2, "epochs"))
        return model, as_of, local.up

    monkeypatch.setattr(console, "progress", progress)
    monkeypatch.setattr("tests.fakes.world.flow", flow, raising=False)
    said = session.run("tests.fakes.world.flow", model="m", as_of="2014-01-01")
    assert said == ("m", "2014-01-01", True)
    assert local.lingers == [7.0]
    assert not local.up
    assert len(heard) == 1


def test_nothing_starts_for_work_that_was_done(
    local: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded work is returned before a server starts; other work runs once."""
    recorded = world.report("release")

    def once(here: Context, flow: str, parameters: Any, produce: Any) -> Report:
        assert (flow, parameters) == ("flows.release.release", {"model": "m", "as_of": None})
        return recorded

    monkeypatch.setattr(recall, "once", once)
    assert session.once("flows.release.release", model="m", as_of=None) is recorded
    assert local.lingers == []


@pytest.mark.parametrize(("asked", "effective"), [("DEBUG", "DEBUG"), ("ERROR", "ERROR")])
def test_prefects_own_lines_follow_the_settings(asked: str, effective: str) -> None:
    """Errors are said once, by us; whoever asks for more gets it."""
    loggers = [logging.getLogger(name) for name in ("prefect", "prefect.flow_runs")]
    before = [logger.level for logger in loggers]
    try:
        session._quieten(asked)
        assert {logging.getLevelName(logger.level) for logger in loggers} == {effective}
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
