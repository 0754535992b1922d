"""A small world of trips, weather and vehicles: batches, a feature definition, and an oracle.

The oracle computes the same features as the point-in-time join, by looping over plain rows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from contracts import schema
from contracts.base import canonical, digest
from contracts.features import declaration
from contracts.features.definition import FeatureDefinition
from contracts.features.inputs import InputBatch, InputData, InputFile

Row = dict[str, Any]

START = datetime(2020, 2, 28, 20, tzinfo=UTC)
MAXIMUM_AGE = 120
SCHEMAS = {
    "trips": {
        "hour": pyarrow.timestamp("ms", tz="UTC"),
        "minute": pyarrow.int32(),
        "year": pyarrow.int32(),
        "month": pyarrow.int32(),
        "day": pyarrow.int32(),
        "number": pyarrow.int32(),
        "place": pyarrow.string(),
        "vehicle": pyarrow.string(),
        "planned": pyarrow.int32(),
        "length": pyarrow.float64(),
        "delay": pyarrow.int32(),
        "left": pyarrow.int32(),
    },
    "weather": {
        "place": pyarrow.string(),
        "time": pyarrow.timestamp("ms", tz="UTC"),
        "warmth": pyarrow.float64(),
    },
    "vehicles": {"vehicle": pyarrow.string(), "built": pyarrow.int32()},
}
PLAIN: Row = {
    "format_version": 0,
    "name": "small/trips/lateness",
    "title": "Will a trip end late?",
    "inputs": [
        {"name": "trips", "contract": "small/trips@1.0.0", "join": "spine"},
        {
            "name": "weather",
            "contract": "small/weather@1.0.0",
            "join": "asof",
            "match": [{"column": "place", "equals": "trips.place"}],
            "time": "time",
            "maximum_age_minutes": MAXIMUM_AGE,
        },
        {
            "name": "vehicles",
            "contract": "small/vehicles@1.0.0",
            "join": "lookup",
            "match": [{"column": "vehicle", "equals": "trips.vehicle"}],
        },
    ],
    "event_time": {
        "name": "start",
        "transform": "hour_and_minute",
        "columns": ["trips.hour", "trips.minute"],
    },
    "key": [{"name": "number", "column": "trips.number"}],
    "features": [
        {
            "name": "place",
            "kind": "categorical",
            "transform": "value",
            "columns": ["trips.place"],
        },
        {
            "name": "weekday",
            "kind": "numeric",
            "transform": "weekday",
            "columns": ["trips.year", "trips.month", "trips.day"],
        },
        {
            "name": "planned_minute",
            "kind": "numeric",
            "transform": "minute_of_day",
            "columns": ["trips.planned"],
        },
        {"name": "length", "kind": "numeric", "transform": "value", "columns": ["trips.length"]},
        {"name": "warmth", "kind": "numeric", "transform": "value", "columns": ["weather.warmth"]},
        {
            "name": "age",
            "kind": "numeric",
            "transform": "difference",
            "columns": ["trips.year", "vehicles.built"],
        },
    ],
    "label": {"name": "late", "column": "trips.delay", "above": 15},
    "known_later": ["trips.left"],
}


def definition(**changes: Any) -> FeatureDefinition:
    """Return the definition, with some of its fields changed."""
    return declaration.parse(canonical.dumps({**PLAIN, **changes}))


def trip(number: int, **values: Any) -> Row:
    """Return a trip; what is not given is ordinary."""
    moment = START + timedelta(minutes=values.pop("at", number))
    plain = {
        "hour": moment.replace(minute=0),
        "minute": moment.minute,
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "number": number,
        "place": "A",
        "vehicle": "v1",
        "planned": 1230,
        "length": 1.5,
        "delay": number % 40,
        "left": 5,
    }
    return {**plain, **values}


def weather(at: int, warmth: float | None, place: str | None = "A") -> Row:
    """Return an observation, ``at`` minutes after the start."""
    return {"place": place, "time": START + timedelta(minutes=at), "warmth": warmth}


def vehicle(name: str, built: int | None = 2000) -> Row:
    """Return a vehicle."""
    return {"vehicle": name, "built": built}


def ordinary(rows: int = 100) -> dict[str, list[Row]]:
    """Return an ordinary world."""
    return {
        "trips": [trip(number, place="AB"[number % 2]) for number in range(rows)],
        "weather": [
            weather(at, at / 7, place) for at in range(0, rows + 60, 30) for place in ("A", "B")
        ],
        "vehicles": [vehicle("v1"), vehicle("v2", None)],
    }


def write(path: Path, kind: str, rows: Sequence[Row], **options: Any) -> Path:
    """Write rows as a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = pyarrow.schema(list(SCHEMAS[kind].items()))
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=columns), path, **options)
    return path


def inputs(folder: Path, world: Mapping[str, Sequence[Row]], *, cut: int = 1) -> dict[str, Any]:
    """Write a world as batches, each source in ``cut`` files, and return them as inputs."""
    found = {}
    for kind, rows in world.items():
        files = []
        for index in range(cut):
            path = write(folder / kind / f"{index}.parquet", kind, rows[index::cut])
            files.append(InputFile(path, digest.of_file(path)))
        columns = schema.from_arrow(pyarrow.schema(list(SCHEMAS[kind].items())))
        batch = InputBatch("b1", digest.of_bytes(kind.encode()), tuple(files))
        contract = f"small/{kind}@1.0.0"
        found[kind] = InputData(contract, schema.schema_hash(columns), (batch,))
    return found


def paths(data: Mapping[str, InputData]) -> dict[str, list[Path]]:
    """Return the files of inputs."""
    return {name: item.files for name, item in data.items()}


def expected(world: Mapping[str, Sequence[Row]], *, labelled: bool = True) -> list[Row]:
    """Return what the join must make, in its order, computed row by row."""
    rows = [_expected(row, world) for row in world["trips"]]
    kept = [row for row in rows if row["late"] is not None or not labelled]
    return sorted(kept, key=_order)


def _expected(row: Row, world: Mapping[str, Sequence[Row]]) -> Row:
    start = row["hour"] + timedelta(minutes=row["minute"])
    known = [
        item
        for item in world["weather"]
        if item["place"] is not None
        and item["place"] == row["place"]
        and item["time"] is not None
        and item["time"] <= start
    ]
    newest = max(
        known,
        key=lambda item: (item["time"], item["warmth"] is not None, item["warmth"] or 0.0),
        default=None,
    )
    fresh = newest is not None and start - newest["time"] <= timedelta(minutes=MAXIMUM_AGE)
    owned = [item for item in world["vehicles"] if item["vehicle"] == row["vehicle"] is not None]
    built = owned[0]["built"] if owned else None
    return {
        "number": row["number"],
        "start": start,
        "place": row["place"],
        "weekday": float(date(row["year"], row["month"], row["day"]).weekday()),
        "planned_minute": _single(row["planned"] // 100 * 60 + row["planned"] % 100),
        "length": _single(row["length"]),
        "warmth": _single(newest["warmth"]) if newest is not None and fresh else None,
        "age": None if built is None else float(row["year"] - built),
        "late": None if row["delay"] is None else row["delay"] > 15,
    }


def _single(value: float | None) -> float | None:
    """Return a number as a 32-bit float keeps it; NaN is missing, and there is one zero."""
    if value is None or value != value:
        return None
    (kept,) = struct.unpack("<f", struct.pack("<f", value))
    return float(kept) + 0.0


def _order(row: Row) -> list[Any]:
    names = ["start", *(name for name in row if name != "start")]
    return [(row[name] is not None, row[name]) for name in names]
