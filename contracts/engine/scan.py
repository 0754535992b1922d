"""Runs all rules of a contract in one pass over the data, then looks again at those that fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from contracts import checks
from contracts.base import clock
from contracts.base.errors import ContractInvalid
from contracts.checks import Broken
from contracts.engine import duck, footer, predicates
from contracts.engine.duck import Connection, quote_name
from contracts.rules import Rule
from contracts.terms import Contract

SAMPLES = 5
_MOST_SAMPLED_RULES = 50
_LONGEST_SAMPLE = 200
_EXACT_INTEGER = 2**53 - 1
_MASK = "***"


@dataclass(frozen=True)
class Scan:
    """What one pass over the data found.

    Attributes:
        rows: Rows read.
        newest: Greatest value of the freshness column; None if it has none.
        broken: Rules that do not hold, in the contract's order.
    """

    rows: int
    newest: datetime | None
    broken: tuple[Broken, ...]


def run(contract: Contract, paths: Sequence[Path], *, memory_limit: str = "512MB") -> Scan:
    """Judge the rules of a contract over Parquet files.

    Args:
        contract: The contract; the files must already have its schema.
        paths: The files.
        memory_limit: Memory of the engine.

    Raises:
        SourceUnavailable: If the files cannot be read or memory does not suffice.
        ContractInvalid: If the engine does not accept a pattern.
    """
    where = f"{contract.identity} over {len(paths)} files"
    with duck.opened(paths, where=where, memory_limit=memory_limit) as connection:
        _check_patterns(connection, contract)
        table = duck.parquet(paths)
        row = connection.execute(_one_pass(contract, table)).fetchone() or ()
        rows, newest, counts = int(row[0]), footer.as_moment(row[1]), row[2:]
        broken: list[Broken] = []
        for rule, count in zip(contract.all_rules, counts, strict=True):
            found = _judge(rule, int(count), rows)
            if found and (rule.kind == "unique" or len(broken) < _MOST_SAMPLED_RULES):
                found = _second_look(connection, contract, found, table)
            if found:
                broken.append(found)
        return Scan(rows, newest, tuple(broken))


def check_patterns(contract: Contract) -> None:
    """Prove that the engine accepts every pattern of a contract.

    Raises:
        ContractInvalid: If it does not.
    """
    with duck.opened(where=contract.identity) as connection:
        _check_patterns(connection, contract)


def _check_patterns(connection: Connection, contract: Contract) -> None:
    for rule in contract.rules:
        refusal = duck.refusal_of(connection, rule.pattern) if rule.kind == "pattern" else ""
        if refusal:
            raise ContractInvalid(
                f"rule {rule.id}: {refusal}",
                expected="an RE2 expression",
                found=rule.pattern,
                location=contract.identity,
                remedy="RE2 has no look-around and no back references.",
            )


def _one_pass(contract: Contract, table: str) -> str:
    types = {column.name: column.type for column in contract.columns}
    newest = f"max({quote_name(contract.freshness.column)})" if contract.freshness else "NULL"
    counts = [_count(rule, types) for rule in contract.all_rules]
    return f"SELECT {', '.join(['count(*)', newest, *counts])} FROM {table}"  # noqa: S608 - quoted


def _count(rule: Rule, types: Mapping[str, str]) -> str:
    if rule.kind == "row_count":
        return "count(*)"
    if rule.kind == "unique":
        return predicates.surplus(rule, types)
    return f"count(*) FILTER (WHERE {predicates.breaks(rule, types)})"


def _judge(rule: Rule, count: int, rows: int) -> Broken | None:
    if rule.kind == "row_count":
        return None if checks.row_count_holds(rule, rows) else Broken(rule, rows)
    if rule.kind == "null_share":
        return None if checks.null_share_holds(rule, count, rows) else Broken(rule, count)
    return Broken(rule, count) if count else None


def _second_look(
    connection: Connection, contract: Contract, broken: Broken, table: str
) -> Broken | None:
    """Count exactly where the pass could not, and fetch some of the rows."""
    rule = broken.rule
    if rule.kind == "row_count":
        return broken
    if rule.kind == "unique":
        return _repeated(connection, contract, rule, table)
    types = {column.name: column.type for column in contract.columns}
    names = list(dict.fromkeys((*contract.key, *rule.columns)))
    columns = ", ".join(map(quote_name, names))
    condition = predicates.breaks(rule, types)
    query = f"SELECT {columns} FROM {table} WHERE {condition} ORDER BY ALL LIMIT {SAMPLES}"  # noqa: S608 - quoted
    samples = _samples(connection.execute(query).fetchall(), names, contract.personal())
    return Broken(rule, broken.count, samples)


def _repeated(connection: Connection, contract: Contract, rule: Rule, table: str) -> Broken | None:
    columns = ", ".join(map(quote_name, rule.columns))
    groups = (
        f"SELECT {columns}, count(*) AS repeated_rows FROM {table}"  # noqa: S608 - quoted
        f" WHERE {predicates.complete(rule.columns)} GROUP BY {columns} HAVING count(*) > 1"
    )
    total = connection.execute(f"SELECT sum(repeated_rows) FROM ({groups})").fetchone()  # noqa: S608 - quoted
    if total is None or total[0] is None:
        return None
    rows = connection.execute(f"{groups} ORDER BY ALL LIMIT {SAMPLES}").fetchall()
    names = [*rule.columns, "repeated_rows"]
    return Broken(rule, int(total[0]), _samples(rows, names, contract.personal()))


def _samples(
    rows: Sequence[tuple[Any, ...]], names: Sequence[str], personal: frozenset[str]
) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {
            name: _MASK if name in personal and value is not None else plain(value)
            for name, value in zip(names, row, strict=True)
        }
        for row in rows
    )


def plain(value: Any) -> Any:
    """Return a value of the engine as something JSON carries exactly."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        moment = footer.as_moment(value)
        return clock.to_text(moment) if moment else str(value)
    if isinstance(value, date):
        return value.isoformat()
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST_SAMPLE else f"{text[:_LONGEST_SAMPLE]}..."
