"""Quality rules of a contract: what they mean, and how they are read.

Null is never a violation except of ``not_null``, ``null_share`` and of a key. NaN is a value, not
a null, and lies in no range. Patterns must fit the whole value. In ``unique``, rows with a null
among the columns are not compared, and every row of a repeated value counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from contracts import schema
from contracts.base import clock
from contracts.base.report import SEVERITIES, Severity
from contracts.reading import Reader, is_number, shown

Kind = Literal[
    "not_null", "unique", "range", "pattern", "allowed", "length", "row_count", "null_share"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Bound = int | float | str | None
Value = int | float | str | bool

_BOUNDED = ("range", "length", "row_count")
_BATCH_WIDE = ("row_count", "null_share")
_LONGEST_PATTERN = 500
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class Rule:
    """One promise about values.

    Attributes:
        id: Name within the contract; never reused for another promise.
        kind: What is promised.
        columns: The columns concerned; several only for ``unique``, none for ``row_count``.
        severity: How bad a violation is; ``low`` and ``info`` are told and never block.
        minimum: Lowest value, length or number of rows allowed.
        maximum: Highest value, length, number of rows or share of nulls allowed.
        pattern: RE2 expression that the whole value must match.
        values: The allowed values.
        description: Why the rule exists.
    """

    id: str
    kind: Kind
    columns: tuple[str, ...] = ()
    severity: Severity = "high"
    minimum: Bound = None
    maximum: Bound = None
    pattern: str = ""
    values: tuple[Value, ...] = ()
    description: str = ""

    @property
    def column(self) -> str:
        """The column of a rule that has exactly one."""
        return self.columns[0]

    @property
    def by_row(self) -> bool:
        """Whether single rows break the rule, so that they can be put in quarantine."""
        return self.kind not in _BATCH_WIDE

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without what is absent."""
        data: dict[str, Any] = {"id": self.id, "kind": self.kind}
        if self.columns:
            data["columns"] = list(self.columns)
        optional: dict[str, Any] = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "pattern": self.pattern or None,
            "values": list(self.values) or None,
            "description": self.description or None,
        }
        data.update({name: value for name, value in optional.items() if value is not None})
        data["severity"] = self.severity
        return data


def read(reader: Reader, types: Mapping[str, str]) -> Rule:
    """Read one rule.

    Args:
        reader: The rule's object; problems go there.
        types: Logical type of each top-level column.
    """
    name = reader.text("id")
    if name.startswith(("column.", "key.", "rows.")):
        reader.wrong("id", "a name of your own", shown(name), "These prefixes are built in.")
    kind: Kind = reader.choice("kind", KINDS)  # type: ignore[assignment] # choice is among KINDS
    columns = _columns(reader, kind, types)
    severity = reader.choice("severity", SEVERITIES, default="high")
    column_type = types.get(columns[0], "") if columns else ""
    minimum, maximum = _bounds(reader, kind, column_type)
    rule = Rule(
        id=name,
        kind=kind,
        columns=columns,
        severity=severity,  # type: ignore[arg-type] # choice is among SEVERITIES
        minimum=minimum,
        maximum=maximum,
        pattern=_pattern(reader, column_type) if kind == "pattern" else "",
        values=_values(reader, column_type) if kind == "allowed" else (),
        description=reader.text("description", default=""),
    )
    reader.finish()
    return rule


def _columns(reader: Reader, kind: Kind, types: Mapping[str, str]) -> tuple[str, ...]:
    if kind == "row_count":
        return ()
    columns = reader.texts("columns", limit=64)
    if not columns or (len(columns) > 1 and kind != "unique"):
        wanted = "one or more columns" if kind == "unique" else "a list with one column"
        reader.wrong("columns", wanted, f"{len(columns)} columns")
    for column in columns:
        if column not in types:
            reader.wrong("columns", "names of columns of this contract", shown(column))
        elif schema.is_nested(types[column]) and kind not in ("not_null", "null_share"):
            reader.wrong("columns", "a column without members", f"{column}: {types[column]}")
    return columns


def _bounds(reader: Reader, kind: Kind, column_type: str) -> tuple[Bound, Bound]:
    if kind == "null_share":
        share = reader.number("maximum")
        if share is None or not 0 <= share <= 1:
            reader.wrong("maximum", "a share from 0 to 1", shown(share))
        return None, share
    if kind not in _BOUNDED:
        return None, None
    if kind == "length" and column_type and column_type not in ("string", "binary"):
        reader.wrong("columns", "a column of type string or binary", column_type)
    moments = kind == "range" and schema.is_moment(column_type)
    if kind == "range" and column_type and not moments and not schema.is_number(column_type):
        reader.wrong("columns", "a column of numbers, dates or timestamps", column_type)
    read_bound = _moment if moments else _number if kind == "range" else _count
    low, high = read_bound(reader, "minimum"), read_bound(reader, "maximum")
    if low is None and high is None:
        reader.wrong("minimum", "a minimum, a maximum or both", "neither")
    elif low is not None and high is not None and _order(low, moments) > _order(high, moments):
        reader.wrong("maximum", f"at least the minimum {low}", shown(high))
    return low, high


def _number(reader: Reader, name: str) -> Bound:
    return reader.number(name)


def _count(reader: Reader, name: str) -> Bound:
    return reader.integer(name, 0, 2**53 - 1) if reader.has(name) else None


def _moment(reader: Reader, name: str) -> Bound:
    if not reader.has(name):
        return None
    return reader.parsed(name, lambda text: clock.to_text(clock.from_text(text)), None)


def _order(bound: int | float | str, moments: bool) -> float:
    return clock.from_text(str(bound)).timestamp() if moments else float(bound)


def _pattern(reader: Reader, column_type: str) -> str:
    pattern = reader.text("pattern")
    if column_type and column_type != "string":
        reader.wrong("columns", "a column of type string", column_type)
    if len(pattern) > _LONGEST_PATTERN or "\0" in pattern:
        reader.wrong("pattern", f"at most {_LONGEST_PATTERN} characters", f"{len(pattern)}")
    return pattern


def _values(reader: Reader, column_type: str) -> tuple[Value, ...]:
    values = reader.items("values", limit=_MOST_VALUES)
    if not values:
        reader.wrong("values", "at least one value", "none")
    for value in values:
        if column_type and not _suits(value, column_type):
            reader.wrong("values", f"values of type {column_type}", shown(value))
            return ()
    unique = {(type(value).__name__, value) for value in values if isinstance(value, Value)}
    if len(unique) != len(values):
        reader.wrong("values", "each value once", "repeated values")
    return tuple(values)


def _suits(value: Any, column_type: str) -> bool:
    if column_type == "bool":
        return isinstance(value, bool)
    if schema.is_number(column_type):
        whole = column_type.startswith(("int", "uint"))
        return isinstance(value, int) and is_number(value) if whole else is_number(value)
    return column_type == "string" and isinstance(value, str) and "\0" not in value
