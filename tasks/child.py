"""Runs heavy or foreign work in a process of its own, within limits, and never leaves an orphan.

The program is called with one more argument, the path of a JSON request. To what the caller asked
the request adds ``answer``, the path where the program writes its JSON answer, and ``progress``, a
file descriptor for JSON lines ``{"stage", "done", "total", "unit"}``. An answer of the form
``{"error": {"code", "message", ...}}`` is raised here as the error of the same kind.

``tasks/launcher.py`` stands between: it sets the limits, cuts the network where the kernel allows,
and ends the program with all it started when we close the control pipe or die.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contracts.base import errors, files
from contracts.base.errors import CaissonError, InputError, RuntimeFault
from contracts.base.progress import Progress, Reporter, silent
from tasks.telemetry import OFF

Reason = Literal["exit", "wall", "cpu", "memory", "cancelled", "answer", "start"]

_LAUNCHER = Path(__file__).with_name("launcher.py")
_TAIL = 8192
_LONGEST_LINE = 65536
_LARGEST_ANSWER = 64 * 2**20
_PATIENCE_S = 10.0
_CANNOT_START = 127

_running: set[int] = set()
_running_lock = threading.Lock()


class ChildFailed(RuntimeFault):
    """A child process ended without a usable answer; ``reason`` says how."""

    code = "child-failed"

    def __init__(self, message: str, *, reason: Reason, **parts: str) -> None:
        """Remember the reason."""
        self.reason = reason
        super().__init__(message, **parts)


@dataclass(frozen=True)
class Limits:
    """What a child process may use.

    Attributes:
        wall_s: Seconds on the wall until it is ended.
        cpu_s: Seconds of processor time for each of its processes.
        memory_bytes: Private memory of all its processes together.
        network: Whether it may reach the network.
    """

    wall_s: float = 600.0
    cpu_s: int = 1200
    memory_bytes: int = 4 * 2**30
    network: bool = False


def run(
    argv: Sequence[str],
    request: Mapping[str, Any],
    *,
    folder: Path,
    limits: Limits,
    progress: Reporter = silent,
    environment: Mapping[str, str] | Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Run a program on a request and return its answer.

    Args:
        argv: The program and its arguments; the request's path is appended.
        request: What it shall do, as plain data.
        folder: An existing folder, the program's working, home and temporary folder.
        limits: What it may use.
        progress: Who hears of its progress.
        environment: Variables beside the few that every child gets.

    Returns:
        The answer, and beside it ``isolation`` (``isolated``, or why not) and ``usage``
        (``cpu_s``, ``peak_memory_bytes``).

    Raises:
        ChildFailed: If it did not start, ended badly, hit a limit or left no usable answer.
        CaissonError: The kind of error that the program answered with.
    """
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    asked = folder / "request.json"
    with _Pipes() as pipes:
        content = {**request, "answer": str(answer), "progress": pipes.progress[1]}
        files.write_json(asked, content, mode=0o600)
        plan = _plan([*argv, str(asked)], limits, pipes)
        variables = _environment(folder, dict(environment))
        outcome, output = _supervise(plan, folder, variables, pipes, progress)
    said = output[-1000:] or "nothing"
    _judge(argv, outcome, said, limits)
    return _answer(argv, answer, outcome, said)


def stop_all() -> None:
    """End every child of this process now; for the edge, when a command is interrupted."""
    with _running_lock:
        for descriptor in _running:
            with contextlib.suppress(OSError):
                os.write(descriptor, b"x")


class _Pipes:
    """The pipes of one child, each (reading end, writing end); every end is closed once."""

    def __init__(self) -> None:
        self.control, self.progress, self.outcome, self.output = (os.pipe() for _ in range(4))
        self._open = {*self.control, *self.progress, *self.outcome, *self.output}

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._close(set(self._open))

    def theirs(self) -> tuple[int, int, int]:
        """Return the ends that the launcher inherits under their own numbers."""
        return self.control[0], self.progress[1], self.outcome[1]

    def hand_over(self) -> None:
        """Close on our side what the launcher now holds."""
        self._close({*self.theirs(), self.output[1]})

    def _close(self, descriptors: set[int]) -> None:
        self._open -= descriptors
        for descriptor in descriptors:
            os.close(descriptor)


def _plan(argv: list[str], limits: Limits, pipes: _Pipes) -> dict[str, Any]:
    control, progress, outcome = pipes.theirs()
    return {
        "argv": argv,
        "parent": os.getpid(),
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "network": limits.network,
        "control": control,
        "progress": progress,
        "outcome": outcome,
    }


def _environment(folder: Path, asked: Mapping[str, str]) -> dict[str, str]:
    """Return a clean environment: nothing of ours, so no secret of ours, gets through."""
    own = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
    }
    return {**own, **OFF, **asked}


def _supervise(
    plan: Mapping[str, Any],
    folder: Path,
    variables: Mapping[str, str],
    pipes: _Pipes,
    progress: Reporter,
) -> tuple[dict[str, Any], str]:
    """Start the launcher, listen until it reports, and see it end whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(plan)],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=pipes.output[1],
        stderr=pipes.output[1],
        pass_fds=pipes.theirs(),
        start_new_session=True,
    )
    try:
        pipes.hand_over()
        with _listed(pipes.control[1]):
            outcome, output = _listen(process, pipes, progress)
    finally:
        _release(process, pipes.control[1])
    return outcome, output


@contextlib.contextmanager
def _listed(control: int) -> Iterator[None]:
    with _running_lock:
        _running.add(control)
    try:
        yield
    finally:
        with _running_lock:
            _running.discard(control)


def _release(process: subprocess.Popen[bytes], control: int) -> None:
    """Let the launcher end what is left; end it ourselves should the launcher not have."""
    with contextlib.suppress(OSError):
        os.write(control, b"x")
    try:
        ended_well = process.wait(_PATIENCE_S) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        ended_well = False
    if not ended_well:
        for pid in _session(process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _session(leader: int) -> list[int]:
    """Return the processes of a session whose leader is gone."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry)) == leader:
                found.append(int(entry))
    return found


def _listen(
    process: subprocess.Popen[bytes], pipes: _Pipes, progress: Reporter
) -> tuple[dict[str, Any], str]:
    """Read all pipes until their writers are gone, or the launcher is and nothing comes."""
    lines = _Lines(progress)
    output, outcome = bytearray(), bytearray()

    def take_output(data: bytes) -> None:
        output.extend(data)
        del output[:-_TAIL]

    takers: dict[int, Callable[[bytes], None]] = {
        pipes.progress[0]: lines.take,
        pipes.output[0]: take_output,
        pipes.outcome[0]: outcome.extend,
    }
    with selectors.DefaultSelector() as selector:
        for descriptor in takers:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(timeout=1.0)
            if not ready and process.poll() is not None:
                break
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                if data:
                    takers[key.fd](data)
                else:
                    selector.unregister(key.fd)
    found = json.loads(bytes(outcome)) if outcome else {"reason": "start", "status": 0}
    return found, output.decode("utf-8", "replace").strip()


class _Lines:
    """Turns bytes of the progress pipe into reports; what is malformed is dropped."""

    def __init__(self, progress: Reporter) -> None:
        self._progress = progress
        self._rest = bytearray()

    def take(self, data: bytes) -> None:
        """Report every line that is complete."""
        self._rest.extend(data)
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest[:_LONGEST_LINE])
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._report(json.loads(line))

    def _report(self, item: Mapping[str, Any]) -> None:
        done, total = float(item["done"]), float(item["total"])
        self._progress(Progress(str(item["stage"]), done, total, str(item["unit"])))


def _judge(argv: Sequence[str], outcome: Mapping[str, Any], said: str, limits: Limits) -> None:
    """Raise if the program did not end by itself, or never began."""
    program = " ".join(argv)
    reason = outcome["reason"]
    if reason == "wall":
        raise _over(program, "wall", f"{limits.wall_s:g} seconds", said)
    if reason == "memory":
        raise _over(program, "memory", f"{limits.memory_bytes / 2**20:.0f} MiB", said)
    if reason == "cancelled":
        raise ChildFailed("was cancelled", reason="cancelled", location=program)
    status = os.waitstatus_to_exitcode(outcome["status"])
    if status == -signal.SIGXCPU:
        raise _over(program, "cpu", f"{limits.cpu_s} seconds of processor time", said)
    if reason == "start" or status == _CANNOT_START:
        raise ChildFailed("could not be started", reason="start", found=said, location=program)


def _over(program: str, reason: Reason, allowed: str, said: str) -> ChildFailed:
    return ChildFailed(
        f"was ended at its {reason} limit; it said: {said}",
        reason=reason,
        expected=f"at most {allowed}",
        found="more",
        location=program,
        remedy="Raise the limit, or give it less to do.",
    )


def _answer(
    argv: Sequence[str], path: Path, outcome: Mapping[str, Any], said: str
) -> dict[str, Any]:
    """Return the program's answer; one that is an error is raised whatever the exit status."""
    program = " ".join(argv)
    status = os.waitstatus_to_exitcode(outcome["status"])
    content = _content(program, path) if path.exists() or status == 0 else None
    if content is not None and isinstance(content.get("error"), dict):
        raise _error(program, content["error"])
    if status != 0 or content is None:
        raise ChildFailed(
            f"ended badly; it said: {said}",
            reason="exit",
            expected="exit status 0",
            found=f"signal {-status}" if status < 0 else f"exit status {status}",
            location=program,
        )
    usage = {name: outcome[name] for name in ("cpu_s", "peak_memory_bytes")}
    return {**content, "isolation": outcome["isolation"], "usage": usage}


def _content(program: str, path: Path) -> dict[str, Any]:
    try:
        content = files.read_json(path, limit=_LARGEST_ANSWER)
    except InputError as err:
        raise ChildFailed(
            f"left no usable answer: {err}", reason="answer", location=program
        ) from err
    if not isinstance(content, dict):
        raise ChildFailed(
            "answered something else than an object", reason="answer", location=program
        )
    return content


def _error(program: str, details: Mapping[str, Any]) -> CaissonError:
    """Build the error that the program answered with, of the same kind where there is one."""
    kind = _kinds(CaissonError).get(str(details.get("code")))
    message = str(details.get("message", "failed without a message"))
    if kind is None:
        return ChildFailed(message, reason="exit", location=program)
    error = kind.__new__(kind)
    if isinstance(error, errors.LoadFailed):
        error.stage = message.removeprefix("load stage ").partition(":")[0]
    names = ("expected", "found", "location", "remedy")
    CaissonError.__init__(error, message, **{name: str(details.get(name, "")) for name in names})
    return error


def _kinds(root: type[CaissonError]) -> dict[str, type[CaissonError]]:
    """Return every kind of error by its code; the first one that uses a code has it."""
    found = {root.code: root}
    for kind in root.__subclasses__():
        found = {**_kinds(kind), **found}
    return found
