"""What one whole demo leaves that nobody disturbed: made once, with as little as it may have.

It runs without a network, as a user that is not root and has no name, from a checkout that cannot
be written, in a home folder with a space and an accent, and under ``strace`` where there is one.
Beside it a process that has loaded every library that could call home does nothing. Others
compare with it, or continue from a copy of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.base import files
from tests.fakes.confined import confined, impossible
from tests.fakes.installation import ROOT, Ended, Installation

SETTINGS = {"CAISSON_LINGER": "0"}

# ONNX Runtime looks names up 4 to 40 seconds after it was loaded, whatever it is told by calls.
_IDLE_S = 45.0
_IDLE = """
import select, sys, flows
import great_expectations, mlflow.artifacts, onnxruntime, prefect
from pathlib import Path
from onnx import TensorProto, helper
from tasks.lineage.store import Store
from tasks.workspace import Workspace
Store(Workspace(Path(sys.argv[1]), Path(sys.argv[2])).prepare()).reconcile("nothing", None, [])
value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", value[:1], value[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": [1.0]})
select.select([sys.stdin], [], [], float(sys.argv[3]))
"""


@dataclass(frozen=True)
class Reference:
    """An installation after one demo, and how the demo went."""

    installation: Installation
    ended: Ended
    seconds: float
    trace: Path | None
    idle_trace: Path | None
    confinement: str

    def copied(self, folder: Path) -> Installation:
        """Return an installation that begins where the demo ended."""
        return self.installation.copied(folder / "hôme with space")


def reference(shared: Path) -> Reference:
    """Return the reference, made by whoever of this test run comes first.

    Args:
        shared: A folder that all processes of the test run have.
    """
    folder = shared / "reference"
    trace = folder / "trace"
    with files.locked(shared / "reference.lock"):
        if not (folder / "ended.json").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _make(folder, trace if tracer() else None)
    said = files.read_json(folder / "ended.json")
    return Reference(
        Installation(_home(folder)),
        Ended(said["status"], said["out"], said["err"]),
        said["seconds"],
        trace if trace.is_file() else None,
        _idle_trace(folder) if trace.is_file() else None,
        impossible(),
    )


def tracer() -> str | None:
    """Return the path of a strace that may trace, or None."""
    path = shutil.which("strace")
    works = path and subprocess.run([path, "-f", "true"], capture_output=True, check=False)
    return path if works and works.returncode == 0 else None


def traced(trace: Path | None) -> tuple[str, ...]:
    """Return what to put before a command to note its calls to the network."""
    if trace is None:
        return ()
    return ("strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=%network", "-o", str(trace))


def _home(folder: Path) -> Path:
    return folder / "hôme with space"


def _idle_trace(folder: Path) -> Path:
    return folder / "idle.trace"


@contextlib.contextmanager
def _idle(folder: Path) -> Iterator[None]:
    """Have a process that has loaded everything and does nothing, for at least 45 seconds."""
    if tracer() is None:
        yield
        return
    home = folder / "idle"
    arguments = (str(home), str(ROOT), str(_IDLE_S))
    process = subprocess.Popen(
        [*traced(_idle_trace(folder)), sys.executable, "-c", _IDLE, *arguments],
        env=Installation(home).environment(),
        stdin=subprocess.PIPE,
    )
    try:
        yield
    finally:
        assert process.wait(_IDLE_S + 120) == 0
        assert process.stdin is not None
        process.stdin.close()


def _make(folder: Path, trace: Path | None) -> None:
    begun = time.monotonic()
    cut = () if impossible() else confined(network=False, root=False, readonly=(ROOT,))
    prefix = (*cut, *traced(trace))
    with _idle(folder):
        ended = Installation(_home(folder), ROOT, prefix).run("demo", "--no-faults", **SETTINGS)
        seconds = time.monotonic() - begun
    said = {
        "status": ended.status,
        "out": ended.out,
        "err": ended.err,
        "seconds": round(seconds, 3),
    }
    files.write_json(folder / "ended.json", said)


if __name__ == "__main__":
    os.umask(0o022)
    found = reference(Path(sys.argv[1]))
    sys.stdout.write(f"{found.ended.status} after {found.seconds} s\n{found.ended.err}\n")
