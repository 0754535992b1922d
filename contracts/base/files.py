"""Files that are written whole or not at all, and read within limits."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.base import canonical
from contracts.base.errors import InputError, UnavailableError


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that readers see the old content or the new, never a part.

    Args:
        path: The file; missing parent folders are made.
        data: Its content.
        mode: Permission bits.

    Raises:
        UnavailableError: If the folder cannot be written or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as err:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise _unwritable(path, err) from err


def write_json(path: Path, value: Any, *, mode: int = 0o644) -> None:
    """Write plain data as canonical JSON, atomically."""
    write_atomic(path, canonical.dumps(value) + b"\n", mode=mode)


def read_bounded(path: Path, limit: int) -> bytes:
    """Return a file's bytes.

    Raises:
        InputError: If it is missing, not a plain file, or larger than ``limit`` bytes.
    """
    try:
        if not path.is_file():
            raise InputError("file is missing or not a plain file", location=str(path))
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as err:
        raise InputError(f"cannot be read: {err.strerror}", location=str(path)) from err
    if len(data) > limit:
        raise InputError(
            "file is too large",
            expected=f"at most {limit} bytes",
            found=f"{path.stat().st_size} bytes",
            location=str(path),
        )
    return data


def read_json(path: Path, *, limit: int = 16 * 2**20) -> Any:
    """Return a JSON file's plain data, read strictly and within a limit."""
    return canonical.loads(read_bounded(path, limit), limit=limit, where=str(path))


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file; it is free again when the holder ends, however it ends.

    Args:
        path: The lock file; it is made and left behind empty.
        shared: Whether others may hold it shared at the same time.
        wait: Whether to wait for it.

    Yields:
        True if the lock is held; False only if ``wait`` is false and somebody else holds it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        raise _unwritable(path, err) from err
    try:
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, operation if wait else operation | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Build a folder aside and move it into place when the block ends well.

    Args:
        target: Where the folder will be. If it exists already the new one is thrown away,
            because equal names mean equal content wherever this is used.

    Yields:
        An empty folder beside the target to build in.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
        aside.mkdir()
    except OSError as err:
        raise _unwritable(target, err) from err
    try:
        yield aside
        try:
            aside.rename(target)
        except OSError as err:
            if err.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise _unwritable(target, err) from err
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def sweep(folder: Path, pattern: str = "**/.*.part") -> int:
    """Remove what an interrupted write left in a folder tree; return how many things."""
    leftovers = list(folder.glob(pattern)) if folder.is_dir() else []
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(leftovers)


def _unwritable(path: Path, err: OSError) -> UnavailableError:
    return UnavailableError(
        f"cannot be written: {err.strerror}",
        location=str(path),
        remedy="Check free space and permissions of the folder, or set CAISSON_HOME to another.",
    )
