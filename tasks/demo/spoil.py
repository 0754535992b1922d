"""Plants one fault in a copy of good data, so that the demo can show who notices it.

Nothing good is changed: batches are copied to a folder given by the caller, and a bundle is
damaged only in the object store it is told to damage.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from contracts.base import canonical, clock, files
from contracts.base.errors import InputError
from contracts.features import archive, bundle, pointer
from contracts.objects.interface import ObjectStore
from tasks.demo.data import write_parquet

_DESCRIPTION = "batch.json"


def renamed_column(
    sources: Path, source: str, batch: str, *, column: str, to: str, into: Path
) -> Path:
    """Copy a batch with one column under another name.

    Args:
        sources: Folder of all good sources.
        source: Name of the source, such as ``nyc/flights``.
        batch: Name of the batch.
        column: The column that loses its name.
        to: The name it gets.
        into: Folder of sources that receives the spoiled batch.

    Returns:
        The spoiled batch's folder.

    Raises:
        InputError: If the batch has no such column.
    """

    def rename(table: Any) -> Any:
        names = table.column_names
        if column not in names:
            raise InputError("batch has no such column", found=column, location=f"{source}#{batch}")
        return table.rename_columns([to if name == column else name for name in names])

    return _copied(sources, source, batch, into, table=rename)


def stale_batch(sources: Path, source: str, batch: str, *, days: int, into: Path) -> Path:
    """Copy a batch as if it were delivered days later with the same old rows.

    Args:
        sources: Folder of all good sources.
        source: Name of the source.
        batch: Name of the batch.
        days: How much later its logical time is.
        into: Folder of sources that receives the spoiled batch.

    Returns:
        The spoiled batch's folder.
    """

    def later(description: dict[str, Any]) -> dict[str, Any]:
        moment = clock.from_text(description["logical_time"]) + timedelta(days=days)
        return {**description, "logical_time": clock.to_text(moment)}

    return _copied(sources, source, batch, into, description=later)


def changed_cell(
    store: ObjectStore, definition: str, version: str, *, column: str, row: int
) -> str:
    """Change one number in a published bundle and write the archive back as if nothing happened.

    Args:
        store: The object store to damage.
        definition: Name of the feature definition.
        version: The published feature version.
        column: A numeric column.
        row: The row whose value becomes another.

    Returns:
        Key of the damaged archive.

    Raises:
        InputError: If the bundle has no such column or row.
    """
    import pyarrow
    from pyarrow import parquet

    published = pointer.read(store, definition, version)
    members = archive.unpack(
        store.get(published.archive, limit=archive.LIMIT), where=published.archive
    )
    manifest = bundle.parse(members[bundle.MANIFEST], where=published.archive)
    part = manifest.parts[0].path
    table = parquet.read_table(pyarrow.BufferReader(members[part]))
    if column not in table.column_names or not 0 <= row < table.num_rows:
        raise InputError(
            "bundle has no such cell", found=f"{column}, row {row}", location=published.archive
        )
    values = table[column].to_pylist()
    values[row] = (values[row] or 0.0) + 1.0
    changed = pyarrow.array(values, type=table[column].type)
    position = table.column_names.index(column)
    table = table.set_column(position, column, changed)
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="zstd", store_schema=False)
    store.put(published.archive, archive.pack({**members, part: stream.getvalue()}))
    return published.archive


def _same(value: Any) -> Any:
    return value


def _copied(
    sources: Path,
    source: str,
    batch: str,
    into: Path,
    *,
    table: Callable[[Any], Any] = _same,
    description: Callable[[dict[str, Any]], dict[str, Any]] = _same,
) -> Path:
    from pyarrow import parquet

    origin, target = sources / source / batch, into / source / batch
    if not (origin / _DESCRIPTION).is_file():
        raise InputError("there is no such batch", location=str(origin))
    if target.exists():
        shutil.rmtree(target)
    with files.staging(target) as aside:
        for path in sorted(origin.glob("*.parquet")):
            write_parquet(aside / path.name, table(parquet.read_table(path)))
        plain = files.read_json(origin / _DESCRIPTION)
        (aside / _DESCRIPTION).write_bytes(canonical.dumps(description(plain)) + b"\n")
    return target
