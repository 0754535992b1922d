"""Turns rules into SQL. Names and values are quoted here and nowhere else.

``breaks`` is true for a row that breaks a rule, and false or null for every other row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contracts import schema
from contracts.engine.duck import quote_name, quote_text
from contracts.rules import Rule, Value


def breaks(rule: Rule, types: Mapping[str, str]) -> str:
    """Return a condition that is true for each row that breaks a rule.

    Args:
        rule: A rule that rows can break, other than ``unique``; for ``null_share`` the condition
            is true for each null.
        types: Logical type of each column.
    """
    name = quote_name(rule.column)
    if rule.kind in ("not_null", "null_share"):
        return f"{name} IS NULL"
    if rule.kind == "pattern":
        return f"NOT regexp_full_match({name}, {quote_text(rule.pattern)})"
    if rule.kind == "allowed":
        return f"{name} NOT IN ({', '.join(_value(value) for value in rule.values)})"
    kind = types[rule.column]
    if rule.kind == "length":
        measure = "octet_length" if kind == "binary" else "length"
        return _outside(rule, f"{measure}({name})", "int64")
    return _outside(rule, name, kind)


def repeats(rule: Rule) -> str:
    """Return a condition that is true for each row whose combination of values is not unique."""
    columns = ", ".join(quote_name(column) for column in rule.columns)
    return f"({complete(rule.columns)} AND count(*) OVER (PARTITION BY {columns}) > 1)"


def surplus(rule: Rule, types: Mapping[str, str]) -> str:
    """Return an aggregate that is zero only if the values of a ``unique`` rule are unique.

    Wide values are compared by their hash: equal hashes of different values can only make the
    aggregate greater than zero, and then the second look compares the values themselves.
    """
    columns = ", ".join(quote_name(column) for column in rule.columns)
    wide = len(rule.columns) > 1 or types[rule.columns[0]] in ("string", "binary")
    counted = f"hash({columns})" if wide else columns
    condition = complete(rule.columns)
    return (
        f"count(*) FILTER (WHERE {condition})"
        f" - count(DISTINCT {counted}) FILTER (WHERE {condition})"
    )


def complete(columns: Sequence[str]) -> str:
    """Return a condition that is true where no column is null."""
    return " AND ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)


def _outside(rule: Rule, measured: str, kind: str) -> str:
    parts = []
    if rule.minimum is not None:
        parts.append(f"{measured} < {_bound(rule.minimum, kind)}")
    if rule.maximum is not None:
        parts.append(f"{measured} > {_bound(rule.maximum, kind)}")
    if kind.startswith("float"):
        parts.append(f"isnan({measured})")
    return f"({' OR '.join(parts)})"


def _bound(bound: int | float | str, kind: str) -> str:
    if not schema.is_moment(kind):
        return _value(bound)
    if "," in kind:  # a timestamp with a zone
        return f"CAST({quote_text(str(bound))} AS TIMESTAMPTZ)"
    return f"CAST({quote_text(str(bound).removesuffix('Z'))} AS TIMESTAMP)"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, int):
        return str(value)
    return f"CAST({quote_text(repr(value))} AS DOUBLE)"
