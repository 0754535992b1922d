"""The route: which slot is live, which one is tried, and with what share; all in one word.

Readers take the word once and decide from it, so that no request ever sees half a change. The
word lies in a memory map, ready to be shared by several workers.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from dataclasses import dataclass
from typing import Literal

SlotName = Literal["A", "B"]

SLOTS: tuple[SlotName, SlotName] = ("A", "B")
_NAMES: tuple[SlotName | None, ...] = (None, "A", "B")
_WORD = struct.Struct("=Q")
_SHARE_BITS = 32
_WHOLE = (1 << _SHARE_BITS) - 1


@dataclass(frozen=True)
class Route:
    """Where requests go.

    Attributes:
        live: The slot that serves; None before the first promotion.
        canary: The slot that is tried; None if there is none.
        share: Part of the requests the canary gets, 0 to 1.
    """

    live: SlotName | None = None
    canary: SlotName | None = None
    share: float = 0.0

    def pack(self) -> int:
        """Return the route as one number of 64 bits."""
        share = round(self.share * _WHOLE)
        return _NAMES.index(self.live) | _NAMES.index(self.canary) << 8 | share << 16

    @classmethod
    def unpack(cls, word: int) -> Route:
        """Read the number back; the share has 32 bits."""
        return cls(_NAMES[word & 0xFF], _NAMES[word >> 8 & 0xFF], (word >> 16 & _WHOLE) / _WHOLE)

    def choose(self, key: str) -> SlotName | None:
        """Return the slot for a key; equal keys get equal slots while the share stays."""
        if self.canary is not None and self.share > 0 and fraction(key) < self.share:
            return self.canary
        return self.live


class RouteWord:
    """The word in memory."""

    def __init__(self) -> None:
        """Start with nothing live."""
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._seen = 0
        self._route = Route()

    def read(self) -> Route:
        """Return the route of this moment."""
        (word,) = _WORD.unpack_from(self._memory, 0)
        if word != self._seen:
            self._seen, self._route = word, Route.unpack(word)
        return self._route

    def write(self, route: Route) -> None:
        """Change the route, at once and whole."""
        _WORD.pack_into(self._memory, 0, route.pack())


def idle(route: Route) -> SlotName:
    """Return the slot that is not live."""
    return "B" if route.live == "A" else "A"


def fraction(key: str) -> float:
    """Return the place of a key between 0 and 1: the first 4 bytes of its sha256."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**32
