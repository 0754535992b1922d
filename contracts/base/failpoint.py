"""Named points at which a test may end the process; one dictionary look-up when off.

The name at each call is a literal, so that a test can list them all by reading the source.
"""

from __future__ import annotations

import contextlib
import os
import signal

from contracts.base.errors import InputError

_active: dict[str, int] = {}


def configure(specification: str) -> None:
    """Arm points from text such as ``ledger.append.before`` or ``push.blob.after:2``.

    Args:
        specification: Names separated by commas; a number after a colon lets that many
            passes go by first. Empty text disarms all.

    Raises:
        InputError: If a number is malformed.
    """
    _active.clear()
    for part in filter(None, (piece.strip() for piece in specification.split(","))):
        name, _, passes = part.partition(":")
        if passes and not passes.isdigit():
            raise InputError("failpoint count is not a number", found=part)
        _active[name] = int(passes or 0)


def hit(name: str) -> None:
    """End this process as ``kill -9`` would, if the point is armed; its last words name it."""
    if not _active or name not in _active:
        return
    if _active[name] > 0:
        _active[name] -= 1
        return
    with contextlib.suppress(OSError):
        os.write(2, f"failpoint {name}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)
