"""A small contract and batches that keep it, or break exactly what a test asks for."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contracts import schema, spec
from contracts.schema import Column
from contracts.sources import files
from contracts.sources.interface import Batch
from contracts.terms import Contract

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)

_COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "type": "int64", "nullable": False, "personal_data": "none"},
    {"name": "customer", "type": "string", "nullable": False, "personal_data": "personal"},
    {"name": "amount", "type": "float64", "nullable": True, "personal_data": "none"},
    {"name": "status", "type": "string", "nullable": False, "personal_data": "none"},
    {"name": "placed", "type": "timestamp(us,UTC)", "nullable": False, "personal_data": "none"},
]


def document(**changes: Any) -> dict[str, Any]:
    """Return a contract as plain data, with fields replaced; the schema hash always fits."""
    data: dict[str, Any] = {
        "format_version": 0,
        "owner": "shop",
        "source": "orders",
        "version": "1.0.0",
        "description": "Orders of the shop, a batch a day.",
        "contact": "orders@example.org",
        "location": "shop/orders",
        "format": "parquet",
        "license": "CC0-1.0",
        "purpose": "Tests.",
        "retention_days": 30,
        "lineage_anchor": "git_commit:shop/export@8f3a1c",
        "on_violation": "REJECT_AND_ALERT",
        "freshness": {"column": "placed", "sla_ms": 86_400_000, "ahead_ms": 3_600_000},
        "consumers": [{"name": "shop/model", "contact": "model@example.org"}],
        "key": ["id"],
        "columns": [{**column, "description": "A column."} for column in _COLUMNS],
        "rules": [
            {"id": "amount-range", "kind": "range", "columns": ["amount"], "minimum": 0},
            {
                "id": "status-known",
                "kind": "allowed",
                "columns": ["status"],
                "values": ["open", "paid"],
            },
            {"id": "amount-known", "kind": "null_share", "columns": ["amount"], "maximum": 0.5},
        ],
        **copy.deepcopy(changes),
    }
    if "schema_hash" not in changes:
        data["schema_hash"] = hash_of(data["columns"])
    return {name: value for name, value in data.items() if value is not None}


def hash_of(columns: Sequence[Mapping[str, Any]]) -> str:
    """Return the schema hash of columns as written in a contract."""
    return schema.schema_hash(_column(column) for column in columns)


def make(**changes: Any) -> Contract:
    """Return a contract with fields replaced."""
    return spec.parse(json.dumps(document(**changes)).encode())


def write(path: Path, **changes: Any) -> Path:
    """Write a contract file with fields replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(**changes)), encoding="utf-8")
    return path


def rows(count: int = 4, **changes: Mapping[int, Any]) -> list[dict[str, Any]]:
    """Return good rows; each change is a column with values by row."""
    good: list[dict[str, Any]] = [
        {
            "id": number,
            "customer": f"c{number}",
            "amount": float(number),
            "status": "paid",
            "placed": MOMENT - timedelta(hours=number + 1),
        }
        for number in range(count)
    ]
    for column, values in changes.items():
        for row, value in values.items():
            good[row][column] = value
    return good


def table(content: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a table with the contract's schema."""
    import pyarrow as pa

    fields = [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("amount", pa.float64()),
        ("status", pa.string()),
        ("placed", pa.timestamp("us", "UTC")),
    ]
    return pa.Table.from_pylist(list(content), schema=pa.schema(fields))


def deliver(
    root: Path,
    parts: Any,
    *,
    name: str = "day",
    moment: datetime = MOMENT,
    lineage: Mapping[str, Any] | None = None,
    row_group_size: int | None = None,
) -> Batch:
    """Write tables (or one) as a batch of shop/orders and open it."""
    from pyarrow import parquet

    folder = root / "shop/orders" / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts if isinstance(parts, list) else [parts]):
        path = folder / f"part-{number}.parquet"
        parquet.write_table(part, path, row_group_size=row_group_size)
    origin = {"commit": "8f3a1c"} if lineage is None else dict(lineage)
    text = json.dumps({"logical_time": moment.isoformat(), "lineage": origin})
    (folder / "batch.json").write_text(text, encoding="utf-8")
    return files.open_batch(root, "shop/orders", name)


def _column(data: Mapping[str, Any]) -> Column:
    children = tuple(_column(child) for child in data.get("children", []))
    return Column(data["name"], data["type"], children)
