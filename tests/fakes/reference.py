"""What one whole demo leaves that nobody disturbed: made once, with as little as it may have.

It runs without a network, as a user that is not root and has no name, from a checkout that cannot
be written, in a home folder with a space and an accent, and under ``strace`` where there is one.
Others compare with it, or continue from a copy of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from contracts.base import files
from tests.fakes.confined import confined, impossible
from tests.fakes.installation import ROOT, Ended, Installation

SETTINGS = {"CAISSON_LINGER": "0"}


@dataclass(frozen=True)
class Reference:
    """An installation after one demo, and how the demo went."""

    installation: Installation
    ended: Ended
    seconds: float
    trace: Path | None
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


def _make(folder: Path, trace: Path | None) -> None:
    begun = time.monotonic()
    cut = () if impossible() else confined(network=False, root=False, readonly=(ROOT,))
    prefix = (*cut, *traced(trace))
    ended = Installation(_home(folder), ROOT, prefix).run("demo", "--no-faults", **SETTINGS)
    said = {
        "status": ended.status,
        "out": ended.out,
        "err": ended.err,
        "seconds": round(time.monotonic() - begun, 3),
    }
    files.write_json(folder / "ended.json", said)


if __name__ == "__main__":
    os.umask(0o022)
    found = reference(Path(sys.argv[1]))
    sys.stdout.write(f"{found.ended.status} after {found.seconds} s\n{found.ended.err}\n")
