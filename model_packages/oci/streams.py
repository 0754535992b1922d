"""Streams that know the digest of what passed through them."""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO

from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch
from model_packages.oci.descriptor import Descriptor

_CHUNK = 1 << 20


class BlobWriter:
    """Takes a blob in pieces and knows its digest at the end."""

    def __init__(self, stream: BinaryIO) -> None:
        """Write to ``stream``."""
        self._stream = stream
        self._hasher = hashlib.sha256()
        self.size = 0

    def write(self, chunk: bytes) -> None:
        """Append bytes."""
        self._hasher.update(chunk)
        self._stream.write(chunk)
        self.size += len(chunk)

    @property
    def digest(self) -> Digest:
        """Digest of all that was written."""
        return Digest(f"sha256:{self._hasher.hexdigest()}")

    def described(self, media_type: str, **parts: Any) -> Descriptor:
        """Return the descriptor of all that was written."""
        return Descriptor(media_type, self.digest, self.size, **parts)


class HashingReader:
    """Reads a stream and hashes all that passes."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read from ``stream``."""
        self._stream = stream
        self._hasher = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes."""
        chunk = self._stream.read(size)
        self._hasher.update(chunk)
        return chunk

    def drain(self) -> None:
        """Read what is left."""
        while self.read(_CHUNK):
            pass

    def require(self, digest: Digest, where: str) -> None:
        """Refuse if what passed was not the promised content.

        Raises:
            DigestMismatch: If it was not.
        """
        found = Digest(f"sha256:{self._hasher.hexdigest()}")
        if found != digest:
            raise mismatch(where, digest, found)


def mismatch(where: str, expected: str, found: str) -> DigestMismatch:
    """Return the error of a blob that is not what it should be."""
    return DigestMismatch(
        "blob was changed" if found else "blob is missing",
        expected=expected,
        found=found,
        location=where,
        remedy="Restore the package from where it was built or pushed, or build it again.",
    )
