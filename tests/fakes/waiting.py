"""Waits for something that another process does, with a deadline and without guessing how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_LOOK_EVERY_S = 0.02


def until(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Return when a condition holds; fail if it does not within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"did not happen within {seconds:g} seconds"
        time.sleep(_LOOK_EVERY_S)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits for its parent to look does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
