"""The schema hash: what it depends on, and what it does not."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import schema
from contracts.base.errors import InputError
from contracts.schema import Column

NAMES = st.text(min_size=1, max_size=8)
PLAIN = st.sampled_from(["int32", "int64", "string", "bool", "timestamp(us,UTC)", "decimal(10,2)"])


def _columns(depth: int) -> st.SearchStrategy[Column]:
    plain = st.builds(Column, NAMES, PLAIN)
    if depth == 0:
        return plain
    inside = st.lists(_columns(depth - 1), min_size=1, max_size=3, unique_by=lambda c: c.name)
    nested = st.builds(lambda name, kids: Column(name, "struct", tuple(kids)), NAMES, inside)
    return st.one_of(plain, nested)


SCHEMAS = st.lists(_columns(2), min_size=1, max_size=6, unique_by=lambda column: column.name)


def test_hash_is_what_the_specification_says() -> None:
    """The hash is sha256 over the canonical JSON of name, type and children, sorted by name."""
    text = '[{"children":[],"name":"a","type":"string"},{"children":[],"name":"b","type":"int64"}]'
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert schema.schema_hash([Column("b", "int64"), Column("a", "string")]) == expected


@given(SCHEMAS, st.randoms())
def test_order_of_columns_does_not_count(columns: list[Column], random: object) -> None:
    """Any order of columns and members has the same hash."""
    shuffled = list(columns)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = [Column(c.name, c.type, tuple(reversed(c.children))) for c in shuffled]
    assert schema.schema_hash(turned) == schema.schema_hash(columns)


@given(SCHEMAS, st.data())
def test_every_name_and_type_counts(columns: list[Column], data: st.DataObject) -> None:
    """Another name or type of any column gives another hash, and is named as a difference."""
    index = data.draw(st.integers(0, len(columns) - 1))
    old = columns[index]
    renamed = Column(old.name + "x", old.type, old.children)
    retyped = Column(old.name, "float64")
    for new in (renamed, retyped):
        changed = [*columns[:index], new, *columns[index + 1 :]]
        if len({column.name for column in changed}) < len(changed):
            continue
        assert schema.schema_hash(changed) != schema.schema_hash(columns)
        assert old.name in [name for name, _, _ in schema.differences(columns, changed)]


def test_physical_types_of_one_meaning_are_equal() -> None:
    """large_string, a dictionary of strings and string are one logical type."""
    kinds = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
    found = {schema.schema_hash(schema.from_arrow(pa.schema([("a", kind)]))) for kind in kinds}
    assert len(found) == 1


def test_nullability_is_no_part_of_the_hash() -> None:
    """A writer's not-null mark does not change the schema."""
    first = schema.from_arrow(pa.schema([pa.field("a", pa.int32(), nullable=False)]))
    assert first == schema.from_arrow(pa.schema([pa.field("a", pa.int32())]))


@pytest.mark.parametrize(
    ("kind", "logical"),
    [
        (pa.float64(), "float64"),
        (pa.float16(), "float16"),
        (pa.date32(), "date"),
        (pa.date64(), "date"),
        (pa.time64("us"), "time(us)"),
        (pa.timestamp("ms"), "timestamp(ms)"),
        (pa.timestamp("us", "UTC"), "timestamp(us,UTC)"),
        (pa.timestamp("us", "America/New_York"), "timestamp(us,America/New_York)"),
        (pa.duration("ns"), "duration(ns)"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.decimal256(40, -3), "decimal(40,-3)"),
        (pa.binary(16), "fixed_binary(16)"),
        (pa.large_binary(), "binary"),
        (pa.null(), "null"),
        (pa.bool_(), "bool"),
        (pa.list_(pa.int8()), "list<item: int8>"),
        (pa.large_list(pa.int8()), "list<item: int8>"),
        (pa.list_(pa.int8(), 3), "list<item: int8>"),
        (pa.map_(pa.string(), pa.int8()), "map<key: string, value: int8>"),
        (pa.struct([("b", pa.int8()), ("a", pa.string())]), "struct<a: string, b: int8>"),
    ],
    ids=str,
)
def test_arrow_types_have_one_logical_name(kind: pa.DataType, logical: str) -> None:
    """Each Arrow type is one entry of the closed table."""
    (column,) = schema.from_arrow(pa.schema([("x", kind)]))
    assert schema.spelled(column) == logical
    assert schema.is_logical_type(column.type)


def test_types_outside_the_table_are_refused_by_name() -> None:
    """A type nobody defined is an error that says which column has it."""
    with pytest.raises(InputError, match=r"a\.b.*month_day_nano"):
        schema.from_arrow(pa.schema([("a", pa.struct([("b", pa.month_day_nano_interval())]))]))


def test_columns_of_one_name_are_refused() -> None:
    """Two columns of one name cannot be told apart."""
    with pytest.raises(InputError, match="twice"):
        schema.from_arrow(pa.schema([("a", pa.int8()), ("a", pa.int8())]))


def test_bottomless_types_are_refused() -> None:
    """A type that nests deeper than the limit is an error, not a stack overflow."""
    kind = pa.int8()
    for _ in range(40):
        kind = pa.list_(kind)
    with pytest.raises(InputError, match="nests deeper"):
        schema.from_arrow(pa.schema([("a", kind)]))


@given(st.text(max_size=30))
def test_only_listed_names_are_logical_types(text: str) -> None:
    """Text is a logical type only if it is spelled exactly as the table does."""
    if schema.is_logical_type(text):
        assert text == text.strip()
        assert text.isascii()
