"""The supervisor of one target: owns the sockets, keeps a worker alive, ends in order.

The sockets outlive a worker, so a crash loses only what that worker was computing: connections
that come meanwhile wait in the kernel for the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.base import clock as clocks
from contracts.base import failpoint, files
from contracts.base.clock import Clock
from contracts.base.errors import ServerUnavailable
from model_packages.runtime.config import SuperviseOptions
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.home import State
from model_packages.runtime.serve.listener import bind

_log = logging.getLogger(__name__)

_LOCK_POLL_S = 0.25
_LOCK_PATIENCE_S = 1.0
_KILL_AFTER_S = 5.0


class Process(Protocol):
    """A worker, as ``subprocess.Popen`` has it."""

    pid: int

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True)
class Order:
    """What a worker is to be started with.

    Attributes:
        home: The target's folder.
        data: Listening socket of the data listener.
        admin: Listening socket of the admin listener.
        ready: Pipe that the worker writes to once it answers.
        idle: Whether it must not load a model.
        drain_s: Longest time to finish when told to end.
    """

    home: Path
    data: socket.socket
    admin: socket.socket
    ready: int
    idle: bool
    drain_s: float


class Supervisor:
    """Keeps one target running. Construct, then ``run``; ``stop`` may be called from a signal."""

    def __init__(
        self, options: SuperviseOptions, spawn: Callable[[Order], Process], clock: Clock
    ) -> None:
        """Prepare a supervisor.

        Args:
            options: What to supervise.
            spawn: Starts a worker process.
            clock: For back-off and the published state.
        """
        self._options = options
        self._spawn = spawn
        self._clock = clock
        self._wake = threading.Event()
        self._stopping = False
        self._restarts = 0
        self._crashes = 0
        self._started_at = ""

    def stop(self) -> None:
        """Begin to end; returns at once."""
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        """Supervise until told to stop.

        Raises:
            ServerUnavailable: If another supervisor has this home, a port is taken, or the first
                worker does not start.
        """
        home = self._options.home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._only_one(), self._sockets() as (data, admin):
            (home / homes.STATE).unlink(missing_ok=True)  # of one that was killed
            files.write_atomic(home / homes.TOKEN, secrets.token_urlsafe(32).encode(), mode=0o600)
            self._started_at = clocks.to_text(self._clock.now())
            try:
                self._keep_alive(data, admin)
            finally:
                (home / homes.STATE).unlink(missing_ok=True)

    def _keep_alive(self, data: socket.socket, admin: socket.socket) -> None:
        while not self._stopping:
            begun = self._clock.monotonic()
            worker = self._start(data, admin)
            if worker is not None:
                self._publish(worker, data, admin)
                self._watch(worker)
            if self._stopping:
                return
            self._note_crash(worker, self._clock.monotonic() - begun)
            self._pause()

    def _start(self, data: socket.socket, admin: socket.socket) -> Process | None:
        """Start a worker and wait until it answers; None if it ended before that."""
        idle = self._crashes >= self._options.crashes
        if idle:
            _log.error("the worker crashed %d times; starting it without a model", self._crashes)
        reading, writing = os.pipe()
        try:
            worker = self._spawn(
                Order(self._options.home, data, admin, writing, idle, self._options.drain_s)
            )
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = _read_within(pipe.fileno(), self._options.start_s, lambda: self._stopping)
        if told:
            return worker
        self._end(worker, 0.0)
        if not self._restarts and not self._crashes and not self._stopping:
            raise ServerUnavailable(
                "the first worker did not start",
                found=f"exit status {worker.poll()}",
                location=str(self._options.home),
                remedy=f"Its log is {self._options.home / homes.LOG}.",
            )
        return None

    def _publish(self, worker: Process, data: socket.socket, admin: socket.socket) -> None:
        state = State(
            pid=os.getpid(),
            worker=worker.pid,
            data_url=_url(data),
            admin_url=_url(admin),
            token_file=homes.TOKEN,
            started_at=self._started_at,
            restarts=self._restarts,
        )
        failpoint.hit("runtime.state.before")
        files.write_json(self._options.home / homes.STATE, state.to_dict(), mode=0o600)
        failpoint.hit("runtime.state.after")

    def _watch(self, worker: Process) -> None:
        """Wait until the worker ends or we shall."""
        waiter = threading.Thread(target=self._await_end, args=(worker,), daemon=True)
        waiter.start()
        locked = self._options.while_locked
        while worker.poll() is None and not self._stopping:
            self._wake.wait(_LOCK_POLL_S if locked else None)
            self._wake.clear()
            if locked is not None and _is_free(locked):
                _log.info("nobody holds %s; ending", locked)
                self._stopping = True
        if self._stopping:
            self._end(worker, self._options.drain_s + _KILL_AFTER_S)
        waiter.join(_KILL_AFTER_S)

    def _await_end(self, worker: Process) -> None:
        worker.wait()
        self._wake.set()

    def _end(self, worker: Process, limit_s: float) -> None:
        """Ask a worker to end, and end it if it does not."""
        if worker.poll() is not None:
            return
        if limit_s > 0:
            worker.terminate()
            end = self._clock.monotonic() + limit_s
            while worker.poll() is None and self._clock.monotonic() < end:
                threading.Event().wait(0.01)
        if worker.poll() is None:
            worker.kill()
            worker.wait()

    def _note_crash(self, worker: Process | None, lived_s: float) -> None:
        self._restarts += 1
        if worker is not None and lived_s >= self._options.stable_s:
            self._crashes = 0
        self._crashes += 1
        status = worker.poll() if worker is not None else None
        _log.error("worker ended after %.1f s with status %s; starting another", lived_s, status)

    def _pause(self) -> None:
        """Wait before the next start, longer after each crash in a row."""
        seconds = min(
            self._options.backoff_s * 2 ** (self._crashes - 1), self._options.backoff_limit_s
        )
        end = self._clock.monotonic() + seconds
        while not self._stopping and (left := end - self._clock.monotonic()) > 0:
            self._wake.wait(left)
            self._wake.clear()

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        path = self._options.home / homes.LOCK
        end = self._clock.monotonic() + _LOCK_PATIENCE_S
        while True:
            with files.locked(path, wait=False) as held:
                if held:
                    yield
                    return
            if self._clock.monotonic() >= end:  # longer than somebody merely looking
                raise ServerUnavailable(
                    "another supervisor already serves this home",
                    location=str(self._options.home),
                    remedy="Use it, or stop it first (caisson status shows it).",
                )
            threading.Event().wait(0.05)

    @contextlib.contextmanager
    def _sockets(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        host = self._options.host
        with bind(host, self._options.port) as data, bind(host, self._options.admin_port) as admin:
            yield data, admin


def _read_within(descriptor: int, limit_s: float, stopped: Callable[[], bool]) -> bool:
    """Whether a line arrives before the pipe ends, the limit passes, or we are to stop."""
    deadline = clocks.SystemClock().monotonic() + limit_s
    while not stopped() and clocks.SystemClock().monotonic() < deadline:
        ready, _, _ = select.select([descriptor], [], [], 0.1)
        if ready:
            return bool(os.read(descriptor, 64))
    return False


def _is_free(path: Path) -> bool:
    with files.locked(path, wait=False) as held:
        return held


def _url(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://{host}:{port}"
