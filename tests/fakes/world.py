"""A whole small installation for flows: published contracts, a feature definition, a model, data.

Four days of trips, weather and vehicles make bundles; orders of a shop are a source apart, which a
test may spoil. The checkout links the real code, so that stages are recognised by it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contracts.base import canonical
from contracts.base.report import Report, conclude
from flows.context import Context
from flows.settings import Settings
from flows.waves import Outcome
from tasks.workspace import Workspace
from tests.fakes import batches, observations, packages
from tests.fakes.clock import FixedClock
from tests.tasks.snapshot.conftest import DAYS, deliver, publish_contract

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2020, 3, 4, tzinfo=UTC)
DEFINITION = "small/trips/lateness"
MODEL = "late-trips"
KEYS = {"trips": "number", "weather": "time", "vehicles": "vehicle"}


def build(folder: Path) -> Context:
    """Return the context of a whole installation in an empty folder."""
    root = folder / "checkout"
    for name in ("tasks", "flows", "infra"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    here = context(settings(folder))
    workspace = here.workspace.prepare()
    for kind, key in KEYS.items():
        publish_contract(workspace, kind, key=[key])
        path = here.contracts / "small" / kind / "1.0.0.contract.json"
        plain = json.loads(path.read_text())
        columns = [{**item, "nullable": item["name"] != key} for item in plain["columns"]]
        packages.edit_json(path, columns=columns)
    publish_definition(here, DEFINITION)
    batches.write(here.contracts / "shop/orders/1.0.0.contract.json")
    deliver_trips(workspace)
    deliver_orders(workspace)
    publish_model(here, MODEL)
    return here


def settings(folder: Path) -> Settings:
    """Return the settings of an installation that was built in a folder."""
    home = folder / "hôme folder"
    return Settings(home, home / "sources", 0.0, "local", "warning", "", folder / "checkout")


def context(found: Settings) -> Context:
    """Return the context of an installation, as of now."""
    return Context(found, Workspace(found.home, found.root, FixedClock(NOW)), NOW)


def deliver_trips(workspace: Workspace) -> None:
    """Deliver four days of the small world."""
    for index, day in enumerate(DAYS):
        start = index * 1440
        trips = [observations.trip(n, at=start + n, delay=(n * 7 + index) % 40) for n in range(60)]
        weather = [observations.weather(start + at, at / 9) for at in range(0, 60, 20)]
        deliver(workspace, "trips", f"d{index}", day, trips)
        deliver(workspace, "weather", f"d{index}", day, weather)
    deliver(workspace, "vehicles", "old", "2020-01-01", [observations.vehicle("v1", 1990)])


def deliver_orders(workspace: Workspace, **changes: Any) -> None:
    """Deliver one batch of the shop, fresh unless changed."""
    rows = batches.rows()
    for number, row in enumerate(rows):
        row.update(changes, placed=NOW - timedelta(hours=number + 1))
    batches.deliver(workspace.sources, batches.table(rows), moment=NOW)


def publish_definition(here: Context, name: str, **changes: Any) -> None:
    """Publish a feature definition, with fields replaced."""
    path = here.contracts / f"{name}.features.json"
    path.write_bytes(canonical.dumps({**observations.PLAIN, "name": name, **changes}))


def publish_model(here: Context, name: str, **training: Any) -> Path:
    """Publish a model that asks to be retrained nightly; return its manifest."""
    plain = packages.manifest(packages.Options(name=name))
    said = {**plain["training"], "definition": DEFINITION, "retrain": "nightly", **training}
    path = here.models / name / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**plain, "training": said}))
    return path


def passed(stage: str, subject: str = "s", **facts: Any) -> Outcome:
    """Return a stage that passed."""
    return Outcome(stage, conclude(stage, subject, [], facts=facts), None, 0.5)


def report(stage: str, subject: str = "s", **facts: Any) -> Report:
    """Return the report of a stage that passed."""
    return conclude(stage, subject, [], facts=facts)
