"""Framed, checksummed records in an append-only file; a torn tail is tolerated and cut.

A frame is four marker bytes, the length and the CRC-32 of the payload as little-endian numbers
of 32 bits, and the payload. The marker lets a reader find a frame from any place in the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from contracts.base.errors import CorruptLog

MARKER = b"\xc5CDL"
_HEAD = struct.Struct("<4sII")
_LARGEST = 64 * 1024


def pack(payload: bytes) -> bytes:
    """Return a payload as a frame."""
    return _HEAD.pack(MARKER, len(payload), zlib.crc32(payload)) + payload


def at(data: memoryview, offset: int) -> bytes | None:
    """Return the payload of the frame at an offset, or None if there is no whole, good one."""
    if offset + _HEAD.size > len(data):
        return None
    marker, length, checksum = _HEAD.unpack_from(data, offset)
    end = offset + _HEAD.size + length
    if marker != MARKER or length > _LARGEST or end > len(data):
        return None
    payload = bytes(data[offset + _HEAD.size : end])
    return payload if zlib.crc32(payload) == checksum else None


def scan(data: memoryview, *, where: str = "") -> Iterator[tuple[int, bytes]]:
    """Yield the end and payload of each frame, up to a torn tail.

    Raises:
        CorruptLog: If something other than a torn tail follows the last good frame.
    """
    offset = 0
    while offset < len(data):
        payload = at(data, offset)
        if payload is None:
            _require_torn(data, offset, where)
            return
        offset += _HEAD.size + len(payload)
        yield offset, payload


def _require_torn(data: memoryview, offset: int, where: str) -> None:
    """Tell a write that a crash cut short from a change: nothing good may follow a torn one."""
    rest = bytes(data[offset:])
    following = rest.find(MARKER, 1)
    while following != -1:
        if at(data, offset + following) is not None:
            raise CorruptLog(
                "a record was changed after it was written",
                expected="a good record",
                found=f"damage at byte {offset}, good records after it",
                location=where,
                remedy="Keep the file as evidence; later records can still be found by their id.",
            )
        following = rest.find(MARKER, following + 1)
