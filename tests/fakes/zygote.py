"""Starts many commands one after the other without paying for their imports each time.

Run as a program it imports what a command needs, holds a Prefect server for them, and forks a
process for each request on its standard input: one JSON line with ``arguments`` and
``environment``, answered by one line with ``status``, negative for a signal as ``Popen`` has it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.fakes.installation import Ended, Installation


class Zygote:
    """A running zygote of an installation; use it as a context manager."""

    def __init__(self, installation: Installation) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="caisson-zygote-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.zygote", self._folder.name],
            cwd=installation.root,
            env=installation.environment(PREFECT_HOME=self._folder.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.server = int(self._line())

    @property
    def pids(self) -> tuple[int, int]:
        """Its own process and the Prefect server it holds."""
        return self._process.pid, self.server

    def run(self, *arguments: str, environment: Mapping[str, str]) -> Ended:
        """Run ``caisson`` in a fork and return how it ended."""
        request = {"arguments": arguments, "environment": dict(environment)}
        _pipe(self._process.stdin).write(json.dumps(request) + "\n")
        _pipe(self._process.stdin).flush()
        status = int(self._line())
        out, err = (Path(self._folder.name, name).read_text("utf-8") for name in ("out", "err"))
        return Ended(status, out, err)

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()
        self._folder.cleanup()

    def _line(self) -> str:
        line = _pipe(self._process.stdout).readline()
        assert line, "the zygote has ended"
        return line


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


# What stages import when they run; none of it starts a thread by being imported.
_LIBRARIES = ("duckdb", "matplotlib.figure", "mlflow.artifacts", "onnx", "pyarrow.parquet")


def _serve(folder: Path) -> None:
    from flows import context, presence, server

    place = context.current().workspace
    with server.ensure(place) as found:
        from flows.cli import main
        from flows.demo import run, story

        del run, story
        for name in _LIBRARIES:
            importlib.import_module(name)
        presence.leave(place)
        answers = os.fdopen(os.dup(1), "w")
        print(found.pid, file=answers, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            child = os.fork()
            if child == 0:
                _redirect(folder)
                os.setsid()
                os.environ.update(request["environment"])
                os._exit(_finished(main.execute(request["arguments"])))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(status, file=answers, flush=True)


def _redirect(folder: Path) -> None:
    for name, number in (("out", 1), ("err", 2)):
        with (folder / name).open("wb") as stream:
            os.dup2(stream.fileno(), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _finished(status: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
