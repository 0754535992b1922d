"""Who sends requests while a canary runs, and what a started target is tied to.

Usually callers do, and a target outlives the command. The demo sends its own requests and wants
its target to end with it, so it sets both for the flows it starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

_pump: ContextVar[Callable[[], None] | None] = ContextVar("_pump", default=None)
_owner: ContextVar[Path | None] = ContextVar("_owner", default=None)


@contextlib.contextmanager
def supplied(pump: Callable[[], None] | None = None, owner: Path | None = None) -> Iterator[None]:
    """Give the flows started in this block their traffic and tie their target to a lock file."""
    tokens = _pump.set(pump or _pump.get()), _owner.set(owner or _owner.get())
    try:
        yield
    finally:
        _pump.reset(tokens[0])
        _owner.reset(tokens[1])


def pump() -> Callable[[], None] | None:
    """Return what is called between two looks at a canary; None if callers send requests."""
    return _pump.get()


def owner() -> Path | None:
    """Return the lock file whose holder's end ends a started target; None if it outlives us."""
    return _owner.get()
