"""Options of the runtime with their defaults and units, and its one reader of the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from contracts.base import failpoint

# Nothing in a serving process may call home; some libraries read these once, at import.
_TELEMETRY_OFF = {
    "DO_NOT_TRACK": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
_FAILPOINTS = "CAISSON_FAILPOINTS"


@dataclass(frozen=True)
class Limits:
    """What one client may ask of a listener.

    Attributes:
        head_bytes: Largest request line and headers together.
        body_bytes: Largest request body.
        connections: Open connections at once.
        read_s: Seconds a client may take to send one request.
        idle_s: Seconds a connection may stay open between requests.
        write_s: Seconds a client may leave its answer unread.
        pipelined: Requests a client may send ahead of their answers.
    """

    head_bytes: int = 16 * 1024
    body_bytes: int = 64 * 2**20
    connections: int = 1024
    read_s: float = 30.0
    idle_s: float = 75.0
    write_s: float = 30.0
    pipelined: int = 64


ADMIN_LIMITS = Limits(body_bytes=2**20, connections=32, pipelined=8)


@dataclass(frozen=True)
class QueueOptions:
    """How requests wait for the model.

    Attributes:
        requests: Requests that may wait in one slot.
        default_timeout_ms: Time limit of a request where neither package nor client names one.
        stuck_s: Seconds after which a batch that never ends makes the worker restart.
    """

    requests: int = 1024
    default_timeout_ms: int = 5_000
    stuck_s: float = 60.0


@dataclass(frozen=True)
class ServeOptions:
    """One worker process.

    Attributes:
        home: Folder of the target.
        data_descriptor: Inherited listening socket of the data listener.
        admin_descriptor: Inherited listening socket of the admin listener.
        ready_descriptor: Pipe that is told once the listeners answer; -1 for none.
        supervisor: Process id that started this one; 0 for none.
        idle: Whether to start without loading the live package.
        drain_s: Longest time to finish what is under way when ending.
        data: Limits of the data listener.
        admin: Limits of the admin listener.
        queue: Waiting.
    """

    home: Path
    data_descriptor: int
    admin_descriptor: int
    ready_descriptor: int = -1
    supervisor: int = 0
    idle: bool = False
    drain_s: float = 30.0
    data: Limits = field(default_factory=Limits)
    admin: Limits = ADMIN_LIMITS
    queue: QueueOptions = field(default_factory=QueueOptions)


@dataclass(frozen=True)
class SuperviseOptions:
    """One supervisor, which is one target.

    Attributes:
        home: Folder of the target.
        host: Address to listen at.
        port: Port of the data listener; 0 for any free one.
        admin_port: Port of the admin listener; 0 for any free one.
        while_locked: Lock file; the target ends once nobody holds it. None: it lives on.
        start_s: Longest time a worker may take until its listeners answer.
        drain_s: Longest time a worker gets to finish what is under way.
        backoff_s: First pause before a crashed worker is started again; doubles each time.
        backoff_limit_s: Longest such pause.
        stable_s: A worker that lived this long resets the pause.
        crashes: Crashes in a row after which a worker starts without loading a model.
    """

    home: Path
    host: str = "127.0.0.1"
    port: int = 0
    admin_port: int = 0
    while_locked: Path | None = None
    start_s: float = 60.0
    drain_s: float = 30.0
    backoff_s: float = 0.05
    backoff_limit_s: float = 5.0
    stable_s: float = 30.0
    crashes: int = 5


def silence_telemetry() -> None:
    """Switch telemetry off; call before importing a library that reads the switch."""
    os.environ.update(_TELEMETRY_OFF)


def prepare_process() -> None:
    """Make this process quiet, and arm the failpoints a test asks for."""
    silence_telemetry()
    failpoint.configure(os.environ.get(_FAILPOINTS, ""))


def child_environment() -> dict[str, str]:
    """Return the environment for a supervisor or worker: ours, quiet, with our code on its path."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([root, inherited]) if inherited else root
    return {**os.environ, **_TELEMETRY_OFF, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def interpreter() -> str:
    """Return the Python that runs this process."""
    return sys.executable
