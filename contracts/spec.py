"""A contract: what a data source promises, as frozen values, and how its file is read.

A contract is untrusted input. Reading it has limits, fetches nothing and runs nothing; every
problem of a file is reported at once. The rules' meaning is defined in ``rules.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from contracts import rules, schema
from contracts.base import canonical, digest, files, version
from contracts.base.digest import Digest
from contracts.base.version import Version
from contracts.reading import ContractProblems, Problem, Reader, shown
from contracts.rules import Rule
from contracts.schema import Column
from contracts.terms import (
    DAY_MS,
    ON_VIOLATION,
    PERSONAL_DATA,
    ClockKind,
    Consumer,
    Contract,
    ContractColumn,
    Freshness,
    FusePolicy,
    OnViolation,
    PersonalData,
)

__all__ = [
    "LARGEST_FILE",
    "SUFFIX",
    "Consumer",
    "Contract",
    "ContractColumn",
    "Freshness",
    "FusePolicy",
    "OnViolation",
    "PersonalData",
    "Rule",
    "dumps",
    "is_name",
    "load",
    "parse",
]

SUFFIX = ".contract.json"
LARGEST_FILE = 1 << 20
_MOST_COLUMNS = 2000
_MOST_RULES = 5000
_YEAR_MS = 366 * DAY_MS
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_LOCATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,9}")
_ANCHOR = re.compile(r"[a-z][a-z0-9_-]{0,31}:[^\s@]{1,300}@[^\s@]{1,100}")


def load(path: Path) -> Contract:
    """Read a contract file.

    Raises:
        ContractInvalid: If it breaks the specification anywhere.
        InputError: If it cannot be read, is too large or no JSON.
    """
    return parse(files.read_bounded(path, LARGEST_FILE), where=str(path))


def parse(data: bytes, *, where: str = "contract") -> Contract:
    """Read a contract's bytes.

    Args:
        data: The content of a ``.contract.json`` file.
        where: What is being read, for messages.

    Raises:
        ContractProblems: With every place that breaks the specification.
        InputError: If it is too large or no JSON.
    """
    document = canonical.loads(data, limit=LARGEST_FILE, where=where)
    problems: list[Problem] = []
    contract = _read(Reader(document, "", problems), problems)
    if problems:
        raise ContractProblems(problems, where=where)
    return contract


def dumps(contract: Contract) -> bytes:
    """Return the canonical bytes of a contract; equal contracts have equal bytes."""
    return canonical.dumps(contract.to_dict())


def is_name(text: str) -> bool:
    """Tell whether text can name an owner or a source."""
    return bool(_NAME.fullmatch(text))


def _read(reader: Reader, problems: list[Problem]) -> Contract:
    reader.choice("format", ("parquet",))
    if reader.raw("format_version") != 0:
        reader.wrong("format_version", "0", shown(reader.raw("format_version")))
    columns = _columns(reader)
    types = {column.name: column.type for column in columns}
    contract = Contract(
        owner=_matching(reader, "owner", _NAME, "lower-case letters, digits and hyphens"),
        source=_matching(reader, "source", _NAME, "lower-case letters, digits and hyphens"),
        version=reader.parsed("version", version.parse, Version(0, 0, 0)),
        description=reader.text("description"),
        contact=reader.text("contact"),
        location=_matching(reader, "location", _LOCATION, "a relative path such as nyc/flights"),
        format="parquet",
        columns=columns,
        schema_hash=_hash(reader, columns, problems),
        key=_key(reader, columns),
        rules=_rules(reader, types),
        freshness=_freshness(reader, types),
        lineage_anchor=_matching(reader, "lineage_anchor", _ANCHOR, "kind:name@revision"),
        on_violation=reader.choice("on_violation", ON_VIOLATION),  # type: ignore[arg-type] # chosen
        fuse=_fuse(reader),
        consumers=_consumers(reader),
        license=reader.text("license"),
        purpose=reader.text("purpose"),
        retention_days=reader.integer("retention_days", 0, 36_500),
    )
    reader.finish()
    return contract


def _matching(reader: Reader, name: str, pattern: re.Pattern[str], expected: str) -> str:
    value = reader.raw(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        reader.wrong(name, expected, shown(value))
        return ""
    return value


def _columns(reader: Reader) -> tuple[ContractColumn, ...]:
    readers = reader.children("columns", limit=_MOST_COLUMNS)
    columns = tuple(_column(child) for child in readers)
    names = [column.name.casefold() for column in columns]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.wrong("columns", "each name once, whatever its case", f"{shown(name)} twice")
    if not columns:
        reader.wrong("columns", "at least one column", "none")
    return columns


def _column(reader: Reader) -> ContractColumn:
    column = ContractColumn(
        column=_shape(reader, 0),
        nullable=reader.flag("nullable"),
        personal_data=reader.choice("personal_data", PERSONAL_DATA),  # type: ignore[arg-type] # chosen
        description=reader.text("description"),
        unit=reader.text("unit", default=""),
    )
    reader.finish()
    return column


def _shape(reader: Reader, depth: int) -> Column:
    name, kind = reader.text("name"), reader.text("type")
    if len(name) > 255 or "\0" in name:
        reader.wrong("name", "at most 255 characters", f"{len(name)}")
    if not schema.is_logical_type(kind):
        reader.wrong("type", "a logical type such as int64 or timestamp(us,UTC)", shown(kind))
        return Column(name, "null")
    if not schema.is_nested(kind):
        return Column(name, kind)
    if depth >= 15:
        reader.wrong("children", "at most 15 levels", "more")
        return Column(name, kind)
    children = []
    for child in reader.children("children", limit=_MOST_COLUMNS):
        children.append(_shape(child, depth + 1))
        child.finish()
    _check_members(reader, kind, [child.name for child in children])
    return Column(name, kind, tuple(children))


def _check_members(reader: Reader, kind: str, names: Sequence[str]) -> None:
    wanted = {"list": ["item"], "map": ["key", "value"]}.get(kind)
    if wanted is not None and sorted(names) != wanted:
        reader.wrong("children", f"members named {', '.join(wanted)}", ", ".join(names) or "none")
    elif not names or len(set(names)) != len(names):
        reader.wrong("children", "different members, at least one", ", ".join(names) or "none")


def _hash(reader: Reader, columns: Sequence[ContractColumn], problems: list[Problem]) -> Digest:
    fallback = Digest("")
    if any(problem.path.startswith("columns") for problem in problems):
        reader.raw("schema_hash")  # the schema itself is wrong; a hash of it would only confuse
        return fallback
    promised = reader.parsed("schema_hash", digest.parse, fallback)
    actual = schema.schema_hash(column.column for column in columns)
    if promised not in (fallback, actual):
        reader.wrong("schema_hash", f"{actual}, the hash of these columns", promised)
    return promised


def _key(reader: Reader, columns: Sequence[ContractColumn]) -> tuple[str, ...]:
    key = reader.texts("key", limit=64)
    known = {column.name: column for column in columns}
    for name in key:
        if name not in known:
            reader.wrong("key", "names of columns of this contract", shown(name))
        elif known[name].nullable or known[name].column.children:
            reader.wrong("key", f"{name} to be plain and not nullable", "another")
    return key


def _rules(reader: Reader, types: Mapping[str, str]) -> tuple[Rule, ...]:
    read = tuple(rules.read(child, types) for child in reader.children("rules", limit=_MOST_RULES))
    names = [rule.id for rule in read]
    if len(set(names)) != len(names):
        twins = sorted({name for name in names if names.count(name) > 1})
        reader.wrong("rules", "each id once", f"{', '.join(twins)} twice")
    return read


def _freshness(reader: Reader, types: Mapping[str, str]) -> Freshness | None:
    if not reader.has("freshness"):
        return None
    child = reader.child("freshness")
    freshness = Freshness(
        column=child.text("column"),
        sla_ms=child.integer("sla_ms", 1, 10 * _YEAR_MS),
        ahead_ms=child.integer("ahead_ms", 0, _YEAR_MS, default=0),
        clock=child.choice("clock", get_args(ClockKind), default="event"),  # type: ignore[arg-type] # chosen
    )
    child.finish()
    found = types.get(freshness.column, "no such column")
    if not schema.is_moment(found):
        child.wrong("column", "a column of dates or timestamps", found)
    return freshness


def _fuse(reader: Reader) -> FusePolicy:
    if not reader.has("fuse"):
        return FusePolicy()
    child = reader.child("fuse")
    policy = FusePolicy(
        violations=child.integer("violations", 1, 100, default=1),
        retry_after_ms=child.integer("retry_after_ms", 1000, _YEAR_MS, default=DAY_MS),
    )
    child.finish()
    return policy


def _consumers(reader: Reader) -> tuple[Consumer, ...]:
    consumers = []
    for child in reader.children("consumers", limit=1000):
        name = _matching(child, "name", _LOCATION, "a name such as nyc/arrival-delay")
        consumers.append(Consumer(name, child.text("contact")))
        child.finish()
    return tuple(consumers)
