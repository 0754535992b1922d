"""Cells: a bundle's content cut into row ranges of one column, each with its own digest.

A cell's digest covers its values in one canonical form (little-endian, nulls as zeros beside a
bitmap), so it is the same whatever wrote the file, and a damaged cell can be named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid

BLOCK_ROWS = 16_384

_FIXED = {"bool": "u1", "int64": "<i8", "float32": "<f4", "timestamp": "<i8"}
TYPES = (*sorted(_FIXED), "string")


@dataclass(frozen=True)
class Cells:
    """The digests of one table.

    Attributes:
        types: Canonical type of each column.
        digests: One digest a block, by column.
    """

    types: dict[str, str]
    digests: dict[str, tuple[Digest, ...]]


def measure(table: Any, *, block_rows: int = BLOCK_ROWS) -> Cells:
    """Hash every cell of a pyarrow table.

    Raises:
        BundleInvalid: If a column has a type that bundles do not carry.
    """
    types: dict[str, str] = {}
    digests: dict[str, tuple[Digest, ...]] = {}
    for name in table.column_names:
        types[name] = canonical_type(table.schema.field(name).type, name)
        column = table[name].combine_chunks()
        digests[name] = tuple(
            _digest(column.slice(start, count), types[name])
            for start, count in blocks(table.num_rows, block_rows)
        )
    return Cells(types, digests)


def blocks(rows: int, block_rows: int) -> Iterator[tuple[int, int]]:
    """Yield first row and number of rows of each block."""
    for start in range(0, rows, block_rows):
        yield start, min(block_rows, rows - start)


def canonical_type(arrow_type: Any, name: str) -> str:
    """Return the bundle type of a pyarrow type.

    Raises:
        BundleInvalid: If bundles do not carry it.
    """
    text = str(arrow_type)
    found = {
        "bool": "bool",
        "int64": "int64",
        "float": "float32",
        "string": "string",
        "timestamp[us, tz=UTC]": "timestamp",
    }.get(text)
    if found is None:
        raise BundleInvalid(
            "column has a type that bundles do not carry",
            expected=", ".join(TYPES),
            found=text,
            location=name,
        )
    return found


def _digest(array: Any, kind: str) -> Digest:
    import numpy

    hasher = hashlib.sha256(f"caisson-cell-0\n{kind}\n{len(array)}\n".encode())
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    hasher.update(numpy.packbits(valid, bitorder="little").tobytes())
    for piece in _values(array, kind):
        hasher.update(piece)
    return Digest(f"sha256:{hasher.hexdigest()}")


def _values(array: Any, kind: str) -> Sequence[bytes]:
    import numpy
    import pyarrow

    if kind == "string":
        return _text(array)
    if kind == "timestamp":
        array = array.cast(pyarrow.int64())
    empty = pyarrow.scalar(False if kind == "bool" else 0, type=array.type)
    values = array.fill_null(empty).to_numpy(zero_copy_only=False)
    return [numpy.ascontiguousarray(values, dtype=_FIXED[kind]).tobytes()]


def _text(array: Any) -> Sequence[bytes]:
    """Return the lengths of all values, then their bytes end to end."""
    import numpy

    filled = array.fill_null("")
    _, offsets, data = filled.buffers()
    if data is None or not len(filled):
        return [bytes(4 * len(filled))]
    # A view without copying: the bytes of a block lie side by side between two offsets.
    bounds = numpy.frombuffer(offsets, dtype="<i4")[filled.offset : filled.offset + len(filled) + 1]
    lengths = numpy.diff(bounds).astype("<u4").tobytes()
    return [lengths, bytes(memoryview(data)[int(bounds[0]) : int(bounds[-1])])]
