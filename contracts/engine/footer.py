"""Reads what Parquet files say of themselves, in milliseconds and without their data."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from contracts import schema
from contracts.base.errors import SourceUnavailable
from contracts.engine.duck import literal, opened, quote_text
from contracts.schema import Column


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself.

    Attributes:
        path: The file.
        rows: Its rows.
        columns: Its own canonical schema.
        newest: Greatest value of the time column asked for; None if the footer does not say.
    """

    path: Path
    rows: int
    columns: tuple[Column, ...]
    newest: datetime | None


def read(paths: Sequence[Path], time_column: str = "") -> tuple[Footer, ...]:
    """Read the footers of files.

    Args:
        paths: The files.
        time_column: Column whose greatest value is wanted; empty for none.

    Raises:
        SourceUnavailable: If a file is missing, no Parquet, or damaged.
        InputError: If it holds a type outside the specification's table.
    """
    found = tuple(_read(path) for path in paths)
    if not time_column or not found:
        return found
    newest = _newest(paths, time_column)
    return tuple(replace(item, newest=newest.get(str(item.path))) for item in found)


def _read(path: Path) -> Footer:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, memory_map=False) as file:
            columns = schema.from_arrow(file.schema_arrow)
            return Footer(path, file.metadata.num_rows, columns, None)
    except (OSError, ValueError, pyarrow.ArrowException) as err:
        raise SourceUnavailable(
            f"not a readable Parquet file: {str(err).splitlines()[0][:200]}",
            location=str(path),
            remedy="Have the batch delivered again.",
        ) from err


def _newest(paths: Sequence[Path], column: str) -> dict[str, datetime | None]:
    """Return each file's greatest value by statistics, if every row group has them.

    The engine reads them and not pyarrow, whose accessors for column chunks end the whole
    process when a footer is damaged (measured with pyarrow 25.0.1).
    """
    files = ", ".join(quote_text(literal(path)) for path in paths)
    query = (
        "SELECT file_name, CASE WHEN count(*) = count(stats_max_value)"  # noqa: S608 - quoted
        " THEN max(TRY_CAST(stats_max_value AS TIMESTAMPTZ)) END"
        f" FROM parquet_metadata([{files}])"
        f" WHERE path_in_schema = {quote_text(column)} GROUP BY file_name"
    )
    with opened(paths, where=f"{len(paths)} footers") as connection:
        rows = connection.execute(query).fetchall()
    return {name: as_moment(value) for name, value in rows}


def as_moment(value: Any) -> datetime | None:
    """Return a date or timestamp as a moment; without a zone it is taken as UTC."""
    if isinstance(value, datetime):
        with contextlib.suppress(OverflowError, ValueError):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None
