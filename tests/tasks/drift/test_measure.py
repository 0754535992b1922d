"""Drift: seasons are told and pass, vanished values and strange categories fail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import InputError
from contracts.base.report import Report
from contracts.features.store import snapshot
from tasks.drift.measure import measure
from tasks.workspace import Workspace
from tests.fakes import observations
from tests.fakes.clock import FixedClock
from tests.fakes.observations import Row

NAME = "small/trips/lateness"


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    return Workspace(home=tmp_path / "home", root=root, clock=FixedClock()).prepare()


def _bundle(workspace: Workspace, trips: Sequence[Row], day: int, **changes: Any) -> str:
    world = {
        "trips": trips,
        "weather": [observations.weather(at, float(at)) for at in range(0, 400, 20)],
        "vehicles": [observations.vehicle("v1")],
    }
    made = snapshot(
        observations.definition(**changes),
        observations.inputs(workspace.tmp / str(day), world),
        as_of=datetime(2020, 3, day, tzinfo=UTC),
        store=workspace.objects,
        provenance={},
    )
    return made.pointer.version


def _trips(**values: Any) -> list[Row]:
    return [
        observations.trip(n, at=n % 200, **{"length": n % 17 / 4, "place": "AB"[n % 2], **values})
        for n in range(400)
    ]


def _measure(workspace: Workspace, trips: Sequence[Row]) -> Report:
    reference = _bundle(workspace, _trips(), 1)
    return measure(workspace, NAME, reference, _bundle(workspace, trips, 2))


def test_the_same_distribution_is_no_finding(workspace: Workspace) -> None:
    """Another sample of the same kind passes without a word, every feature measured."""
    found = _measure(workspace, _trips()[::2] + _trips()[1::2][:150])
    assert (found.verdict, found.findings) == ("pass", ())
    assert [row["name"] for row in found.facts["features"]] == [
        feature["name"] for feature in observations.PLAIN["features"]
    ]


def test_a_shift_is_told_and_passes(workspace: Workspace) -> None:
    """A moved distribution is a low finding that names the feature and how far it moved."""
    moved = [{**row, "length": row["length"] + 2} for row in _trips()]
    found = _measure(workspace, moved)
    assert found.verdict == "pass"
    assert [(item.rule, item.location, item.severity) for item in found.findings] == [
        ("drift.numeric", "length", "low")
    ]


def test_vanished_values_fail(workspace: Workspace) -> None:
    """A feature that lost most of its values fails; one that lost a few is told."""
    gone = [{**row, "length": None if n % 10 else 1.0} for n, row in enumerate(_trips())]
    found = _measure(workspace, gone)
    assert found.verdict == "fail"
    assert (found.findings[0].rule, found.findings[0].severity) == ("drift.missing", "high")
    few = [
        {**row, "length": None if n % 10 == 0 else row["length"]} for n, row in enumerate(_trips())
    ]
    found = measure(workspace, NAME, _bundle(workspace, _trips(), 3), _bundle(workspace, few, 4))
    assert [(item.rule, item.severity) for item in found.findings] == [("drift.missing", "low")]


def test_a_feature_without_any_value_is_measured_by_that(workspace: Workspace) -> None:
    """Where nothing is left there is no distance, only the missing share."""
    found = _measure(workspace, _trips(length=None))
    row = next(row for row in found.facts["features"] if row["name"] == "length")
    assert (row["distance"], row["missing_current"]) == (None, 1.0)
    assert found.verdict == "fail"


def test_strange_categories_fail_in_number(workspace: Workspace) -> None:
    """One row of a category never seen is information; a tenth of them fails."""
    one = _trips()
    one[0] = {**one[0], "place": "C"}
    found = _measure(workspace, one)
    assert [(item.rule, item.severity) for item in found.findings] == [
        ("drift.unseen-category", "info")
    ]
    many = [{**row, "place": "C" if n % 5 == 0 else row["place"]} for n, row in enumerate(_trips())]
    found = measure(workspace, NAME, _bundle(workspace, _trips(), 3), _bundle(workspace, many, 4))
    assert found.verdict == "fail"
    assert ("drift.unseen-category", "high") in [
        (item.rule, item.severity) for item in found.findings
    ]


def test_measuring_twice_is_measuring_once(workspace: Workspace) -> None:
    """A second call reuses the report, which is the same to the last digit."""
    reference, current = _bundle(workspace, _trips(), 1), _bundle(workspace, _trips()[:200], 2)
    first = measure(workspace, NAME, reference, current)
    again = measure(workspace, NAME, reference, current)
    assert again.measurements["unchanged"]
    assert again.digest == first.digest


def test_two_definitions_are_not_compared(workspace: Workspace) -> None:
    """Features computed in two ways cannot be compared."""
    reference = _bundle(workspace, _trips(), 1)
    other = _bundle(workspace, _trips(), 2, title="Another")
    with pytest.raises(InputError, match="two definitions"):
        measure(workspace, NAME, reference, other)
