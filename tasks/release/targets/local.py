"""A target on this machine: a supervisor that outlives the command that started it."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from contracts.base.digest import Digest
from contracts.base.errors import ServerUnavailable
from model_packages.runtime.serve import figures, spawn
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.client import AdminClient
from model_packages.runtime.serve.figures import Histogram
from tasks.release.targets.interface import GoldenResult, Release, SlotStatistics, TargetState
from tasks.release.targets.peek import await_requests, peek

_MODEL = "model"
_SHORT_LEASE_S = 1.0
_START_S = 60.0
_STOP_S = 40.0
_POLL_S = 0.05
# Latencies from 8 microseconds to more than an hour; what is outside counts to the nearest step.
_FIRST_STEP, _LAST_STEP = 8, 479


class LocalTarget:
    """Drives the supervisor of one home folder through its admin listener."""

    def __init__(
        self, name: str, home: Path, *, port: int = 0, while_locked: Path | None = None
    ) -> None:
        """Name the target; nothing is started.

        Args:
            name: Name of the target.
            home: Its folder.
            port: Port for requests if it has to be started; 0 for any free one.
            while_locked: If it has to be started: it ends once nobody holds this lock file. None
                to let it outlive everybody.
        """
        self._name = name
        self._home = home
        self._port = port
        self._while_locked = while_locked

    @property
    def name(self) -> str:
        """Return the name of the target."""
        return self._name

    @property
    def home(self) -> Path:
        """Return the folder where the target keeps packages."""
        return self._home

    def ensure(self) -> TargetState:
        """Start the supervisor if it does not run, and return the target's state.

        Raises:
            ServerUnavailable: If it does not start.
        """
        found = spawn.supervisor(self._home, port=self._port, while_locked=self._while_locked)
        state = self.state() if await_requests(found.data_url, _START_S) else TargetState()
        if not state.running:
            raise ServerUnavailable(
                "target was started and does not answer",
                location=self._name,
                remedy=f"Read {self._home / homes.LOG}.",
            )
        return state

    def state(self) -> TargetState:
        """Return the target's state; one that does not answer is not running."""
        return peek(self._home)

    def load(self, release: Release) -> None:
        """Load a kept package into the slot that is not live."""
        with self._admin() as admin:
            admin.load(release.tree / _MODEL, release.package, release.set_digest)

    def golden(self, package: Digest) -> GoldenResult:
        """Run the test cases of a loaded package."""
        with self._admin() as admin:
            cases = admin.golden(package)["cases"]
        failures = tuple(
            f"{case['case']}: {case['message']}" for case in cases if not case["passed"]
        )
        return GoldenResult(len(cases), failures)

    def route(self, share: float, lease_s: float) -> None:
        """Send a share of requests to the candidate until the lease runs out."""
        with self._admin() as admin:
            admin.route(share, lease_s=lease_s)

    def promote(self, package: Digest) -> None:
        """Make the candidate live."""
        with self._admin() as admin:
            admin.promote(package)

    def restore(self) -> None:
        """Send every request to the live slot."""
        self.route(0.0, _SHORT_LEASE_S)

    def unload(self, package: Digest) -> None:
        """Empty the slot of a package that is not live."""
        with self._admin() as admin:
            admin.unload(package)

    def drain(self, timeout_s: float) -> bool:
        """Wait until the slot that is not live answers nothing more."""
        with self._admin() as admin:
            return admin.drain(timeout_s=timeout_s)

    def statistics(self) -> Mapping[Digest, SlotStatistics]:
        """Return what each loaded package answered since it was loaded."""
        with self._admin() as admin:
            found = admin.statistics()
        return {package: _translated(slot) for package, slot in found.items()}

    def logs(self, lines: int) -> Sequence[str]:
        """Return the last lines the supervisor logged."""
        path = self._home / homes.LOG
        if not path.is_file():
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]

    def stop(self) -> None:
        """End the target and wait for its end.

        Raises:
            ServerUnavailable: If it does not end in time.
        """
        if not homes.running(self._home):
            return
        with self._admin() as admin:
            admin.stop()
        deadline = time.monotonic() + _STOP_S
        while homes.running(self._home):
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    "target does not end",
                    location=self._name,
                    remedy=f"Read {self._home / homes.LOG}.",
                )
            time.sleep(_POLL_S)

    @contextlib.contextmanager
    def _admin(self) -> Iterator[AdminClient]:
        """Connect for one act: the worker may have been replaced since the last one."""
        client = AdminClient.connect(self._home)
        try:
            yield client
        finally:
            client.close()


def _translated(slot: figures.SlotStatistics) -> SlotStatistics:
    """Return the runtime's figures in the terms of the canary: client errors do not count."""
    counts = [0] * (_LAST_STEP - _FIRST_STEP + 2)
    for step, count in slot.latency.counts.items():
        counts[min(max(step, _FIRST_STEP), _LAST_STEP + 1) - _FIRST_STEP] += count
    return SlotStatistics(slot.answers + slot.faults, slot.faults, _bounds(), tuple(counts))


@functools.cache
def _bounds() -> tuple[float, ...]:
    """Return the upper bounds of the runtime's latency steps in milliseconds."""
    return tuple(
        Histogram(Counter({step: 1}), 0, 1 << 62).quantile_us(1.0) / 1000
        for step in range(_FIRST_STEP, _LAST_STEP + 1)
    )
