"""Ctrl-C: a command ends at once, and takes with it what its stages started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.waiting import alive, until

_PROGRAM = """
import asyncio, sys
from pathlib import Path
from flows.cli import main
from flows.waves import aside
from tasks import child

SLEEP = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(120)"

@main.app.command()
def sleepy(folder: Path) -> int:
    '''Wait for a child that sleeps.'''
    argv = [sys.executable, "-c", SLEEP]
    limits = child.Limits(wall_s=120)
    asyncio.run(aside(child.run, argv, {}, folder=folder, limits=limits))
    return 0

main.run()
"""


def test_an_interrupt_does_not_wait_for_children(root: Path, tmp_path: Path) -> None:
    """A flow that waits for a long child ends within seconds, with status 130 and no orphan."""
    command = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "sleepy", str(tmp_path)],
        env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
        text=True,
    )
    written = tmp_path / "pid"
    until(lambda: written.exists() and written.read_text() != "", seconds=60)
    sleeper = int(written.read_text())
    begun = time.monotonic()
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert time.monotonic() - begun < 30
    assert command.returncode == 130
    assert "running the command again continues" in said
    assert "Traceback" not in said
    until(lambda: not alive(sleeper), seconds=10)
