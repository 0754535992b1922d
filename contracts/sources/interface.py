"""A batch: one delivery of data, known by the digests of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from contracts.base import digest
from contracts.base.digest import Digest


@dataclass(frozen=True)
class BatchFile:
    """One data file of a batch.

    Attributes:
        path: Where it is on this machine.
        size: Its bytes.
        sha256: Digest of its content.
    """

    path: Path
    size: int
    sha256: Digest


@dataclass(frozen=True)
class Batch:
    """One delivery of data.

    Attributes:
        source: Name of the source, such as ``nyc/flights``.
        name: Name of the delivery, such as ``2013-01``.
        files: Its data files, in the order of their names.
        digest: Identity, of the sorted (name, size, digest) of the files.
        logical_time: The moment for which it was delivered; freshness is judged as of it.
        lineage: Where its producer says it comes from, as plain data.
    """

    source: str
    name: str
    files: tuple[BatchFile, ...]
    digest: Digest
    logical_time: datetime
    lineage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(file.path for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def batch_digest(files: Sequence[BatchFile]) -> Digest:
    """Return the identity of a batch: sha256 over its sorted (name, size, digest)."""
    return digest.of_json(sorted([file.path.name, file.size, file.sha256] for file in files))
