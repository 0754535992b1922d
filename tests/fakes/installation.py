"""An installation as a person has it: a home folder, and commands that are processes of their own.

Commands get a clean environment, so nothing a developer or a pipeline has set decides a test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.ledger.store import Ledger
from tasks.workspace import Workspace
from tests.fakes.waiting import alive, until

ROOT = Path(__file__).resolve().parents[2]
MODEL, TARGET, AS_OF = "flight-delay", "local", "2014-01-01"

_PROGRAM = (sys.executable, "-c", "from flows.cli.main import run; run()")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    def demand(self, status: int = 0) -> Ended:
        assert self.status == status, f"exit status {self.status}\n{self.out}\n{self.err}"
        return self

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Installation:
    """A home folder and the checkout that works in it."""

    home: Path
    root: Path = ROOT
    prefix: tuple[str, ...] = ()

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.home, self.root)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.workspace.ledger_path)

    def environment(self, **extra: str) -> dict[str, str]:
        """All that a command's environment holds."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.root),
            "CAISSON_HOME": str(self.home),
            **extra,
        }

    def command(self, *arguments: str) -> list[str]:
        return [*self.prefix, *_PROGRAM, *arguments]

    def start(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        """Start ``caisson`` in a session of its own and return the process."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd="/",
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **extra: str) -> Ended:
        """Run ``caisson`` to its end."""
        return finish(self.start(*arguments, **extra))

    def copied(self, home: Path) -> Installation:
        """A second installation that begins with all files of this one; contents are shared.

        Databases and logs are copied, because they are written in place; everything else is
        replaced when it changes, so a hard link is as good as a copy. Prefect's and MLflow's
        folders are views that are made anew.
        """
        left = shutil.ignore_patterns("mlflow", "prefect", "tmp", "locks")
        shutil.copytree(self.home, home, symlinks=True, ignore=left, copy_function=_linked)
        return Installation(home, self.root)

    def processes(self, *, apart_from: Sequence[int] = ()) -> dict[int, str]:
        """Running processes that belong to this home: by environment, arguments or folder."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            pid = int(entry)
            if pid == os.getpid() or pid in apart_from or not alive(pid):
                continue
            with contextlib.suppress(OSError):
                said = _about(pid)
                if os.fsencode(self.home) in said:
                    found[pid] = said.decode(errors="replace").replace("\0", " ")[:300]
        return found

    def until_quiet(self, *, seconds: float = 30.0, apart_from: Sequence[int] = ()) -> None:
        """Wait until no process belongs to this home any more."""
        try:
            until(lambda: not self.processes(apart_from=apart_from), seconds=seconds)
        except AssertionError:
            left = self.processes(apart_from=apart_from)
            raise AssertionError(f"orphans: {left}") from None


def finish(process: subprocess.Popen[str], *, seconds: float = 280.0) -> Ended:
    """Wait for a command's end."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Ended(process.returncode, out, err)


@contextlib.contextmanager
def left_alone(installation: Installation) -> Iterator[None]:
    """End, after a block, what still belongs to a home, so that a failing test leaves nothing."""
    try:
        yield
    finally:
        for pid in installation.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)


def _about(pid: int) -> bytes:
    folder = Path(f"/proc/{pid}")
    parts = [(folder / name).read_bytes() for name in ("cmdline", "environ")]
    return b"\0".join([*parts, os.fsencode(os.readlink(folder / "cwd"))])


def _linked(source: str, target: str) -> str:
    """Link a file that is only ever replaced; copy one that is written in place."""
    path = Path(source)
    if path.name.endswith((".db", ".db-wal", ".db-shm", ".log", ".jsonl", ".lock")):
        return shutil.copy2(source, target)
    os.link(source, target)
    return target
