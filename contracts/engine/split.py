"""Splits Parquet files into good and bad rows without touching the schema of the good ones.

DuckDB finds the bad rows; pyarrow copies, one row group at a time, because the engine would write
other physical types than the producer did and so change the schema hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.engine import duck, predicates
from contracts.engine.duck import quote_text
from contracts.rules import Rule
from contracts.terms import Contract

_BITS = 62  # of a signed 64-bit mask, so that the value stays positive


@dataclass(frozen=True)
class Counts:
    """Rows of each part."""

    good: int
    bad: int


def write(
    contract: Contract, paths: Sequence[Path], broken: Sequence[Rule], good: Path, bad: Path
) -> Counts:
    """Write the good and the bad rows of files into two folders.

    Args:
        contract: The contract.
        paths: The files as delivered.
        broken: The rules that do not hold; rule ``n`` is bit ``n % 62`` of ``broken_<n // 62>``.
        good: Folder for the good rows, under the files' own names.
        bad: Folder for the bad rows; files without any are left out.

    Raises:
        SourceUnavailable: If the files cannot be read.
    """
    masks = _masks(contract, paths, broken)
    total = put_aside = 0
    for path in paths:
        of_file = masks.get(str(path), {})
        total += _copy(path, of_file, good / path.name, bad / path.name, len(broken))
        put_aside += len(of_file)
    return Counts(total - put_aside, put_aside)


def _masks(
    contract: Contract, paths: Sequence[Path], broken: Sequence[Rule]
) -> dict[str, dict[int, tuple[int, ...]]]:
    """Return the masks of each bad row, by file and by place in the file."""
    types = {column.name: column.type for column in contract.columns}
    columns = []
    for start in range(0, len(broken), _BITS):
        bits = [
            f"CASE WHEN {_condition(rule, types)} THEN {1 << bit} ELSE 0 END"
            for bit, rule in enumerate(broken[start : start + _BITS])
        ]
        columns.append(f"CAST({' + '.join(bits)} AS BIGINT) AS mask_{start // _BITS}")
    names = [f"mask_{index}" for index in range(len(columns))]
    files = ", ".join(quote_text(duck.literal(path)) for path in paths)
    source = (
        f"read_parquet([{files}], union_by_name = true, filename = true, file_row_number = true)"
    )
    query = (
        f"SELECT filename, file_row_number, {', '.join(names)} FROM"  # noqa: S608 - quoted
        f" (SELECT filename, file_row_number, {', '.join(columns)} FROM {source})"
        f" WHERE {' OR '.join(f'{name} <> 0' for name in names)}"
    )
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    with duck.opened(paths, where=contract.identity) as connection:
        for file, row, *mask in connection.execute(query).fetchall():
            found.setdefault(file, {})[row] = tuple(mask)
    return found


def _condition(rule: Rule, types: Mapping[str, str]) -> str:
    return predicates.repeats(rule) if rule.kind == "unique" else predicates.breaks(rule, types)


def _copy(
    path: Path, masks: Mapping[int, tuple[int, ...]], good: Path, bad: Path, rules: int
) -> int:
    """Copy one file's rows to where they belong; return how many there were."""
    import pyarrow
    from pyarrow import parquet

    rows = 0
    extra = [(f"broken_{index}", pyarrow.int64()) for index in range(-(-rules // _BITS))]
    with parquet.ParquetFile(path) as source:
        schema = source.schema_arrow
        marked = schema
        for name, kind in extra:
            marked = marked.append(pyarrow.field(name, kind))
        with parquet.ParquetWriter(good, schema, compression="zstd") as writer:
            for table in _groups(source):
                keep = [rows + place not in masks for place in range(table.num_rows)]
                writer.write_table(table.filter(pyarrow.array(keep, pyarrow.bool_())))
                rows += table.num_rows
        if masks:
            _write_bad(source, marked, masks, bad)
    return rows


def _write_bad(
    source: Any, schema: Any, masks: Mapping[int, tuple[int, ...]], target: Path
) -> None:
    import pyarrow
    from pyarrow import parquet

    start = 0
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for table in _groups(source):
            places = [row for row in range(start, start + table.num_rows) if row in masks]
            chosen = table.take(pyarrow.array([row - start for row in places], pyarrow.int64()))
            for index, name in enumerate(schema.names[table.num_columns :]):
                column = pyarrow.array([masks[row][index] for row in places], pyarrow.int64())
                chosen = chosen.append_column(name, column)
            writer.write_table(chosen)
            start += table.num_rows


def _groups(source: Any) -> Iterator[Any]:
    for index in range(source.num_row_groups):
        yield source.read_row_group(index)
