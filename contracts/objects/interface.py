"""What every object store promises; the semantics are those of S3 with conditional writes.

A put is whole or absent, a reader never sees a part, and two conditional writers of one key have
one winner. Keys are relative paths of plain segments; nothing a caller passes can leave the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.base.digest import Digest
from contracts.base.errors import InputError

_SEGMENT = re.compile(r"[A-Za-z0-9_@+=][A-Za-z0-9._@+=-]{0,199}")
_LONGEST_KEY = 1024


class ObjectMissing(InputError):
    """No object has the key asked for."""

    code = "object-missing"


@dataclass(frozen=True)
class ObjectInfo:
    """What a store knows about an object.

    Attributes:
        key: Where it is.
        size: Its bytes.
        etag: Digest of its content; what ``if_match`` compares.
    """

    key: str
    size: int
    etag: Digest


class ObjectStore(Protocol):
    """Bytes under keys."""

    def put(
        self, key: str, data: bytes, *, if_none_match: bool = False, if_match: str | None = None
    ) -> ObjectInfo:
        """Write an object whole.

        Args:
            key: Where to.
            data: Its content.
            if_none_match: Write only if nothing has the key.
            if_match: Write only if the present object has this etag.

        Raises:
            OverwriteRefused: If ``if_none_match`` and the key is taken.
            PointerMoved: If ``if_match`` and the present etag is another, or there is none.
            InputError: If the key is malformed, or both conditions are given.
            UnavailableError: If the store cannot be written.
        """
        ...

    def put_file(self, key: str, path: Path, *, if_none_match: bool = False) -> ObjectInfo:
        """Write an object from a file.

        Raises:
            OverwriteRefused: If ``if_none_match`` and the key is taken.
            InputError: If the key is malformed or the file cannot be read.
            UnavailableError: If the store cannot be written.
        """
        ...

    def get(self, key: str, *, limit: int) -> bytes:
        """Return an object's bytes.

        Raises:
            ObjectMissing: If there is none.
            InputError: If it is larger than ``limit`` bytes.
        """
        ...

    def fetch(self, key: str, target: Path) -> None:
        """Write an object's bytes to a file, whole or not at all.

        Raises:
            ObjectMissing: If there is none.
            UnavailableError: If the target cannot be written.
        """
        ...

    def head(self, key: str) -> ObjectInfo | None:
        """Return what is known about an object; None if there is none."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with ``prefix``, sorted by key."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that start with ``prefix``, sorted, without looking at the objects."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; it is not an error if there is none."""
        ...


def check_key(key: str) -> str:
    """Return a key that is safe on every store.

    Raises:
        InputError: If it is empty, too long, absolute, or a segment is hidden or unusual.
    """
    plain = isinstance(key, str) and len(key) <= _LONGEST_KEY
    if not plain or not all(_SEGMENT.fullmatch(part) for part in key.split("/")):
        raise InputError(
            "not an object key",
            expected="segments of letters, digits and ._@+=- that do not start with . or -",
            found=repr(key)[:200],
        )
    return key
