"""An installation with a few days of the small world, as three deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from contracts import schema
from contracts.base import canonical
from tasks.workspace import Workspace
from tests.fakes import observations
from tests.fakes.clock import FixedClock
from tests.fakes.observations import Row

DAYS = ["2020-03-01", "2020-03-02", "2020-03-03", "2020-03-04"]


def deliver(workspace: Workspace, kind: str, name: str, moment: str, rows: Sequence[Row]) -> None:
    folder = workspace.sources / "small" / kind / name
    observations.write(folder / "part-00000.parquet", kind, rows)
    description = {"logical_time": f"{moment}T00:00:00Z", "lineage": {"commit": name}}
    (folder / "batch.json").write_bytes(canonical.dumps(description))


def publish_contract(workspace: Workspace, kind: str, **changes: Any) -> None:
    columns = schema.from_arrow(pyarrow.schema(list(observations.SCHEMAS[kind].items())))
    plain = {
        "format_version": 0,
        "owner": "small",
        "source": kind,
        "version": "1.0.0",
        "description": "Small.",
        "contact": "owner@example.org",
        "location": f"small/{kind}",
        "format": "parquet",
        "license": "CC0-1.0",
        "purpose": "Tests.",
        "retention_days": 0,
        "lineage_anchor": "package:small@1",
        "on_violation": "REJECT_AND_ALERT",
        "consumers": [{"name": "small/model", "contact": "model@example.org"}],
        "schema_hash": schema.schema_hash(columns),
        "key": [columns[0].name],
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "nullable": column.name != columns[0].name,
                "personal_data": "none",
                "description": "A column.",
            }
            for column in columns
        ],
        "rules": [],
        **changes,
    }
    path = workspace.root / "contracts/published/small" / kind / "1.0.0.contract.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical.dumps(plain))


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    checkout = tmp_path / "checkout"
    for room in ("contracts", "model_packages", "tasks"):
        (checkout / room).mkdir(parents=True)
    (checkout / "tasks" / "snapshot").symlink_to(root / "tasks" / "snapshot")
    (checkout / "tasks" / "drift").symlink_to(root / "tasks" / "drift")
    made = Workspace(home=tmp_path / "home", root=checkout, clock=FixedClock()).prepare()
    for kind in observations.SCHEMAS:
        publish_contract(made, kind)
    path = checkout / "contracts/published/small/trips/lateness.features.json"
    path.write_bytes(canonical.dumps(observations.PLAIN))
    for index, day in enumerate(DAYS):
        start = index * 1440
        trips = [observations.trip(n, at=start + n, delay=(n * 7 + index) % 40) for n in range(60)]
        weather = [observations.weather(start + at, at / 9) for at in range(0, 60, 20)]
        deliver(made, "trips", f"d{index}", day, trips)
        deliver(made, "weather", f"d{index}", day, weather)
    deliver(made, "vehicles", "old", "2020-01-01", [observations.vehicle("v1", 1990)])
    deliver(made, "vehicles", "new", "2020-03-01", [observations.vehicle("v1", 1991)])
    return made
