"""The canonical schema of data and its hash: names, logical types and nesting, nothing else.

Nullability is a rule and no part of the hash, because writers disagree about it. Neither the
order of columns nor a writer's choice of physical type (``large_string``, dictionary) changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import InputError

_SIMPLE = frozenset(
    {
        "null", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "string", "binary", "date",
    }
)  # fmt: skip
_NESTED = frozenset({"list", "struct", "map"})
_WITH_PARTS = (
    re.compile(r"decimal\(([1-9]|[1-6]\d|7[0-6]),-?\d{1,2}\)"),
    re.compile(r"fixed_binary\([1-9]\d{0,5}\)"),
    re.compile(r"(time|duration|timestamp)\((s|ms|us|ns)\)"),
    re.compile(r"timestamp\((s|ms|us|ns),[A-Za-z0-9_+:/-]{1,64}\)"),
)
_MAXIMUM_DEPTH = 16

_ARROW_SIMPLE = {
    "halffloat": "float16", "float": "float32", "double": "float64",
    "large_string": "string", "string_view": "string", "utf8": "string",
    "large_binary": "binary", "binary_view": "binary",
    "date32[day]": "date", "date64[ms]": "date",
}  # fmt: skip
_ARROW_PARTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"timestamp\[(\w+), tz=(.+)\]"), "timestamp({0},{1})"),
    (re.compile(r"timestamp\[(\w+)\]"), "timestamp({0})"),
    (re.compile(r"time(?:32|64)\[(\w+)\]"), "time({0})"),
    (re.compile(r"duration\[(\w+)\]"), "duration({0})"),
    (re.compile(r"decimal(?:32|64|128|256)\((\d+), (-?\d+)\)"), "decimal({0},{1})"),
    (re.compile(r"fixed_size_binary\[(\d+)\]"), "fixed_binary({0})"),
)


class Field(Protocol):
    """A named, typed member of an Arrow schema; pyarrow's own fields fit."""

    @property
    def name(self) -> str:
        """Name of the member."""
        ...

    @property
    def type(self) -> Any:
        """Its Arrow type."""
        ...


@dataclass(frozen=True)
class Column:
    """A column, or a member of a nested one.

    Attributes:
        name: Its name; members of lists are ``item``, those of maps ``key`` and ``value``.
        type: Logical type from the closed table, such as ``int64`` or ``timestamp(us,UTC)``.
        children: Members of a list, struct or map.
    """

    name: str
    type: str
    children: tuple[Column, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, members in the order of their names."""
        children = sorted(self.children, key=lambda column: column.name)
        return {
            "name": self.name,
            "type": self.type,
            "children": [child.to_dict() for child in children],
        }


def schema_hash(columns: Iterable[Column]) -> Digest:
    """Return the digest of a schema, whatever the order of its columns.

    Raises:
        InputError: If two columns of one level share a name.
    """
    ordered = sorted(columns, key=lambda column: column.name)
    _refuse_twins(ordered, "schema")
    return digest.of_json([column.to_dict() for column in ordered])


def is_logical_type(text: str) -> bool:
    """Tell whether text names a type of the closed table."""
    if text in _SIMPLE or text in _NESTED:
        return True
    return any(pattern.fullmatch(text) for pattern in _WITH_PARTS)


def is_nested(text: str) -> bool:
    """Tell whether a logical type has members."""
    return text in _NESTED


def is_number(text: str) -> bool:
    """Tell whether a logical type holds numbers."""
    return text.startswith(("int", "uint", "float", "decimal"))


def is_moment(text: str) -> bool:
    """Tell whether a logical type holds dates or timestamps."""
    return text == "date" or text.startswith("timestamp")


def from_arrow(fields: Iterable[Field]) -> tuple[Column, ...]:
    """Return the canonical columns of an Arrow schema.

    Args:
        fields: The schema, or any iterable of its fields.

    Raises:
        InputError: If a type is outside the closed table or two columns share a name.
    """
    columns = tuple(_column(field.name, field.type, field.name, 0) for field in fields)
    _refuse_twins(columns, "schema")
    return columns


def differences(promised: Sequence[Column], actual: Sequence[Column]) -> list[tuple[str, str, str]]:
    """Compare two schemas column by column.

    Returns:
        Triples (name, promised type, actual type) in the order of names; a type is empty where
        the column does not exist, and spelled with its members where it is nested.
    """
    left = {column.name: spelled(column) for column in promised}
    right = {column.name: spelled(column) for column in actual}
    names = sorted(left.keys() | right.keys())
    found = [(name, left.get(name, ""), right.get(name, "")) for name in names]
    return [triple for triple in found if triple[1] != triple[2]]


def spelled(column: Column) -> str:
    """Return a column's type as text, with its members if it is nested."""
    if not column.children:
        return column.type
    members = sorted(column.children, key=lambda child: child.name)
    inside = ", ".join(f"{child.name}: {spelled(child)}" for child in members)
    return f"{column.type}<{inside}>"


def _column(name: str, kind: Any, path: str, depth: int) -> Column:
    if depth > _MAXIMUM_DEPTH:
        raise InputError(f"type nests deeper than {_MAXIMUM_DEPTH} levels", location=path)
    text = str(kind)
    if text.startswith("dictionary<"):
        return _column(name, kind.value_type, path, depth)
    if text.startswith("map<"):
        pairs = (("key", kind.key_type), ("value", kind.item_type))
        return Column(name, "map", _members(pairs, path, depth))
    if text.startswith("struct<"):
        inside = [kind.field(index) for index in range(kind.num_fields)]
        members = _members(((field.name, field.type) for field in inside), path, depth)
        _refuse_twins(members, path)
        return Column(name, "struct", members)
    if text.startswith(("list<", "large_list<", "fixed_size_list<", "list_view<")):
        return Column(name, "list", _members((("item", kind.value_type),), path, depth))
    return Column(name, _logical(text, path))


def _members(pairs: Iterable[tuple[str, Any]], path: str, depth: int) -> tuple[Column, ...]:
    return tuple(_column(name, kind, f"{path}.{name}", depth + 1) for name, kind in pairs)


def _logical(text: str, path: str) -> str:
    logical = _ARROW_SIMPLE.get(text, text)
    for pattern, form in _ARROW_PARTS:
        if match := pattern.fullmatch(text):
            logical = form.format(*match.groups())
    if not is_logical_type(logical) or is_nested(logical):
        raise InputError(
            "type is outside the table of the contract specification",
            expected="a logical type such as int64, string or timestamp(us,UTC)",
            found=text[:100],
            location=path,
            remedy="Convert the column where the batch is written.",
        )
    return logical


def _refuse_twins(columns: Sequence[Column], where: str) -> None:
    names = [column.name for column in columns]
    twins = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) != len(names)
        else []
    )
    if twins:
        raise InputError("names are given twice", found=", ".join(twins), location=where)
