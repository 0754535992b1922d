"""Reads feature bundles: exactly the version asked for, verified from its content, or nothing.

Verification does not trust the archive, the manifest or the Parquet writer: every cell is hashed
again and the version's root must follow. What does not fit is named as precisely as it can be.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest, files
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid, CaissonError, DigestMismatch, InputError
from contracts.features import archive, bundle, cells, pointer
from contracts.features.bundle import BundleManifest
from contracts.features.pointer import Pointer
from contracts.objects.interface import ObjectStore

_REMEDY = "Remove the damaged archive and make the snapshot again."


@dataclass(frozen=True)
class Bundle:
    """A verified bundle.

    Attributes:
        manifest: All that it says about itself.
        root: Its identity, computed from its content.
        parquet: The data as a file, if a target was given.
    """

    manifest: BundleManifest
    root: Digest
    parquet: Path | None
    _table: Any

    @property
    def version(self) -> str:
        """The feature version."""
        return self.manifest.version

    def table(self) -> Any:
        """Return the rows as a pyarrow table, in the bundle's order."""
        return self._table


def open_version(
    store: ObjectStore,
    definition: str,
    version: str,
    *,
    target: Path | None = None,
    root: Digest | None = None,
) -> Bundle:
    """Open exactly one version of a bundle.

    Args:
        store: Where bundles are.
        definition: Name of the feature definition.
        version: The feature version.
        target: Folder that shall hold the Parquet file, for readers in other processes; what is
            there already is verified and, where it differs, replaced.
        root: The whole root, where the caller recorded it; the version has twelve digits of it.

    Raises:
        ObjectMissing: If the version is not published or its archive is gone.
        DigestMismatch: If any of its bytes was changed; names the column and rows, or the part.
        BundleInvalid: If what is there is no bundle.
    """
    published = pointer.read(store, definition, version)
    if root is not None and root != published.root:
        raise DigestMismatch(
            "published bundle has another root",
            expected=root,
            found=published.root,
            location=version,
        )
    data = store.get(published.archive, limit=archive.LIMIT)
    whole = digest.of_bytes(data) == published.sha256
    try:
        found, members = verify(data, where=published.archive)
    except InputError as err:
        if whole:
            raise
        raise _changed(published, data) from err
    if found.root != published.root or not whole:
        raise _changed(published, data, found.root)
    path = _place(found.manifest, members, target) if target is not None else None
    return Bundle(found.manifest, found.root, path, found.table())


def read_manifest(store: ObjectStore, published: Pointer) -> BundleManifest:
    """Return what a published bundle says about itself; its root is verified, its cells are not.

    Raises:
        ObjectMissing: If the archive is gone.
        BundleInvalid: If it holds no manifest that can be read.
        DigestMismatch: If the manifest was changed.
    """
    data = store.get(published.archive, limit=archive.LIMIT)
    members = archive.unpack(data, where=published.archive, checked=False)
    content = members.get(bundle.MANIFEST, b"")
    found = bundle.parse(content, where=f"{published.archive}: {bundle.MANIFEST}")
    if found.root != published.root:
        raise _changed(published, data, found.root)
    return found


def verify(data: bytes, *, where: str) -> tuple[Bundle, dict[str, bytes]]:
    """Verify an archive against itself: that its root follows from its cells.

    Returns:
        The bundle and the archive's members.

    Raises:
        DigestMismatch: If a cell or part is not what the manifest says.
        BundleInvalid: If it is no bundle.
    """
    members = archive.unpack(data, where=where)
    if bundle.MANIFEST not in members:
        raise BundleInvalid("archive has no manifest.json", location=where)
    manifest = bundle.parse(members[bundle.MANIFEST], where=f"{where}: {bundle.MANIFEST}")
    expected = {bundle.MANIFEST, *(part.path for part in manifest.parts)}
    if set(members) != expected:
        raise BundleInvalid(
            "archive has other members than its manifest says",
            expected=", ".join(sorted(expected)),
            found=", ".join(sorted(members)),
            location=where,
        )
    part = manifest.parts[0]
    table = _read(members[part.path], manifest, f"{where}: {part.path}")
    _compare(table, manifest, where)
    digest.require(members[part.path], part.sha256, where=f"{where}: {part.path}")
    return Bundle(manifest, manifest.root, None, table), members


def _read(data: bytes, manifest: BundleManifest, where: str) -> Any:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data), page_checksum_verification=True)
        rows = file.metadata.num_rows
        groups = range(file.metadata.num_row_groups)
        unfolded = sum(file.metadata.row_group(index).total_byte_size for index in groups)
        if rows == manifest.rows and unfolded <= archive.LIMIT:
            return file.read(use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError) as err:
        raise DigestMismatch(
            f"part cannot be read: {str(err)[:200]}", location=where, remedy=_REMEDY
        ) from err
    raise DigestMismatch(
        "part does not have the rows of the manifest",
        expected=f"{manifest.rows} rows",
        found=f"{rows} rows, {unfolded} bytes",
        location=where,
        remedy=_REMEDY,
    )


def _compare(table: Any, manifest: BundleManifest, where: str) -> None:
    names = [column.name for column in manifest.columns]
    if table.column_names != names:
        raise DigestMismatch(
            "columns were changed",
            expected=", ".join(names),
            found=", ".join(table.column_names),
            location=where,
            remedy=_REMEDY,
        )
    actual = cells.measure(table, block_rows=manifest.block_rows)
    for column in manifest.columns:
        if actual.types[column.name] != column.type:
            raise DigestMismatch(
                "type of a column was changed",
                expected=column.type,
                found=actual.types[column.name],
                location=f"{where}: column {column.name}",
                remedy=_REMEDY,
            )
        pairs = zip(column.cells, actual.digests[column.name], strict=True)
        for index, (promised, found) in enumerate(pairs):
            if promised != found:
                raise _cell(manifest, column.name, index, promised=promised, found=found)


def _cell(
    manifest: BundleManifest, column: str, index: int, *, promised: Digest, found: Digest
) -> DigestMismatch:
    first = index * manifest.block_rows
    last = min(first + manifest.block_rows, manifest.rows) - 1
    start, end = manifest.block_bounds[index]
    return DigestMismatch(
        f"cell was changed: column {column}, rows {first} to {last} ({start} to {end})",
        expected=promised,
        found=found,
        location=f"{manifest.definition} {manifest.version}",
        remedy=_REMEDY,
    )


def _changed(published: Pointer, data: bytes, root: Digest | None = None) -> CaissonError:
    """Return the error of an archive that is not what was published."""
    if root is not None and root != published.root:
        return DigestMismatch(
            "bundle has another root than published",
            expected=published.root,
            found=root,
            location=published.archive,
            remedy=_REMEDY,
        )
    return DigestMismatch(
        f"{_damaged(data)} was changed",
        expected=published.sha256,
        found=digest.of_bytes(data),
        location=published.archive,
        remedy=_REMEDY,
    )


def _damaged(data: bytes) -> str:
    """Return which part of a damaged archive differs, as far as can be told."""
    with contextlib.suppress(CaissonError):
        members = archive.unpack(data, where="", checked=False)
        manifest = bundle.parse(members[bundle.MANIFEST], where="")
        for part in manifest.parts:
            if digest.of_bytes(members.get(part.path, b"")) != part.sha256:
                return f"part {part.path}"
    return "archive"


def _place(manifest: BundleManifest, members: dict[str, bytes], target: Path) -> Path:
    for name, content in members.items():
        path = target / name
        if not path.is_file() or digest.of_file(path) != digest.of_bytes(content):
            files.write_atomic(path, content)
    return target / manifest.parts[0].path
