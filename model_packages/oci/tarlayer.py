"""Layers: tar archives with exactly one form for one content (SPEC.md, section 7).

Writing knows only paths and bytes. Reading accepts only what writing would have produced, which
refuses links, devices, sparse files, odd owners and repeated names without a rule for each.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError, UnavailableError
from model_packages.format import inventory as inventories
from model_packages.format.inventory import FileEntry

_BLOCK = 512
_CHUNK = 1 << 20
_END = b"\0" * (2 * _BLOCK)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}

Write = Callable[[bytes], object]


class Readable(Protocol):
    """Where a layer is read from."""

    def read(self, size: int = ..., /) -> bytes:
        """Return at most ``size`` bytes; fewer only at the end."""
        ...


@dataclass(frozen=True)
class Member:
    """One file to pack: what it must hold, where it is now, and its path in the layer."""

    entry: FileEntry
    source: Path
    path: str


def pack(members: Iterable[Member], write: Write) -> None:
    """Write a layer piece by piece, in memory that does not grow with it.

    Args:
        members: The files, in any order.
        write: Takes the bytes.

    Raises:
        DigestMismatch: If a file is not what its entry says any more.
        InputError: If a path is too long for a tar header.
    """
    files = {member.path: member for member in members}
    for name in sorted([*files, *_folders(files)]):
        member = files.get(name)
        write(_header(name, member.entry.size if member else 0))
        if member:
            _copy(member, write)
    write(_END)


def extract(stream: Readable, target: Path, *, where: str = "") -> tuple[FileEntry, ...]:
    """Write a layer's files below a folder.

    Args:
        stream: The layer; the caller judges its digest.
        target: A folder nobody else writes to.
        where: What is read, for messages.

    Returns:
        The files, in the order of the layer.

    Raises:
        InputError: If the layer is not exactly what :func:`pack` writes, or a name is taken.
        UnavailableError: If the folder cannot be written or the disk is full.
    """
    entries = []
    try:
        for name, size in _headers(stream, where):
            path = target / name
            if name.endswith("/"):
                path.mkdir(mode=0o755, exist_ok=True)
            else:
                entries.append(FileEntry(name, size, _extract_file(stream, path, size, where)))
    except (FileExistsError, NotADirectoryError) as err:
        raise InputError("a name is given twice", found=name, location=where) from err
    except OSError as err:
        raise UnavailableError(
            f"cannot be written: {err.strerror}",
            location=str(target),
            remedy="Check free space and permissions.",
        ) from err
    return tuple(entries)


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: count + 1]) + "/" for count in range(len(parts)))
    return found


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o644
    if name.endswith("/"):
        info.type = tarfile.DIRTYPE
        info.mode = 0o755
    try:
        return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")
    except ValueError as err:
        raise InputError(f"does not fit a tar header: {err}", location=name) from err


def _copy(member: Member, write: Write) -> None:
    hasher, size = hashlib.sha256(), 0
    try:
        source = member.source.open("rb")
    except OSError as err:
        raise InputError(f"cannot be read: {err.strerror}", location=str(member.source)) from err
    with source as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > member.entry.size:
                break
            hasher.update(chunk)
            write(chunk)
    found = Digest(f"sha256:{hasher.hexdigest()}")
    if size != member.entry.size or found != member.entry.sha256:
        raise DigestMismatch(
            "file changed while it was packed",
            expected=f"{member.entry.sha256}, {member.entry.size} bytes",
            found=f"{found}, {size} bytes",
            location=str(member.source),
            remedy="Leave the source alone and build again.",
        )
    write(b"\0" * (-size % _BLOCK))


def _headers(stream: Readable, where: str) -> Iterator[tuple[str, int]]:
    """Yield names and sizes; the caller reads each content before it asks for the next."""
    last = ""
    present: set[str] = set()
    count = 0
    while True:
        block = _read(stream, _BLOCK, where)
        if not any(block):
            break
        name, size = _decode(block, where)
        if name <= last:
            raise InputError("names repeat or are out of order", found=name, location=where)
        parent = name.rstrip("/").rpartition("/")[0]
        if parent and f"{parent}/" not in present:
            raise InputError("a file comes before its folder", found=name, location=where)
        present.add(name)
        last, count = name, count + 1
        if count > 2 * inventories.MOST_FILES:
            raise InputError("more entries than a package may hold", location=where)
        yield name, size
    if any(_read(stream, _BLOCK, where)) or stream.read(1):
        raise InputError("bytes follow the end of the archive", location=where)


def _decode(block: bytes, where: str) -> tuple[str, int]:
    try:
        info = tarfile.TarInfo.frombuf(block, "ascii", "strict")
    except (tarfile.HeaderError, ValueError) as err:
        raise InputError(f"not a tar header: {err}", location=where) from err
    kind = _KINDS.get(info.type)
    if kind:
        raise InputError(f"{kind} is not allowed", found=info.name, location=where)
    inventories.check_path(info.name, where=where)
    name = f"{info.name}/" if info.type == tarfile.DIRTYPE else info.name
    size = info.size
    if size < 0 or (name.endswith("/") and size) or _header(name, size) != block:
        raise InputError(
            "entry is not in canonical form (kind, mode, owner, time or padding)",
            found=name,
            location=where,
        )
    return name, size


def _extract_file(stream: Readable, path: Path, size: int, where: str) -> Digest:
    hasher, left = hashlib.sha256(), size
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as output:
        while left:
            chunk = _read(stream, min(left, _CHUNK), where)
            hasher.update(chunk)
            output.write(chunk)
            left -= len(chunk)
    if any(_read(stream, -size % _BLOCK, where)):
        raise InputError("padding is not zero", found=path.name, location=where)
    return Digest(f"sha256:{hasher.hexdigest()}")


def _read(stream: Readable, size: int, where: str) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise InputError("archive is cut short", location=where)
    return data
