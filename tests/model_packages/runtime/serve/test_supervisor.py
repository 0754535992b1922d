"""The supervisor, with workers that are threads of this test instead of processes."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base import files
from contracts.base.clock import SystemClock
from contracts.base.errors import ServerUnavailable
from model_packages.runtime.config import SuperviseOptions
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve import supervisor as supervisors
from model_packages.runtime.serve.supervisor import Order, Supervisor
from tests.fakes.waiting import until

_pids = itertools.count(100_000)


class FakeWorker:
    """A process that ends when told, or when a test crashes it."""

    def __init__(self, *, obeys: bool = True) -> None:
        self.pid = next(_pids)
        self.terminated = False
        self._obeys = obeys
        self._ended = threading.Event()
        self._status: int | None = None

    def poll(self) -> int | None:
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        self._ended.wait(timeout)
        return self._status or 0

    def terminate(self) -> None:
        self.terminated = True
        if self._obeys:
            self.end(0)

    def kill(self) -> None:
        self.end(-9)

    def end(self, status: int) -> None:
        self._status = status
        self._ended.set()


class Stage:
    """A supervisor in a thread, and the workers it started."""

    def __init__(self, home: Path, make: Callable[[Order], FakeWorker], **fields: object) -> None:
        self.workers: list[FakeWorker] = []
        self.orders: list[Order] = []
        self.errors: list[BaseException] = []
        self.home = home
        self._make = make
        options = SuperviseOptions(home=home, backoff_s=0.001, drain_s=0.1, start_s=5)
        self.supervisor = Supervisor(
            replace(options, **fields),  # type: ignore[arg-type] # names of options
            self._spawn,
            SystemClock(),
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _spawn(self, order: Order) -> FakeWorker:
        worker = self._make(order)
        self.orders.append(order)
        self.workers.append(worker)
        return worker

    def _run(self) -> None:
        try:
            self.supervisor.run()
        except ServerUnavailable as err:
            self.errors.append(err)

    def start(self) -> Stage:
        self._thread.start()
        return self

    def await_worker(self, number: int) -> homes.State:
        def published() -> bool:
            if self.errors:
                raise self.errors[0]
            return (
                len(self.workers) >= number
                and homes.running(self.home)
                and (self.home / homes.STATE).exists()
                and homes.read_state(self.home).worker == self.workers[number - 1].pid
            )

        until(published, seconds=20)
        return homes.read_state(self.home)

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self.supervisor.stop()
        if self._thread.ident is not None:
            self.join()


def ready(order: Order) -> FakeWorker:
    os.write(order.ready, b"ready\n")
    return FakeWorker()


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    made: list[Stage] = []
    yield made
    for stage in made:
        stage.stop()


def test_a_target_is_published_and_ends_in_order(home: Path, stages: list[Stage]) -> None:
    """State, token and lock are there while it runs, and the state is gone afterwards."""
    stages.append(Stage(home, ready).start())
    state = stages[0].await_worker(1)
    assert state.pid == os.getpid()
    assert state.restarts == 0
    for url in (state.data_url, state.admin_url):
        host, port = url.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    assert (home / homes.TOKEN).stat().st_mode & 0o777 == 0o600
    assert (home / homes.STATE).stat().st_mode & 0o777 == 0o600
    assert len((home / homes.TOKEN).read_bytes()) > 30
    stages[0].stop()
    assert stages[0].workers[0].terminated
    assert not (home / homes.STATE).exists()
    assert not homes.running(home)


def test_a_crashed_worker_is_started_again(home: Path, stages: list[Stage]) -> None:
    """On the same sockets, so that connections which come meanwhile are not lost."""
    stages.append(Stage(home, ready).start())
    before = stages[0].await_worker(1)
    stages[0].workers[0].end(-11)
    after = stages[0].await_worker(2)
    assert (after.data_url, after.admin_url) == (before.data_url, before.admin_url)
    assert after.restarts == 1


def test_after_many_crashes_no_model_is_loaded(home: Path, stages: list[Stage]) -> None:
    """The target stays reachable for another deployment, also if a worker dies before ready."""

    def crashing(order: Order) -> FakeWorker:
        if len(stages[0].workers) == 2:
            worker = FakeWorker()
            worker.end(1)
            return worker
        return ready(order)

    stages.append(Stage(home, crashing, crashes=3))
    stages[0].start()
    stages[0].await_worker(1)
    for number in (1, 2):
        stages[0].workers[number - 1].end(-11)
        until(lambda: len(stages[0].workers) > number)  # noqa: B023 - used at once
    stages[0].await_worker(4)
    assert [order.idle for order in stages[0].orders] == [False, False, False, True]


def test_a_worker_that_lived_long_is_forgiven(home: Path, stages: list[Stage]) -> None:
    """Crashes far apart do not add up."""
    stages.append(Stage(home, ready, stable_s=0.0, crashes=2).start())
    for number in range(1, 5):
        stages[0].await_worker(number)
        stages[0].workers[number - 1].end(-11)
    stages[0].await_worker(5)
    assert not any(order.idle for order in stages[0].orders)


def test_a_first_worker_that_does_not_start_is_an_error(home: Path, stages: list[Stage]) -> None:
    """Nothing is retried behind the back of the person who starts it."""

    def dying(order: Order) -> FakeWorker:
        worker = FakeWorker()
        worker.end(2)
        return worker

    stages.append(Stage(home, dying).start())
    stages[0].join()
    assert "did not start" in str(stages[0].errors[0])
    assert "exit status 2" in str(stages[0].errors[0])


def test_a_worker_that_says_nothing_is_ended(home: Path, stages: list[Stage]) -> None:
    """It has its time to become ready."""
    kept: list[int] = []

    def silent(order: Order) -> FakeWorker:
        kept.append(os.dup(order.ready))
        return FakeWorker()

    stages.append(Stage(home, silent, start_s=0.05).start())
    stages[0].join()
    assert stages[0].errors
    assert stages[0].workers[0].poll() == -9
    os.close(kept[0])


def test_a_worker_that_does_not_obey_is_killed(
    home: Path, stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its time to finish."""
    monkeypatch.setattr(supervisors, "_KILL_AFTER_S", 0.05)

    def stubborn(order: Order) -> FakeWorker:
        os.write(order.ready, b"ready\n")
        return FakeWorker(obeys=False)

    stages.append(Stage(home, stubborn).start())
    stages[0].await_worker(1)
    stages[0].stop()
    assert stages[0].workers[0].poll() == -9


def test_a_stop_while_a_worker_starts_or_pauses_is_obeyed(home: Path, stages: list[Stage]) -> None:
    """At any moment."""
    kept: list[int] = []

    def silent(order: Order) -> FakeWorker:
        kept.append(os.dup(order.ready))
        return FakeWorker()

    stages.append(Stage(home, silent).start())
    until(lambda: stages[0].workers)
    stages[0].stop()
    assert not stages[0].errors
    os.close(kept[0])
    stages.append(Stage(home, ready, backoff_s=60.0, backoff_limit_s=60.0).start())
    stages[1].await_worker(1)
    stages[1].workers[0].end(-11)
    stages[1].stop()


def test_a_second_supervisor_is_refused(home: Path, stages: list[Stage]) -> None:
    """One home, one target."""
    stages.append(Stage(home, ready).start())
    stages[0].await_worker(1)
    stages.append(Stage(home, ready).start())
    stages[1].join()
    assert "another supervisor" in str(stages[1].errors[0])
    assert stages[0].await_worker(1)


def test_somebody_who_only_looks_does_not_refuse_a_supervisor(
    home: Path, stages: list[Stage]
) -> None:
    """Looking takes the lock for a moment."""
    with files.locked(home / homes.LOCK):
        stages.append(Stage(home, ready).start())
        threading.Event().wait(0.1)
    assert stages[0].await_worker(1)


def test_an_occupied_port_is_a_clear_error(home: Path, stages: list[Stage]) -> None:
    """With the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stages.append(Stage(home, ready, port=port).start())
        stages[0].join()
    error = stages[0].errors[0]
    assert f"127.0.0.1:{port}" in str(error)
    assert "in use" in str(error)
    assert isinstance(error, ServerUnavailable)
    assert error.exit_status == 2


def test_a_target_ends_with_the_last_holder_of_its_lock(
    home: Path, tmp_path: Path, stages: list[Stage]
) -> None:
    """The demo's target ends with the demo, however that ends."""
    lock = tmp_path / "demo.lock"
    with files.locked(lock, shared=True):
        stages.append(Stage(home, ready, while_locked=lock).start())
        stages[0].await_worker(1)
        threading.Event().wait(0.4)
        assert homes.running(home)
    stages[0].join()
    assert stages[0].workers[0].terminated
