"""Stands between us and a child process, so that nothing the child starts outlives us.

Started by ``tasks/child.py`` as ``python -I -S launcher.py <plan as JSON>``, standard library only.
It cuts the network where the kernel allows, starts the program under its limits, and ends it and
all its descendants when it is done, over a limit, or when the control pipe closes, which happens
also when our own process is killed. The last thing it writes is one JSON line: the outcome.

Descendants that leave the process group stay children of ours (``PR_SET_CHILD_SUBREAPER``).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_LOOK_EVERY_S = 0.1
_CANNOT_START = 127

_libc = ctypes.CDLL(None, use_errno=True)


def main(plan: dict[str, Any]) -> None:
    """Run the planned program to its end and report the outcome."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    isolation = "network allowed" if plan["network"] else _cut_network()
    child = os.fork()
    if child == 0:
        _become(plan)
    os.close(plan["progress"])
    watch = _Watch(plan, child)
    try:
        reason, status = watch.until_end()
    finally:
        _end_all(child)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = {
        "reason": reason,
        "status": status,
        "isolation": isolation,
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_memory_bytes": max(watch.peak, usage.ru_maxrss * 1024),
    }
    os.write(plan["outcome"], json.dumps(outcome).encode())


class _Watch:
    """Looks after one running child."""

    def __init__(self, plan: dict[str, Any], child: int) -> None:
        self._plan = plan
        self._child = child
        self._page = os.sysconf("SC_PAGE_SIZE")
        self.peak = 0

    def until_end(self) -> tuple[str, int]:
        """Return why the child ended or must end, and its wait status."""
        end = time.monotonic() + self._plan["wall_s"]
        ended = os.pidfd_open(self._child)
        control = self._plan["control"]
        while True:
            ready, _, _ = select.select([ended, control], [], [], _LOOK_EVERY_S)
            self.peak = max(self.peak, self._memory())
            if ended in ready:
                return "ended", os.waitpid(self._child, 0)[1]
            if control in ready or os.getppid() != self._plan["parent"]:
                return "cancelled", 0
            if self.peak > self._plan["memory_bytes"]:
                return "memory", 0
            if time.monotonic() > end:
                return "wall", 0

    def _memory(self) -> int:
        """Return the bytes that the child and its descendants hold, shared libraries apart."""
        return self._page * sum(_private_pages(pid) for pid in _descendants())


def _private_pages(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as stream:
            fields = stream.read().split()
    except OSError:
        return 0
    return int(fields[1]) - int(fields[2])


def _descendants() -> list[int]:
    """Return all processes below this one."""
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                found += map(int, stream.read().split())
    return found


def _end_all(child: int) -> None:
    """Kill the child's group, then whatever is left below us, until nothing is."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _become(plan: dict[str, Any]) -> NoReturn:
    """Turn this process into the planned program."""
    try:
        os.setpgid(0, 0)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, plan["cpu_s"])
        _limit(resource.RLIMIT_DATA, plan["memory_bytes"])
        os.close(plan["control"])
        os.close(plan["outcome"])
        os.execvp(plan["argv"][0], plan["argv"])  # noqa: S606 - the caller chose the program
    except OSError as err:
        os.write(2, f"{plan['argv'][0]}: {err.strerror}\n".encode())
    os._exit(_CANNOT_START)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    top = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (top, top if kind != resource.RLIMIT_CPU else _grace(top, hard)))


def _grace(seconds: int, hard: int) -> int:
    """Let the soft limit's own signal end the program, so that the reason can be told."""
    later = seconds + 5
    return later if hard == resource.RLIM_INFINITY else min(later, hard)


def _cut_network() -> str:
    """Enter a network with nothing in it; return ``isolated``, or why that was not possible."""
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return f"not isolated: {os.strerror(ctypes.get_errno())}"
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as err:
        return f"not isolated: {err.strerror}"
    return "isolated"


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
