"""Cell digests depend on values alone: not on chunks, slices, buffers or what lies under a null."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.errors import BundleInvalid
from contracts.features import cells

KINDS: dict[str, tuple[Any, Any]] = {
    "bool": (pyarrow.bool_(), st.booleans()),
    "int64": (pyarrow.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float32": (pyarrow.float32(), st.floats(width=32, allow_nan=False)),
    "string": (pyarrow.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
    "timestamp": (pyarrow.timestamp("us", tz="UTC"), st.integers(0, 2**50)),
}
FORMATS = {"bool": "B", "int64": "q", "float32": "f", "timestamp": "q"}
SAMPLES: dict[str, list[Any]] = {
    "bool": [True, None, False],
    "int64": [1, None, -1],
    "float32": [1.5, None, -0.5],
    "string": ["a", None, "ä"],
    "timestamp": [0, None, 10**15],
}


def _table(kind: str, values: list[Any]) -> Any:
    return pyarrow.table({"x": pyarrow.array(values, KINDS[kind][0])})


def _digests(table: Any, rows: int = 4) -> tuple[str, ...]:
    return cells.measure(table, block_rows=rows).digests["x"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_chunks_and_slices_do_not_matter(kind: str, data: st.DataObject) -> None:
    """The same values have the same digests, however Arrow holds them in memory."""
    arrow, strategy = KINDS[kind]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=12))
    cut = data.draw(st.integers(0, len(values)))
    whole = _table(kind, values)
    padded = pyarrow.array([None, *values, None], arrow).slice(1, len(values))
    chunks = [pyarrow.array(values[:cut], arrow), pyarrow.array(values[cut:], arrow)]
    assert _digests(pyarrow.table({"x": padded})) == _digests(whole)
    assert _digests(pyarrow.table({"x": pyarrow.chunked_array(chunks)})) == _digests(whole)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_one_other_value_changes_exactly_its_cell(kind: str, data: st.DataObject) -> None:
    """Changing one value, to null or from it, changes the digest of its block and no other."""
    values = data.draw(st.lists(st.none() | KINDS[kind][1], min_size=1, max_size=12))
    row = data.draw(st.integers(0, len(values) - 1))
    other = data.draw((st.none() | KINDS[kind][1]).filter(lambda value: value != values[row]))
    before = _digests(_table(kind, values))
    after = _digests(_table(kind, [*values[:row], other, *values[row + 1 :]]))
    changed = [
        index for index, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
    ]
    assert changed == [row // 4]


def test_what_lies_under_a_null_does_not_matter() -> None:
    """Bytes that a null hides are no content."""
    hidden = numpy.array([1.0, 2.0], "f4")
    first = pyarrow.array(hidden, mask=numpy.array([False, True]))
    second = pyarrow.array(numpy.array([1.0, 9.0], "f4"), mask=numpy.array([False, True]))
    assert _digests(pyarrow.table({"x": first})) == _digests(pyarrow.table({"x": second}))


def test_the_type_is_content() -> None:
    """Equal bytes of two types are two contents."""
    assert _digests(_table("int64", [0])) != _digests(_table("timestamp", [0]))


def test_text_cannot_move_between_rows() -> None:
    """The same letters cut into other rows are another content."""
    assert _digests(_table("string", ["ab", "c"])) != _digests(_table("string", ["a", "bc"]))
    assert _digests(_table("string", [""])) != _digests(_table("string", [None]))


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_canonical_form_is_as_specified(kind: str) -> None:
    """A digest covers a header, a bitmap of what is there, and little-endian values."""
    values = SAMPLES[kind]
    content = f"caisson-cell-0\n{kind}\n{len(values)}\n".encode() + bytes([0b101])
    if kind == "string":
        words = [(value or "").encode() for value in values]
        content += struct.pack("<3I", *map(len, words)) + b"".join(words)
    else:
        content += struct.pack(f"<3{FORMATS[kind]}", *(value or 0 for value in values))
    assert _digests(_table(kind, values)) == ("sha256:" + hashlib.sha256(content).hexdigest(),)


def test_other_types_are_refused() -> None:
    """A type without a canonical form is an error that names column and type."""
    with pytest.raises(BundleInvalid, match=r"x: .*double"):
        cells.measure(pyarrow.table({"x": [1.0]}))


def test_an_empty_table_has_no_cells() -> None:
    """Without rows there is nothing to hash."""
    assert _digests(_table("string", [])) == ()
    assert list(cells.blocks(10, 4)) == [(0, 4), (4, 4), (8, 2)]
