"""Starting processes: a worker from its supervisor, a supervisor from a command."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from contracts.base.errors import ServerUnavailable
from model_packages.runtime import config
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.home import State
from model_packages.runtime.serve.supervisor import Order

_MODULE = "model_packages.runtime"
_PR_SET_PDEATHSIG = 1
_PAUSE_S = 0.02
_TAIL = 2000


def worker(order: Order) -> subprocess.Popen[bytes]:
    """Start a worker that dies with this process."""
    descriptors = (order.data.fileno(), order.admin.fileno(), order.ready)
    argv = [
        *(config.interpreter(), "-P", "-m", _MODULE, "serve"),
        *("--home", str(order.home)),
        *("--data-descriptor", str(descriptors[0])),
        *("--admin-descriptor", str(descriptors[1])),
        *("--ready-descriptor", str(descriptors[2])),
        *("--supervisor", str(os.getpid())),
        *("--drain-s", str(order.drain_s)),
    ]
    if order.idle:
        argv.append("--idle")
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, pass_fds=descriptors, env=config.child_environment()
    )


def die_with(parent: int) -> None:
    """End this process when its parent ends, however that ends; at once if it is gone already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def supervisor(
    home: Path,
    *,
    port: int = 0,
    admin_port: int = 0,
    while_locked: Path | None = None,
    limit_s: float = 60.0,
) -> State:
    """Start the target of a home if it does not run, and wait until it answers.

    The supervisor is a process of its own session and outlives the caller; with
    ``while_locked`` it ends once nobody holds that lock file.

    Raises:
        ServerUnavailable: If it does not start; its own words are in the message.
    """
    if homes.running(home):
        return _await_state(home, None, limit_s)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    argv = [
        *(config.interpreter(), "-P", "-m", _MODULE, "supervise", "--home", str(home)),
        *("--port", str(port), "--admin-port", str(admin_port)),
    ]
    if while_locked is not None:
        argv += ["--while-locked", str(while_locked)]
    log = os.open(home / homes.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=config.child_environment(),
        )
    finally:
        os.close(log)
    # Whoever stays until the supervisor ends must take note of it, or it would stay a zombie.
    threading.Thread(target=process.wait, name="supervisor-end", daemon=True).start()
    return _await_state(home, process, limit_s)


def _await_state(home: Path, process: subprocess.Popen[bytes] | None, limit_s: float) -> State:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        with contextlib.suppress(ServerUnavailable):  # not yet
            state = homes.read_state(home)
            if process is None or state.pid == process.pid or process.poll() is not None:
                return state  # ours, or that of somebody who was quicker
        if process is not None and process.poll() is not None and not homes.running(home):
            break
        time.sleep(_PAUSE_S)
    raise ServerUnavailable(
        "target did not start",
        found=_tail(home / homes.LOG),
        location=str(home),
        remedy=f"Read {home / homes.LOG}.",
    )


def _tail(path: Path) -> str:
    if not path.exists():
        return "no log"
    lines = path.read_bytes()[-_TAIL:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "nothing in its log"
