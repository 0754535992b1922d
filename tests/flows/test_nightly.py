"""A night: what is spoiled stops what depends on it, and nothing else."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.report import Report
from flows import nightly, summary
from flows.context import Context
from tests.fakes import batches, world
from tests.flows.test_retraining import Flows, flows

__all__ = ["flows"]

BATCHES = 4 + 4 + 1 + 1  # trips, weather, vehicles, orders


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("template")


@pytest.fixture
def here(template: Path, tmp_path: Path) -> Context:
    """The small world after one good night whose model was not retrained."""
    if not (template / "made").exists():
        made = world.build(template / "made")
        packed = world.publish_model(made, world.MODEL, retrain="manual")
        asyncio.run(nightly.run(made))
        shutil.rmtree(packed.parent)
    place = tmp_path / "copy"
    shutil.copytree(template / "made", place, symlinks=True)
    settings = world.settings(place)
    return world.context(settings)


def run(here: Context) -> tuple[Report, Counter[tuple[str, str]]]:
    """Run a night and count stages by verdict."""
    report = asyncio.run(nightly.run(here))
    said = Counter((item["stage"], item["verdict"]) for item in report.facts["stages"])
    return report, said


def said_of(report: Report, stage: str, subject: str) -> str:
    return next(
        str(item["verdict"])
        for item in report.facts["stages"]
        if item["stage"] == stage and item["subject"].startswith(subject)
    )


def test_a_good_night(here: Context, flows: Flows) -> None:
    """Every batch is judged, three bundles are made, drift is measured, the model released."""
    world.publish_model(here, world.MODEL)
    report, said = run(here)
    assert report.verdict == "pass", report.findings
    assert said == {
        ("validate", "pass"): BATCHES,
        ("snapshot", "pass"): 3,
        ("drift", "pass"): 1,
        ("train", "pass"): 1,
        ("release", "pass"): 1,
    }
    learned, judged, new = report.facts["bundles"][world.DEFINITION]
    assert len({learned, judged, new}) == 3
    assert flows.called[0][2:4] == (learned, judged)
    assert [item["model"] for item in report.facts["releases"]] == [world.MODEL]
    recorded = here.ledger.records("nightly")[-1]
    assert recorded.body == {"verdict": "pass", "report": report.digest}


def _renamed(here: Context) -> None:
    folder = here.workspace.sources / "shop/orders/day"
    shutil.rmtree(folder)
    table = batches.table(batches.rows()).rename_columns(
        ["id", "client", "amount", "status", "placed"]
    )
    batches.deliver(here.workspace.sources, table, moment=world.NOW)


def _unreadable(here: Context) -> None:
    (here.workspace.sources / "shop/orders/day/batch.json").write_text("{")


def _garbage(here: Context) -> None:
    (here.workspace.sources / "shop/orders/day/part-0.parquet").write_bytes(b"garbage")


def _no_contract(here: Context) -> None:
    (here.contracts / "shop/orders/1.0.0.contract.json").write_text("{")


def _strange(here: Context) -> None:
    (here.workspace.sources / "shop/orders/day/notes.txt").write_text("x")


@pytest.mark.parametrize("poison", [_renamed, _unreadable, _garbage, _no_contract, _strange])
def test_one_poisoned_source_stops_nothing_else(
    here: Context, flows: Flows, poison: Callable[[Context], None]
) -> None:
    """Whatever is wrong with one source, the others are judged and the model is released."""
    world.publish_model(here, world.MODEL)
    poison(here)
    report, said = run(here)
    assert report.verdict == "fail"
    assert said["validate", "pass"] == BATCHES - 1
    assert said["snapshot", "pass"] == 3
    assert said["release", "pass"] == 1
    assert said_of(report, "validate", "shop/orders") in ("fail", "error")
    blocking = [item for item in report.findings if item.blocks]
    assert blocking
    assert all("orders" in f"{item.subject} {item.location}" for item in blocking)
    assert summary.exit_status(report) == (1 if poison is _renamed else 2)


def test_what_reads_a_spoiled_source_is_left_out_with_the_reason(
    here: Context, flows: Flows
) -> None:
    """No bundle is made of a source that was not accepted, and no model is trained on it."""
    world.publish_model(here, world.MODEL)
    (here.workspace.sources / "small/weather/d3/part-00000.parquet").write_bytes(b"garbage")
    report, said = run(here)
    assert said["snapshot", "skip"] == 1
    assert said["train", "skip"] == 1
    assert said_of(report, "validate", "shop/orders") == "pass"
    assert report.facts["bundles"] == {}
    assert flows.called == []


def test_one_malformed_manifest_stops_no_other_model(here: Context, flows: Flows) -> None:
    """The broken model is named; the other is trained and released."""
    world.publish_model(here, world.MODEL)
    (here.models / "broken").mkdir()
    (here.models / "broken" / "manifest.json").write_text("[]")
    report, said = run(here)
    assert said["train", "error"] == 1
    assert said["release", "pass"] == 1
    assert said_of(report, "train", "broken") == "error"
    assert summary.exit_status(report) == 2


def test_one_malformed_definition_stops_no_other(here: Context, flows: Flows) -> None:
    """A definition that cannot be read is an error of its own; the other is frozen."""
    world.publish_definition(here, "small/trips/broken")
    path = here.contracts / "small/trips/broken.features.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "features": "none"}))
    report, said = run(here)
    assert said["snapshot", "error"] == 1
    assert said["snapshot", "pass"] == 3
    assert said_of(report, "snapshot", "small/trips/broken") == "error"


def test_too_few_batches_are_an_error_of_their_definition(here: Context, flows: Flows) -> None:
    """A source that just began makes no bundles, and its contract is judged all the same."""
    for name in ("d2", "d3"):
        shutil.rmtree(here.workspace.sources / "small/trips" / name)
    report, said = run(here)
    assert said["snapshot", "error"] == 1
    assert said["validate", "pass"] == BATCHES - 2
    assert "at least 3" in str([item.message for item in report.findings])


def test_a_batch_of_tomorrow_is_not_seen(here: Context, flows: Flows) -> None:
    """A night as of yesterday does not know today's delivery."""
    earlier = Context(here.settings, here.workspace, here.as_of.replace(day=3))
    _, said = run(earlier)
    assert said["validate", "pass"] == BATCHES - 3


def test_only_the_newest_batch_must_be_fresh_today(here: Context) -> None:
    """Older ones were fresh when they came."""
    moments: Any = nightly._delivered(here, "small/trips")
    assert moments == [("d0", None), ("d1", None), ("d2", None), ("d3", here.as_of)]
    assert nightly._delivered(Context(here.settings, here.workspace, world.NOW), "shop/orders")


def test_live_releases_are_judged_again(here: Context) -> None:
    """A live release that cannot be judged today is in the report, and stops nothing."""
    gone = digest.of_bytes(b"gone")
    here.ledger.append("candidate", gone, {"model": "tiny", "set_digest": gone})
    for target in ("local", "elsewhere"):
        here.ledger.move_pointer("tiny", target, expected=None, new=gone, body={})
    report, said = run(here)
    assert said["snapshot", "pass"] == 3
    assert said_of(report, "reverify", "tiny/local") in ("fail", "error")
    assert said_of(report, "reverify", "tiny/elsewhere") == "error"
