"""The environment of its own: there when it works, or not there at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tasks.trust import environment

_BUILD = """
import sys
from pathlib import Path
from contracts.base import failpoint
from tasks.trust import environment

def make(command, seconds):
    if command[1:3] == ["-m", "venv"]:
        python = Path(command[3], "bin", "python")
        python.parent.mkdir()
        python.write_text("made")

environment._run = make  # stands for pip, which needs the network and a minute
failpoint.configure(sys.argv[3])
environment.build(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def _build(root: Path, environments: Path, point: str) -> int:
    command = [sys.executable, "-c", _BUILD, str(root), str(environments), point]
    return subprocess.run(command, cwd=root, check=False).returncode


def test_a_killed_build_leaves_nothing_that_is_trusted(tmp_path: Path, root: Path) -> None:
    """kill -9 before the move leaves no environment; the next build completes."""
    folder = environment.locate(root, tmp_path)
    assert _build(root, tmp_path, "trust.environment.before") == -9
    assert environment.python_of(folder) is None
    assert _build(root, tmp_path, "") == 0
    assert environment.python_of(folder) is not None
