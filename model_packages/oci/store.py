"""A folder of blobs: an OCI image layout (image-spec 1.1, image-layout.md).

A package is visible in a layout when ``index.json`` names it, and that file is replaced whole,
under a lock, after every blob it leads to is on disk. What is read is verified, always.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contracts.base import canonical, failpoint, files
from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError, RegistryUnavailable, UnavailableError
from model_packages.oci import descriptor as descriptors
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.streams import BlobWriter, HashingReader, mismatch

LAYOUT = {"imageLayoutVersion": "1.0.0"}
DOCUMENT_LIMIT = 4 * 2**20  # what registries accept as a manifest
_INDEX_LIMIT = 16 * 2**20
_CHUNK = 1 << 20

Entries = tuple[Descriptor, ...]


class LayoutStore:
    """One OCI image layout."""

    def __init__(self, path: Path) -> None:
        """Name a layout's folder; nothing is read or made."""
        self.path = path
        self._blobs = path / "blobs" / "sha256"

    def create(self) -> LayoutStore:
        """Make the layout if it is not there, and return it.

        Raises:
            UnavailableError: If the folder cannot be written.
            InputError: If it is a layout of another version.
        """
        marker = self.path / "oci-layout"
        if not marker.is_file():
            try:
                self._blobs.mkdir(parents=True, exist_ok=True)
            except OSError as err:
                raise UnavailableError(
                    f"cannot be written: {err.strerror}", location=str(self.path)
                ) from err
            with self._lock():
                if not (self.path / "index.json").exists():
                    self._write_index(())
                files.write_json(marker, LAYOUT)
        self._check_marker()
        return self

    def entries(self) -> Entries:
        """Return what ``index.json`` names.

        Raises:
            RegistryUnavailable: If there is no layout.
            InputError: If it is malformed.
        """
        self._check_marker()
        return self._read_index()

    def find(self, digest: Digest) -> Descriptor:
        """Return the visible package index with a digest.

        Raises:
            RegistryUnavailable: If ``index.json`` does not name it.
            InputError: If the layout is malformed.
        """
        for entry in self.entries():
            if entry.digest == digest and entry.media_type == descriptors.INDEX:
                return entry
        raise RegistryUnavailable(
            f"package {digest} is not here",
            location=str(self.path),
            remedy="Build or push it first, or name another repository.",
        )

    def tagged(self, tag: str) -> Descriptor | None:
        """Return what a tag names, if it names anything."""
        return next((entry for entry in self.entries() if entry.tag == tag), None)

    def update(self, change: Callable[[Entries], Entries]) -> bool:
        """Replace what ``index.json`` names, in one step that no other writer can come between.

        Returns:
            Whether anything changed.
        """
        with self._lock():
            before = self._read_index()
            after = tuple(sorted(change(before), key=lambda item: (item.tag, item.digest)))
            if before == after:
                return False
            self._write_index(after)
            return True

    def put(self, data: bytes, media_type: str, **parts: Any) -> Descriptor:
        """Store bytes and return their descriptor."""
        with self.writer() as writer:
            writer.write(data)
        return writer.described(media_type, **parts)

    def put_json(self, value: Any, media_type: str, **parts: Any) -> Descriptor:
        """Store plain data as canonical JSON and return its descriptor."""
        return self.put(canonical.dumps(value), media_type, **parts)

    @contextlib.contextmanager
    def writer(self, expected: Digest | None = None) -> Iterator[BlobWriter]:
        """Take a blob in pieces; it appears whole under its digest when the block ends well.

        Raises:
            DigestMismatch: If it is not the expected one; nothing is kept.
            UnavailableError: If the disk is full or cannot be written.
        """
        temporary = self._blobs / f".{secrets.token_hex(8)}.part"
        try:
            self._blobs.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as stream:
                writer = BlobWriter(stream)
                yield writer
                if expected is not None and writer.digest != expected:
                    raise mismatch(str(self.path), expected, writer.digest)
                if not self.holds(writer.digest):
                    stream.flush()
                    os.fsync(stream.fileno())
                    failpoint.hit("layout.blob.before")
                    temporary.replace(self.blob(writer.digest))
                    failpoint.hit("layout.blob.after")
        except OSError as err:
            raise UnavailableError(
                f"cannot be written: {err.strerror}",
                location=str(self.path),
                remedy="Check free space and permissions.",
            ) from err
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def blob(self, digest: Digest) -> Path:
        """Return where a blob is or would be."""
        return self._blobs / digests.parse(digest).removeprefix("sha256:")

    def holds(self, digest: Digest) -> bool:
        """Whether a blob is there and unchanged."""
        path = self.blob(digest)
        try:
            return path.is_file() and digests.of_file(path) == digest
        except OSError:
            return False

    def verify(self, descriptor: Descriptor) -> Descriptor:
        """Return the descriptor if its blob is there, whole and unchanged.

        Raises:
            DigestMismatch: If it is not.
        """
        with self.opened(descriptor) as stream:
            while stream.read(_CHUNK):
                pass
        return descriptor

    def read(self, descriptor: Descriptor, *, limit: int = DOCUMENT_LIMIT) -> bytes:
        """Return a blob's bytes.

        Raises:
            DigestMismatch: If it is missing or not what the descriptor promises.
            InputError: If it is larger than ``limit`` bytes.
        """
        if descriptor.size > limit:
            raise InputError(
                "document is too large",
                expected=f"at most {limit} bytes",
                found=f"{descriptor.size} bytes",
                location=str(self.blob(descriptor.digest)),
            )
        with self.opened(descriptor) as stream:
            return stream.read(limit + 1)

    def read_json(self, descriptor: Descriptor) -> Any:
        """Return a JSON blob's plain data; see :meth:`read`."""
        where = str(self.blob(descriptor.digest))
        return canonical.loads(self.read(descriptor), where=where)

    @contextlib.contextmanager
    def opened(self, descriptor: Descriptor) -> Iterator[HashingReader]:
        """Open a blob for reading to its end; leaving the block says if it was the promised one.

        Raises:
            DigestMismatch: If it is missing or not what the descriptor promises.
        """
        path = self.blob(descriptor.digest)
        try:
            size = path.lstat().st_size
            stream = path.open("rb") if path.is_file() and not path.is_symlink() else None
        except OSError:
            stream = None
        if stream is None:
            raise mismatch(str(path), descriptor.digest, "")
        with stream:
            if size != descriptor.size:
                raise mismatch(str(path), f"{descriptor.size} bytes", f"{size} bytes")
            reader = HashingReader(stream)
            try:
                yield reader
            except InputError:
                reader.drain()
                reader.require(descriptor.digest, str(path))
                raise
            reader.drain()
            reader.require(descriptor.digest, str(path))

    def _check_marker(self) -> None:
        marker = self.path / "oci-layout"
        if not marker.is_file():
            raise RegistryUnavailable(
                "no packages here",
                expected="an OCI image layout",
                location=str(self.path),
                remedy="Build or push a package first, or name another repository.",
            )
        if files.read_json(marker, limit=4096) != LAYOUT:
            raise InputError("unknown layout version", expected="1.0.0", location=str(marker))

    def _read_index(self) -> Entries:
        path = self.path / "index.json"
        data = files.read_json(path, limit=_INDEX_LIMIT)
        manifests = data.get("manifests") if isinstance(data, dict) else None
        if not isinstance(manifests, list) or data.get("schemaVersion") != 2:
            raise InputError("not an image index", location=str(path))
        return tuple(descriptors.parse(item, where=str(path)) for item in manifests)

    def _write_index(self, entries: Entries) -> None:
        document = {
            "schemaVersion": 2,
            "mediaType": descriptors.INDEX,
            "manifests": [entry.to_dict() for entry in entries],
        }
        failpoint.hit("layout.index.before")
        files.write_json(self.path / "index.json", document)
        failpoint.hit("layout.index.after")

    def _lock(self) -> contextlib.AbstractContextManager[bool]:
        return files.locked(self.path / ".lock")
