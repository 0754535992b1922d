"""Giving memory back to the system after a model was retired."""

from __future__ import annotations

import ctypes
import gc


def trim() -> bool:
    """Return freed heap pages to the system; False where the C library cannot."""
    gc.collect()
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):
        return False
