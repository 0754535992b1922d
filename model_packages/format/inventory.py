"""Which files a tree holds, by content; and the one digest of them all (SPEC.md, section 5).

Nothing here depends on modes, owners, times or the order a folder lists its names in.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError, ManifestInvalid

# One part of a path. It starts with a letter or digit, so nothing is hidden or climbs out.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_LONGEST_PATH = 200
MOST_FILES = 20_000


@dataclass(frozen=True, order=True)
class FileEntry:
    """One file of a tree: its path with ``/``, its size and the sha256 of its content."""

    path: str
    size: int
    sha256: Digest

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Inventory:
    """All files of a tree, sorted by path.

    Attributes:
        root: Folder they were read from.
        entries: The files, sorted by path.
    """

    root: Path
    entries: tuple[FileEntry, ...]

    @property
    def set_digest(self) -> Digest:
        """Digest of the content of all files, however they are packed."""
        return set_digest(self.entries)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.entries)

    def find(self, path: str) -> FileEntry | None:
        """Return the file at ``path``, if there is one."""
        return next((entry for entry in self.entries if entry.path == path), None)


@dataclass(frozen=True)
class Stray:
    """Something in a folder that cannot be part of a package."""

    path: str
    reason: str


def set_digest(entries: Iterable[FileEntry]) -> Digest:
    r"""Return the sha256 over the sorted ``sha256  path`` lines of files.

    ``find . -type f -printf '%P\0' | xargs -0 sha256sum | LC_ALL=C sort | sha256sum`` gives
    the same digits.
    """
    lines = sorted(f"{entry.sha256.removeprefix('sha256:')}  {entry.path}\n" for entry in entries)
    return digests.of_bytes("".join(lines).encode("ascii"))


def read(root: Path) -> Inventory:
    """List and hash the files of a folder.

    Raises:
        ManifestInvalid: If it holds anything but plainly named files and folders.
        InputError: If it is no folder or holds too many files.
    """
    inventory, strays = survey(root)
    if strays:
        raise ManifestInvalid(
            "; ".join(f"{stray.path}: {stray.reason}" for stray in strays[:20]),
            location=str(root),
            remedy="Remove what does not belong into a package.",
        )
    return inventory


def survey(root: Path) -> tuple[Inventory, list[Stray]]:
    """List and hash the files of a folder, and name everything else in it.

    Raises:
        InputError: If it is no folder, cannot be read or holds too many files.
    """
    if root.is_symlink() or not root.is_dir():
        raise InputError("not a folder", location=str(root), remedy="Name the package's folder.")
    entries: list[FileEntry] = []
    strays: list[Stray] = []
    try:
        for path, name in _walk(root, ""):
            reason = _reason(path, name)
            if reason:
                strays.append(Stray(name, reason))
            elif not path.is_dir():
                entries.append(FileEntry(name, path.stat().st_size, digests.of_file(path)))
            if len(entries) + len(strays) > MOST_FILES:
                raise InputError(f"more than {MOST_FILES} files", location=str(root))
    except OSError as err:
        raise InputError(f"cannot be read: {err}", location=str(root)) from err
    strays += _clashes(entries)
    return Inventory(root, tuple(sorted(entries))), sorted(strays, key=lambda stray: stray.path)


def check_path(path: object, *, where: str = "") -> str:
    """Return ``path`` if it is a plain relative path inside a tree.

    Raises:
        InputError: If it is absolute, climbs out, is hidden, or has unusual characters.
    """
    fits = isinstance(path, str) and len(path) <= _LONGEST_PATH and is_plain(path)
    if not fits:
        raise InputError(
            "not a plain path inside the package",
            expected="parts of letters, digits, _ - and . divided by /",
            found=repr(path)[:120],
            location=where,
        )
    return str(path)


def is_plain(path: str) -> bool:
    """Whether every part of a path is an ordinary, visible name."""
    return all(_PART.fullmatch(part) for part in path.split("/"))


def entry_from_dict(data: Any, *, where: str = "") -> FileEntry:
    """Read one file's plain data back.

    Raises:
        InputError: If a field is missing, unknown or malformed.
    """
    if not isinstance(data, Mapping) or set(data) != {"path", "size", "sha256"}:
        raise InputError("not a file entry", found=repr(data)[:100], location=where)
    size = data["size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InputError("size is not a whole number", found=repr(size)[:40], location=where)
    path = check_path(data["path"], where=where)
    return FileEntry(path, size, digests.parse(data["sha256"], where=where))


def verify(root: Path, promised: Iterable[FileEntry]) -> Inventory:
    """Read a folder and compare it with the files it was promised to hold.

    Raises:
        DigestMismatch: If a file was changed, is missing or was added.
    """
    wanted = {entry.path: entry for entry in promised}
    found, strays = survey(root)
    for entry in found.entries:
        other = wanted.pop(entry.path, None)
        if other is None:
            raise _changed("file was added", root, entry.path)
        if other != entry:
            raise _changed("file was changed", root, entry.path, other.sha256, entry.sha256)
    if wanted:
        raise _changed("file is missing", root, min(wanted))
    if strays:
        raise _changed(strays[0].reason, root, strays[0].path)
    return found


def _changed(
    message: str, root: Path, path: str, expected: str = "", found: str = ""
) -> DigestMismatch:
    return DigestMismatch(
        message,
        expected=expected,
        found=found,
        location=str(root / path),
        remedy="Unpack the package again.",
    )


def _walk(folder: Path, prefix: str) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.iterdir()):
        name = f"{prefix}{path.name}"
        yield path, name
        if path.is_dir() and not path.is_symlink() and _PART.fullmatch(path.name):
            yield from _walk(path, f"{name}/")


def _reason(path: Path, name: str) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "links are not allowed"
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return "only files and folders are allowed"
    if not _PART.fullmatch(path.name):
        return "hidden and unusually named files are not allowed"
    if len(name) > _LONGEST_PATH:
        return f"the path is longer than {_LONGEST_PATH} characters"
    return ""


def _clashes(entries: Iterable[FileEntry]) -> list[Stray]:
    """Find paths that are one file where letters have no case."""
    seen: dict[str, str] = {}
    strays = []
    for entry in entries:
        other = seen.setdefault(entry.path.lower(), entry.path)
        if other != entry.path:
            strays.append(Stray(entry.path, f"differs from {other} only in the case of letters"))
    return strays
