"""Content digests. Every identity in the project is a sha256 written ``sha256:<64 hex>``."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NewType

from contracts.base import canonical
from contracts.base.errors import DigestMismatch, InputError

Digest = NewType("Digest", str)

_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
_CHUNK = 1 << 20


def of_bytes(data: bytes) -> Digest:
    """Return the digest of bytes."""
    return Digest(f"sha256:{hashlib.sha256(data).hexdigest()}")


def of_json(value: Any) -> Digest:
    """Return the digest of the canonical JSON of plain data."""
    return of_bytes(canonical.dumps(value))


def of_file(path: Path) -> Digest:
    """Return the digest of a file's content, read in pieces."""
    with path.open("rb") as stream:
        hasher = hashlib.sha256()
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return Digest(f"sha256:{hasher.hexdigest()}")


def parse(text: str, *, where: str = "") -> Digest:
    """Return ``text`` as a digest.

    Raises:
        InputError: If it is not ``sha256:`` and 64 lower-case hexadecimal digits.
    """
    if not isinstance(text, str) or not _PATTERN.fullmatch(text):
        raise InputError(
            "not a digest",
            expected="sha256: and 64 lower-case hexadecimal digits",
            found=repr(text)[:100],
            location=where,
        )
    return Digest(text)


def short(digest: Digest, length: int = 12) -> str:
    """Return the first hexadecimal digits, for people; never compare these."""
    return digest.removeprefix("sha256:")[:length]


def require(data: bytes, promised: Digest, *, where: str = "") -> bytes:
    """Return ``data`` if it hashes to ``promised``.

    Raises:
        DigestMismatch: If it does not.
    """
    actual = of_bytes(data)
    if actual != promised:
        raise DigestMismatch(
            "content was changed",
            expected=promised,
            found=actual,
            location=where,
            remedy="Restore the original, or build it again.",
        )
    return data
