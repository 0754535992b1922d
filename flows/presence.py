"""Who works in a home folder: a lock that each process holds shared from its first write on.

Whoever comes first sweeps: what killed processes left half-written is removed only while nobody
else could be writing it. The lock is free again when its holder ends, however it ends.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from contracts.base import files
from tasks.workspace import Workspace

_held: dict[Path, contextlib.ExitStack] = {}
_guard = threading.Lock()


def enter(place: Workspace) -> None:
    """Hold the lock of a home folder until this process ends, after sweeping if it is the first.

    Raises:
        UnavailableError: If the lock file cannot be made.
    """
    with _guard:
        if place.home in _held:
            return
        place.sweep()
        stack = contextlib.ExitStack()
        stack.enter_context(files.locked(place.presence, shared=True))
        _held[place.home] = stack


def leave(place: Workspace) -> None:
    """Give the lock back before this process ends; for tests, and for processes that live on."""
    with _guard:
        held = _held.pop(place.home, None)
    if held is not None:
        held.close()
