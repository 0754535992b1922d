"""An object store in a local folder, with the semantics of S3: whole objects, conditional puts.

Changes of one key are ordered by a lock file, so a compare-and-set cannot be lost between its
comparison and its write; creation is a hard link, which has one winner whoever holds what.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from contracts.base import digest, failpoint, files
from contracts.base.errors import InputError, OverwriteRefused, PointerMoved, UnavailableError
from contracts.objects.interface import ObjectInfo, ObjectMissing, check_key

_LOCKS = ".locks"


class FolderStore:
    """Objects as files below one folder."""

    def __init__(self, root: Path) -> None:
        """Remember the folder; it is made by the first write."""
        self.root = root

    def put(
        self, key: str, data: bytes, *, if_none_match: bool = False, if_match: str | None = None
    ) -> ObjectInfo:
        """Write an object whole, if its condition holds."""
        path = self._path(key)
        if if_none_match and if_match is not None:
            raise InputError("a put has one condition at most", location=key)
        with self._changing(key), _part(path) as part:
            part.write_bytes(data)
            if if_match is not None:
                self._require(key, if_match)
            self._place(part, path, key, create=if_none_match)
        return ObjectInfo(key, len(data), digest.of_bytes(data))

    def put_file(self, key: str, path: Path, *, if_none_match: bool = False) -> ObjectInfo:
        """Write an object from a file."""
        if not path.is_file():
            raise InputError("file is missing or not a plain file", location=str(path))
        place = self._path(key)
        with self._changing(key), _part(place) as part:
            shutil.copyfile(path, part)
            info = ObjectInfo(key, part.stat().st_size, digest.of_file(part))
            self._place(part, place, key, create=if_none_match)
        return info

    def get(self, key: str, *, limit: int) -> bytes:
        """Return an object's bytes, at most ``limit``."""
        path = self._path(key)
        if not _is_object(path):
            raise _missing(key)
        return files.read_bounded(path, limit)

    def fetch(self, key: str, target: Path) -> None:
        """Write an object's bytes to a file, whole or not at all."""
        path = self._path(key)
        if not _is_object(path):
            raise _missing(key)
        with _part(target) as part:
            shutil.copyfile(path, part)
            part.replace(target)

    def head(self, key: str) -> ObjectInfo | None:
        """Return size and etag of an object; None if there is none."""
        path = self._path(key)
        return _info(key, path) if _is_object(path) else None

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with ``prefix``, sorted by key."""
        for key in self.keys(prefix):
            yield _info(key, self.root / key)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that start with ``prefix``, sorted, without reading the objects."""
        folder = prefix.rpartition("/")[0]
        start = self._path(folder) if folder else self.root
        for key, path in sorted(self._walk(start)):
            if key.startswith(prefix) and _is_object(path):
                yield key

    def delete(self, key: str) -> None:
        """Remove an object; it is not an error if there is none."""
        path = self._path(key)
        with self._changing(key):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _walk(self, start: Path) -> Iterator[tuple[str, Path]]:
        for folder, names, plain in os.walk(start):
            names[:] = [name for name in names if not name.startswith(".")]
            for name in plain:
                if not name.startswith("."):
                    path = Path(folder, name)
                    yield path.relative_to(self.root).as_posix(), path

    def _changing(self, key: str) -> contextlib.AbstractContextManager[bool]:
        name = hashlib.sha256(key.encode()).hexdigest()[:2]
        return files.locked(self.root / _LOCKS / name)

    def _require(self, key: str, etag: str) -> None:
        present = self.head(key)
        if present is None or present.etag != etag:
            raise PointerMoved(
                "object was changed by somebody else",
                expected=etag,
                found=present.etag if present else "no object",
                location=key,
                remedy="Read it again and decide anew.",
            )

    def _place(self, part: Path, path: Path, key: str, *, create: bool) -> None:
        _flush(part)
        failpoint.hit("objects.put.before")
        if create:
            try:
                os.link(part, path)
            except FileExistsError as err:
                raise OverwriteRefused("object exists and may not be replaced", location=key) from (
                    err
                )
        else:
            part.replace(path)
        failpoint.hit("objects.put.after")


@contextlib.contextmanager
def _part(target: Path) -> Iterator[Path]:
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
    except OSError as err:
        raise UnavailableError(
            f"cannot be written: {err.strerror}",
            location=str(target),
            remedy="Check free space and permissions of the folder.",
        ) from err
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _is_object(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _info(key: str, path: Path) -> ObjectInfo:
    return ObjectInfo(key, path.stat().st_size, digest.of_file(path))


def _missing(key: str) -> ObjectMissing:
    return ObjectMissing("no object has this key", location=key)
