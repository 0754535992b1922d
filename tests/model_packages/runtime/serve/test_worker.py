"""The worker: an orderly end, a model that never ends, and nothing before it is asked."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.base.clock import SystemClock
from contracts.base.errors import CaissonError, InputError
from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.config import ServeOptions
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.record import decisions
from model_packages.runtime.serve import worker as workers
from model_packages.runtime.serve.client import Call
from tests.fakes import serving
from tests.fakes.waiting import until

_ONE = Call({"value": np.ones(1, np.float32)})


def test_ending_finishes_what_is_under_way(home: Path, first: PackageSource) -> None:
    """Not ready first, then the answers, then the end; the log holds them all."""
    hold = threading.Event()
    session = FakeSession()
    with serving.serve(home, FakeBackend([session])) as running:
        running.deploy(first)
        before = len(session.batches)
        session.hold = hold
        answers: list[Any] = []

        def ask() -> None:
            with running.client() as client:
                answers.append(client.infer("sums", replace(_ONE, request_id="last")))

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: len(session.batches) == before + 1)
        with running.client() as client, running.admin() as admin:
            assert client.ready()
            running.begin_stop()
            until(lambda: admin.status()["draining"])
            assert not client.ready()
        hold.set()
        thread.join()
        assert running.stop() == 0
    assert answers[0].outputs["sum"].tolist() == [1.0]
    assert decisions.find(home / "decisions.log", "last") is not None


def test_what_does_not_finish_in_time_is_cut_off(home: Path, first: PackageSource) -> None:
    """The end comes, whatever a model does."""
    hold = threading.Event()
    session = FakeSession()
    with serving.serve(
        home, FakeBackend([session]), change=lambda options: replace(options, drain_s=0.2)
    ) as running:
        running.deploy(first)
        before = len(session.batches)
        session.hold = hold
        errors: list[CaissonError] = []

        def ask() -> None:
            with running.client() as client:
                try:
                    client.infer("sums", _ONE)
                except CaissonError as err:
                    errors.append(err)

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: len(session.batches) == before + 1)
        assert running.stop() == 0
        thread.join()
        hold.set()
    assert len(errors) == 1


def test_a_model_that_never_ends_makes_the_worker_end(home: Path, first: PackageSource) -> None:
    """With a status of its own, so that the supervisor starts another."""
    hold = threading.Event()
    session = FakeSession()

    def impatient(options: ServeOptions) -> ServeOptions:
        return replace(options, queue=replace(options.queue, stuck_s=0.1))

    with serving.serve(home, FakeBackend([session]), change=impatient) as running:
        running.deploy(first)
        session.hold = hold
        with running.client() as client, pytest.raises(CaissonError):
            client.infer("sums", _ONE, timeout_ms=50)
        until(lambda: running.worker._status == workers.STUCK)
        assert running.stop() == workers.STUCK
        hold.set()


def test_stopping_a_worker_without_supervisor_ends_it(home: Path) -> None:
    """POST /admin/stop."""
    with serving.serve(home) as running:
        with running.admin() as admin:
            admin.stop()
        assert running.stop() == 0


def test_stopping_asks_the_supervisor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which then ends its worker."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    change = serving.with_options(supervisor=4711)
    with serving.serve(home, change=change) as running, running.admin() as admin:
        admin.stop()
        until(lambda: sent == [(4711, 15)])


def test_readiness_is_told_through_the_pipe(home: Path) -> None:
    """Once the admin listener answers."""
    reading, writing = os.pipe()
    with serving.serve(home, change=serving.with_options(ready_descriptor=writing)):
        assert os.read(reading, 10) == b"ready\n"
        assert os.read(reading, 10) == b""
    os.close(reading)


def test_an_idle_worker_loads_nothing(home: Path, first: PackageSource) -> None:
    """After too many crashes the target must stay reachable for another deployment."""
    with serving.serve(home) as running:
        running.deploy(first)
    backend = FakeBackend()
    with (
        serving.serve(home, backend, change=serving.with_options(idle=True)) as running,
        running.client() as client,
    ):
        assert not client.ready()
    assert backend.opened == []


def test_a_worker_without_token_does_not_start(home: Path) -> None:
    """An admin listener without a token must not exist."""

    async def body() -> None:
        workers.Worker(ServeOptions(home, -1, -1), FakeBackend, SystemClock())

    with pytest.raises(InputError, match=r"admin\.token"):
        asyncio.run(body())
