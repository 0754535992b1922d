"""The worker process: two listeners over the slots of one target, and its orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from contracts.base import files
from contracts.base.clock import Clock
from model_packages.runtime.backends.interface import Backend
from model_packages.runtime.config import ServeOptions
from model_packages.runtime.record.decisions import DecisionLog
from model_packages.runtime.serve import home
from model_packages.runtime.serve.admin import AdminHandler
from model_packages.runtime.serve.data import DataHandler
from model_packages.runtime.serve.listener import Listener
from model_packages.runtime.serve.slots import Slots

_log = logging.getLogger(__name__)

_TICK_S = 0.05
_LONGEST_TOKEN = 4096
STUCK = 70  # exit status of a worker whose model never ends; its supervisor starts another


class Worker:
    """One serving process. Construct on a loop, then ``run``."""

    def __init__(self, options: ServeOptions, backend: Callable[[], Backend], clock: Clock) -> None:
        """Compose the parts.

        Args:
            options: What the supervisor decided.
            backend: Makes what opens graphs.
            clock: For durations and the decision log.
        """
        self._options = options
        self._clock = clock
        self._log = DecisionLog(options.home / home.DECISIONS)
        self._slots = Slots(options.home, backend, clock, options.queue)
        self._data = DataHandler(self._slots, self._log, clock)
        token = files.read_bounded(options.home / home.TOKEN, _LONGEST_TOKEN).decode().strip()
        self._admin = AdminHandler(self._slots, token, facts=self._facts, stop=self._stop_target)
        self._listeners = (
            Listener(self._data, options.data, clock),
            Listener(self._admin, options.admin, clock),
        )
        self._ending = asyncio.Event()
        self._status = 0

    def stop(self) -> None:
        """Begin to end; returns at once."""
        self._ending.set()

    async def run(self) -> int:
        """Serve until told to stop; returns the exit status."""
        self._log.start()
        tasks = [asyncio.create_task(self._tick())]
        data, admin = self._listeners
        await admin.open(socket.socket(fileno=self._options.admin_descriptor))
        self._report_ready()
        tasks.append(asyncio.create_task(self._open_data(data)))
        await self._ending.wait()
        await self._end()
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return self._status

    async def _open_data(self, listener: Listener) -> None:
        """Load what was live, then accept: until then connections wait in the kernel."""
        with contextlib.ExitStack() as unless_opened:
            sock = unless_opened.enter_context(socket.socket(fileno=self._options.data_descriptor))
            if not self._options.idle:
                await self._slots.resume()
            if not self._ending.is_set():
                await listener.open(sock)
                unless_opened.pop_all()

    async def _end(self) -> None:
        """Say not ready, answer what is under way, close, and write the last decisions."""
        self._data.draining = True
        limit = 0.0 if self._status else self._options.drain_s
        data, admin = self._listeners
        whole = await data.drain(limit)
        whole = await self._slots.close(limit) and whole
        await admin.drain(min(limit, 1.0))
        await asyncio.to_thread(self._log.close)
        if not whole:
            _log.error("some requests were cut off after %s s", limit)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._clock.monotonic()
            self._slots.tick(now)
            for listener in self._listeners:
                listener.check()
            if self._slots.stuck(now) and not self._ending.is_set():
                _log.error("a model computes without end; this worker gives up")
                self._status = STUCK
                self._ending.set()

    def _facts(self) -> dict[str, Any]:
        return {
            "ready": self._slots.live is not None and not self._data.draining,
            "draining": self._data.draining,
            "worker": os.getpid(),
            "connections": self._listeners[0].connections,
            "decisions": self._log.facts(),
        }

    def _report_ready(self) -> None:
        if self._options.ready_descriptor >= 0:
            os.write(self._options.ready_descriptor, b"ready\n")
            os.close(self._options.ready_descriptor)

    def _stop_target(self) -> None:
        if self._options.supervisor:
            os.kill(self._options.supervisor, signal.SIGTERM)
        else:
            self.stop()
