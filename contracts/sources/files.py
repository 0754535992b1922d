"""Batches that lie in folders: ``<root>/<location>/<batch>/*.parquet`` and ``batch.json``.

``batch.json`` holds the logical time and the lineage; it is not among the data files. Links,
folders and files of other kinds in a batch are refused, because nobody would judge them.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from contracts.base import clock, digest, files
from contracts.base.errors import DigestMismatch, InputError, SourceUnavailable
from contracts.sources.interface import Batch, BatchFile, batch_digest
from contracts.terms import Contract

DESCRIPTION = "batch.json"
DATA_SUFFIX = ".parquet"
_LARGEST_DESCRIPTION = 1 << 20
_MOST_FILES = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def list_batches(root: Path, location: str) -> list[str]:
    """Return the names of the batches at a location, sorted; unfinished ones are left out."""
    folder = root / location
    if not folder.is_dir():
        return []
    return sorted(
        path.name
        for path in folder.iterdir()
        if _NAME.fullmatch(path.name) and (path / DESCRIPTION).is_file()
    )


def delivered(root: Path, location: str, as_of: datetime) -> list[str]:
    """Return the names of the batches that are for a moment up to ``as_of``, oldest first.

    Raises:
        InputError: If the description of a batch is malformed.
    """
    moments = []
    for name in list_batches(root, location):
        path = root / location / name / DESCRIPTION
        moment = clock.from_text(_description(path)["logical_time"], where=str(path))
        if moment <= as_of:
            moments.append((moment, name))
    return [name for _, name in sorted(moments)]


def open_batch(root: Path, contract_or_location: Contract | str, name: str) -> Batch:
    """Find a batch and take the digests of its files.

    Args:
        root: Folder of all sources.
        contract_or_location: The contract, or where its batches are below ``root``.
        name: Name of the batch.

    Raises:
        SourceUnavailable: If there is no such batch or it cannot be read.
        InputError: If the batch is malformed.
    """
    if isinstance(contract_or_location, Contract):
        source, location = contract_or_location.name, contract_or_location.location
    else:
        source = location = contract_or_location
    folder = root / location / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        known = list_batches(root, location)
        raise SourceUnavailable(
            "there is no such batch",
            expected=f"one of {', '.join(known[-12:])}" if known else "a batch",
            found=repr(name)[:120],
            location=str(root / location),
        )
    return read_folder(folder, source, name)


def read_folder(folder: Path, source: str, name: str) -> Batch:
    """Read a batch from any folder, such as one in staging.

    Raises:
        InputError: If the batch is malformed.
        SourceUnavailable: If a file cannot be read.
    """
    description = _description(folder / DESCRIPTION)
    found = _data_files(folder)
    moment = clock.from_text(description["logical_time"], where=str(folder / DESCRIPTION))
    return Batch(source, name, found, batch_digest(found), moment, description["lineage"])


def verify(batch: Batch) -> None:
    """Take the digests again, to prove that nothing changed since the batch was opened.

    Raises:
        DigestMismatch: If a file is another than before.
        SourceUnavailable: If one cannot be read any more.
    """
    for known in batch.files:
        actual = _measure(known.path)
        if actual != known:
            raise DigestMismatch(
                "a file of the batch changed while it was read",
                expected=known.sha256,
                found=actual.sha256,
                location=str(known.path),
                remedy="Deliver batches whole: write aside, then rename the folder.",
            )


def _description(path: Path) -> dict[str, Any]:
    data = files.read_json(path, limit=_LARGEST_DESCRIPTION)
    wanted = {"logical_time", "lineage"}
    if not isinstance(data, dict) or set(data) != wanted or not isinstance(data["lineage"], dict):
        raise InputError(
            "not a batch description",
            expected='{"logical_time": "2013-02-01T00:00:00Z", "lineage": {"commit": "..."}}',
            found=", ".join(map(str, data)) if isinstance(data, dict) else type(data).__name__,
            location=str(path),
        )
    return data


def _data_files(folder: Path) -> tuple[BatchFile, ...]:
    entries = sorted(path for path in folder.iterdir() if path.name != DESCRIPTION)
    strange = [
        path.name
        for path in entries
        if path.is_symlink() or not path.is_file() or path.suffix != DATA_SUFFIX
    ]
    if strange or not entries or len(entries) > _MOST_FILES:
        raise InputError(
            "a batch holds something other than its data files",
            expected=f"1 to {_MOST_FILES} plain files *{DATA_SUFFIX} beside {DESCRIPTION}",
            found=", ".join(strange[:10]) or f"{len(entries)} files",
            location=str(folder),
        )
    return tuple(_measure(path) for path in entries)


def _measure(path: Path) -> BatchFile:
    try:
        return BatchFile(path, path.stat().st_size, digest.of_file(path))
    except OSError as err:
        raise SourceUnavailable(f"cannot be read: {err.strerror}", location=str(path)) from err
