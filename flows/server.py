"""Starts or joins the one local Prefect server of a home folder, and starts the pages of both.

Every command that runs a flow holds a lock file shared while it needs the server; the server ends
itself when it can take that lock alone. So commands share one server, a command that is killed
leaves none behind, and nothing has to be stopped. It listens on loopback only, on a port that the
system chose, and answers only who knows a random text kept in a file that its owner can read.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import failpoint, files
from contracts.base.errors import CaissonError, ServerUnavailable
from flows import engine
from tasks.telemetry import OFF
from tasks.workspace import Workspace

_STARTING = "start.lock"
_LOG = "server.log"
_PATIENCE_S = 120.0
_ANSWER_WITHIN_S = 5.0
_DELIVERY_S = 5.0
_TAIL = 1000

# Not needed with one machine and one person: a worker's health, vacuum and late runs are watched
# where Prefect runs as a service of its own.
_OFF = ("DB_VACUUM", "FOREMAN", "LATE_RUNS")

# Servers outlive the blocks that started them; what is listed here is not taken for a leak.
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        url: Its address, without ``/api``.
        auth: What a caller must know, as ``user:password``.
        pid: Its process.
        seconds: What starting it took; 0 if it was running.
    """

    url: str
    auth: str
    pid: int
    seconds: float = 0.0

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs in its environment to use this server."""
        return {"PREFECT_API_URL": f"{self.url}/api", "PREFECT_API_AUTH_STRING": self.auth}


@contextlib.contextmanager
def ensure(workspace: Workspace, linger: float = 0.0) -> Iterator[Server]:
    """Have a Prefect server for the time of a block, and make Prefect in this process use it.

    Enter the block before importing Prefect or a flow: the import then runs while the server
    starts. It works after it too.

    Args:
        workspace: Whose server.
        linger: Seconds that a server started here stays when unused.

    Raises:
        ServerUnavailable: If it does not start, does not answer, or ends before the block does.
    """
    folder = workspace.prefect
    with files.locked(folder / engine.CLIENTS, shared=True), contextlib.ExitStack() as stack:
        stack.callback(_left, folder)
        with files.locked(folder / _STARTING):
            server = _running(folder)
            if server is not None:
                stack.enter_context(_environment(server, folder))
            else:
                server = _start(workspace, linger, stack)
        stack.enter_context(_watched(server))
        stack.enter_context(_settings(server, folder))
        yield server


@contextlib.contextmanager
def pages(workspace: Workspace) -> Iterator[tuple[Server, str]]:
    """Have Prefect's and MLflow's pages for the time of a block.

    Yields:
        The Prefect server, whose page asks for ``auth``, and the address of MLflow's page.

    Raises:
        ServerUnavailable: If one of them does not start.
    """
    with ensure(workspace) as server, _listener() as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = _spawn(
            "mlflow",
            listener,
            workspace,
            folder=workspace.mlflow,
            variables=_for_mlflow(workspace),
        )
        try:
            _wait(process, address, "/health", {}, workspace.mlflow)
            yield server, address
        finally:
            process.terminate()
            process.wait()


def _running(folder: Path) -> Server | None:
    """Return the server that answers, or None."""
    try:
        state = files.read_json(folder / engine.STATE, limit=4096)
        server = Server(str(state["url"]), str(state["auth"]), int(state["pid"]))
    except (CaissonError, KeyError, TypeError, ValueError):
        return None
    try:
        _ask(server.url, "/api/admin/version", _credentials(server.auth))
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException) as err:
        raise ServerUnavailable(
            "the Prefect server does not answer as it should",
            found=repr(err),
            location=server.url,
            remedy=f"End process {server.pid} and try again.",
        ) from err
    return server


def _start(workspace: Workspace, linger: float, stack: contextlib.ExitStack) -> Server:
    """Start a server, and import Prefect while it starts on another core."""
    begun = time.monotonic()
    _started[:] = [process for process in _started if process.poll() is None]
    folder = workspace.prefect
    (folder / engine.STATE).unlink(missing_ok=True)
    auth = f"caisson:{secrets.token_urlsafe(24)}"
    with _listener() as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = _spawn(
            "prefect",
            listener,
            workspace,
            folder=folder,
            variables=_for_prefect(folder, auth),
            options=("--linger", str(linger)),
        )
    _started.append(process)
    failpoint.hit("server.start.inside")
    stack.enter_context(_environment(Server(url, auth, process.pid), folder))
    import prefect  # noqa: F401 - only to have it imported

    _wait(process, url, "/api/admin/version", _credentials(auth), folder)
    return Server(url, auth, process.pid, round(time.monotonic() - begun, 3))


@contextlib.contextmanager
def _watched(server: Server) -> Iterator[None]:
    """Interrupt the command if its server ends: Prefect would go on asking for minutes."""
    lost = threading.Event()
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        ended = os.pidfd_open(server.pid)
        stack.callback(os.close, ended)
        watcher = threading.Thread(target=_watch, args=(ended, reading, lost), daemon=True)
        watcher.start()
        stack.callback(watcher.join)
        stack.callback(os.close, writing)
        try:
            yield
        except BaseException as err:
            if not lost.is_set():
                raise
            logging.disable(logging.NOTSET)
            raise ServerUnavailable(
                "the Prefect server ended while it was needed",
                location=server.url,
                remedy="Run the command again; it continues with what is not done yet.",
            ) from err


def _watch(ended: int, stopped: int, lost: threading.Event) -> None:
    ready, _, _ = select.select([ended, stopped], [], [])
    if stopped not in ready:
        lost.set()
        logging.disable()  # what everybody says now that nobody answers would hide the reason
        # A real signal, because only that wakes a main thread that waits.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _left(folder: Path) -> None:
    """Let a lingering server count from now."""
    with contextlib.suppress(OSError):
        os.utime(folder / engine.CLIENTS)


@contextlib.contextmanager
def _listener() -> Iterator[socket.socket]:
    """Listen on a port of the system's choice; callers may connect before anybody serves."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield listener


def _spawn(
    what: str,
    listener: socket.socket,
    workspace: Workspace,
    *,
    folder: Path,
    variables: Mapping[str, str],
    options: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start a serving process that survives an interrupt of ours, with a clean environment."""
    own = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PYTHONPATH": str(workspace.root),
    }
    folder.mkdir(parents=True, exist_ok=True)
    number = str(listener.fileno())
    starter = str(os.getpid())
    with (folder / _LOG).open("wb") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "flows.engine", what),
                *("--socket", number, "--starter", starter, *options),
            ],
            cwd=folder,
            env={**own, **OFF, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )


def _for_prefect(folder: Path, auth: str) -> dict[str, str]:
    services = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _OFF}
    return {
        **services,
        "PREFECT_HOME": str(folder),
        # Relative to the working folder, so that no character of its path needs quoting.
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{engine.DATABASE}",
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        # Otherwise the server hides "database is locked" even from its own log.
        "PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "true",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_MEMO_STORE_PATH": str(folder / engine.MEMO),
        "PREFECT_UI_STATIC_DIRECTORY": str(folder / "ui"),
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _for_mlflow(workspace: Workspace) -> dict[str, str]:
    from tasks.lineage import store

    location = store.uri(workspace)
    return {
        "MLFLOW_TRACKING_URI": location,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "_MLFLOW_SERVER_FILE_STORE": location,
        "_MLFLOW_SERVER_REGISTRY_STORE": location,
        "_MLFLOW_SERVER_ARTIFACT_ROOT": store.artifacts(workspace),
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
    }


def _wait(
    process: subprocess.Popen[bytes],
    url: str,
    path: str,
    headers: Mapping[str, str],
    folder: Path,
) -> None:
    """Wait until a serving process answers; the connection waits in the socket's queue."""
    end = time.monotonic() + _PATIENCE_S
    problem = "no answer"
    while process.poll() is None and time.monotonic() < end:
        try:
            _ask(url, path, headers)
        except (OSError, http.client.HTTPException) as err:
            problem = repr(err)
        else:
            return
    if process.poll() is None:
        process.kill()
    process.wait()
    said = (folder / _LOG).read_bytes()[-_TAIL:].decode("utf-8", "replace").strip()
    raise ServerUnavailable(
        f"a local server did not start: {said or problem}",
        location=str(folder),
        remedy=f"All it said is in {folder / _LOG}.",
    )


def _ask(url: str, path: str, headers: Mapping[str, str]) -> None:
    """Ask a server something that only it can answer.

    Raises:
        OSError: If it cannot be reached.
        HTTPException: If it answers something else.
    """
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=_ANSWER_WITHIN_S)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"status {answer.status}")


def _credentials(auth: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(auth.encode()).decode()}"}


@contextlib.contextmanager
def _environment(server: Server, folder: Path) -> Iterator[None]:
    """Point at a server whatever imports Prefect from now on: this process and its children."""
    variables = {
        **server.variables,
        # Prefect cannot be imported by somebody without a home, as in many containers.
        "HOME": os.environ.get("HOME") or str(folder),
        "PREFECT_HOME": str(folder),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _settings(server: Server, folder: Path) -> Iterator[None]:
    """Point Prefect itself at a server, also where it was imported before.

    Flow heartbeats are off: with them a sync flow ends up to a second late. Five retries, as is the
    default, would keep a command for two minutes after its server was killed.
    """
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_HOME,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
        temporary_settings,
    )

    updates: dict[Any, Any] = {
        PREFECT_API_URL: server.variables["PREFECT_API_URL"],
        PREFECT_API_AUTH_STRING: server.auth,
        PREFECT_HOME: folder,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
        PREFECT_CLIENT_MAX_RETRIES: 1,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
    }
    with temporary_settings(updates):
        try:
            yield
        finally:
            _deliver()


def _deliver() -> None:
    """Send what Prefect still holds back, while there is a server to take it."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=_DELIVERY_S, at_exit=False)
