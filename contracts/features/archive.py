"""A bundle as a file anyone opens: a ``tar.gz`` whose bytes depend on its members alone.

Stored deflate blocks, no times, users or paths. Reading is strict and bounded: every header must be
exactly the one that would be written, so nothing can hide in an archive.
"""

from __future__ import annotations

import re
import struct
import tarfile
import zlib
from collections.abc import Mapping

from contracts.base.errors import BundleInvalid

LIMIT = 2 * 2**30
_MOST_MEMBERS = 1000
_BLOCK = 512
_STORED = 65_535
# RFC 1952: magic, deflate, no flags, no time, no hint, unknown system.
_GZIP_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))
_NAME = re.compile(rb"[a-z0-9][a-z0-9._-]{0,98}")


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of named members, the same bytes everywhere.

    Raises:
        BundleInvalid: If a name is not plain.
    """
    pieces: list[bytes] = []
    for name in sorted(members):
        content = members[name]
        pieces += [_header(name.encode(), len(content)), content, bytes(-len(content) % _BLOCK)]
    pieces.append(bytes(2 * _BLOCK))
    return _stored(b"".join(pieces))


def unpack(
    data: bytes, *, where: str, limit: int = LIMIT, checked: bool = True
) -> dict[str, bytes]:
    """Return the members of an archive.

    Args:
        data: The archive.
        where: What is read, for messages.
        limit: Most bytes the archive may unfold to.
        checked: Verify gzip's own header and checksum; only a diagnosis goes without.

    Raises:
        BundleInvalid: If it is no such archive, is too large, or holds anything but plain files.
    """
    tar = memoryview(_inflate(data, where, limit, checked))
    members: dict[str, bytes] = {}
    position = 0
    while not _is_end(tar, position):
        name, size = _read_header(bytes(tar[position : position + _BLOCK]), where)
        start = position + _BLOCK
        position = start + size + -size % _BLOCK
        if position > len(tar) or any(tar[start + size : position]):
            raise BundleInvalid("archive is cut short or padded", found=name, location=where)
        if name in members or len(members) >= _MOST_MEMBERS:
            raise BundleInvalid("archive repeats a member or has too many", location=where)
        members[name] = bytes(tar[start : start + size])
    return members


def _is_end(tar: memoryview, position: int) -> bool:
    """Return whether nothing but the closing blocks is left."""
    return len(tar) - position == 2 * _BLOCK and not any(tar[position:])


def _header(name: bytes, size: int) -> bytes:
    if not _NAME.fullmatch(name):
        raise BundleInvalid("member name is not plain", found=repr(name)[:120])
    item = tarfile.TarInfo(name.decode())
    item.size = size
    return item.tobuf(format=tarfile.USTAR_FORMAT)


def _read_header(block: bytes, where: str) -> tuple[str, int]:
    name = block[:100].rstrip(b"\0")
    digits = block[124:135]
    plain = len(block) == _BLOCK and _NAME.fullmatch(name) and re.fullmatch(rb"[0-7]{11}", digits)
    if not plain or _header(name, int(digits, 8)) != block:
        raise BundleInvalid(
            "archive is not as bundles are written",
            expected="plain files with fixed owner, time and mode",
            found=repr(name)[:120],
            location=where,
            remedy="Fetch the bundle again; do not repack it.",
        )
    return name.decode(), int(digits, 8)


def _stored(data: bytes) -> bytes:
    """Return gzip of data in stored blocks: no compressor, so no compressor's version."""
    pieces = [_GZIP_HEADER]
    for start in range(0, len(data), _STORED):
        block = data[start : start + _STORED]
        last = start + _STORED >= len(data)
        pieces += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    pieces.append(struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF))
    return b"".join(pieces)


def _inflate(data: bytes, where: str, limit: int, checked: bool) -> bytes:
    engine = zlib.decompressobj(wbits=31 if checked else -15)
    try:
        unfolded = engine.decompress(data if checked else data[len(_GZIP_HEADER) :], limit + 1)
    except zlib.error as err:
        raise BundleInvalid(f"not a whole gzip file: {err}", location=where) from err
    if len(unfolded) > limit:
        raise BundleInvalid(
            "archive is too large", expected=f"at most {limit} bytes", location=where
        )
    if checked and (not engine.eof or engine.unused_data):
        raise BundleInvalid("archive is cut short or has a tail", location=where)
    return unfolded
