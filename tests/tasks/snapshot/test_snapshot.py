"""The snapshot stage: which batches, once, accepted ones only, and what a person can see of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import (
    DigestMismatch,
    InputError,
    RefusedError,
    SourceUnavailable,
)
from contracts.base.report import Report, conclude
from contracts.objects.interface import ObjectMissing
from contracts.schema import Column, schema_hash
from contracts.sources import files as sources
from tasks.demo import spoil
from tasks.snapshot import audit, show
from tasks.snapshot.snapshot import snapshot
from tasks.snapshot.window import Selection, window
from tasks.workspace import Workspace
from tests.fakes import observations
from tests.tasks.snapshot.conftest import DAYS, deliver, publish_contract

NAME = "small/trips/lateness"
NOW = datetime(2020, 3, 4, tzinfo=UTC)


def _make(workspace: Workspace, part: Selection, **options: Any) -> Report:
    return snapshot(workspace, NAME, part.batches, part.as_of, **options)


@pytest.fixture
def pair(workspace: Workspace) -> tuple[str, str]:
    chosen = window(workspace, NAME, NOW)
    made = [_make(workspace, part) for part in (chosen.training, chosen.holdout)]
    return made[0].facts["feature_version"], made[1].facts["feature_version"]


def test_the_window_is_training_holdout_and_new(workspace: Workspace) -> None:
    """The newest batch is new, the one before judges, the rest trains; companions follow."""
    chosen = window(workspace, NAME, NOW)
    assert chosen.training.batches == {
        "small/trips": ["d0", "d1"],
        "small/weather": ["d0", "d1"],
        "small/vehicles": ["new"],
    }
    assert chosen.training.as_of == datetime(2020, 3, 2, tzinfo=UTC)
    assert chosen.holdout.batches["small/trips"] == ["d2"]
    assert chosen.holdout.batches["small/weather"] == ["d1", "d2"]
    assert chosen.new.batches["small/trips"] == ["d3"]
    assert chosen.new.as_of == NOW


def test_what_is_not_delivered_yet_is_not_seen(workspace: Workspace) -> None:
    """As of an earlier day later batches do not exist; too few are a clear message."""
    earlier = window(workspace, NAME, datetime(2020, 3, 3, 12, tzinfo=UTC))
    assert earlier.new.batches["small/trips"] == ["d2"]
    with pytest.raises(SourceUnavailable, match="at least 3, got 2"):
        window(workspace, NAME, datetime(2020, 3, 2, tzinfo=UTC))
    shutil.rmtree(workspace.sources / "small" / "vehicles")
    with pytest.raises(SourceUnavailable, match=r"small/vehicles"):
        window(workspace, NAME, NOW)


def test_a_snapshot_says_what_it_is_made_of(workspace: Workspace) -> None:
    """The report names version, root, rows, contracts and every batch by digest."""
    part = window(workspace, NAME, NOW).training
    made = _make(workspace, part)
    batch = sources.open_batch(workspace.sources, "small/trips", "d0")
    assert made.verdict == "pass"
    assert made.subject == f"{NAME}@{made.facts['feature_version']}"
    assert made.facts["feature_version"].startswith("20200302-")
    assert (made.facts["rows"], made.facts["excluded_rows"]) == (120, 0)
    assert made.facts["batches"]["small/trips"]["d0"] == batch.digest
    assert sorted(made.facts["contracts"]) == [
        "small/trips@1.0.0",
        "small/vehicles@1.0.0",
        "small/weather@1.0.0",
    ]


def test_the_same_again_is_unchanged(workspace: Workspace) -> None:
    """A second call does nothing and says so; lost or damaged bundles are noticed."""
    part = window(workspace, NAME, NOW).training
    first = _make(workspace, part)
    again = _make(workspace, part)
    assert again.measurements["unchanged"]
    assert again.digest == first.digest
    workspace.objects.delete(first.facts["archive"])
    assert "unchanged" not in _make(workspace, part).measurements
    spoil.changed_cell(
        workspace.objects, NAME, first.facts["feature_version"], column="warmth", row=3
    )
    with pytest.raises(DigestMismatch, match="column warmth, rows 0 to 119"):
        _make(workspace, part)


def test_sources_must_be_those_of_the_definition(workspace: Workspace) -> None:
    """A missing source and a batch from the future are refused by name."""
    part = window(workspace, NAME, NOW).training
    with pytest.raises(InputError, match=r"small/weather"):
        snapshot(workspace, NAME, {"small/trips": ["d0"]}, part.as_of)
    late = {**part.batches, "small/weather": ["d3"]}
    with pytest.raises(InputError, match=r"not been delivered.*small/weather#d3"):
        snapshot(workspace, NAME, late, part.as_of)
    with pytest.raises(SourceUnavailable):
        snapshot(workspace, NAME, {**part.batches, "small/weather": ["d9"]}, part.as_of)


def _verdicts(workspace: Workspace, part: Selection) -> list[Report]:
    found = []
    for source, names in part.batches.items():
        for name in names:
            batch = sources.open_batch(workspace.sources, source, name)
            accepted = {"digest": batch.digest, "folder": None}
            facts = {"accepted": accepted}
            found.append(conclude("validate", f"{source}@1.0.0#{name}", [], facts=facts))
    return found


def test_only_accepted_batches_are_read(workspace: Workspace) -> None:
    """With verdicts given, each batch needs one that passed, of exactly these bytes."""
    part = window(workspace, NAME, NOW).training
    verdicts = _verdicts(workspace, part)
    assert _make(workspace, part, verdicts=verdicts).verdict == "pass"
    with pytest.raises(RefusedError, match=r"small/trips@1\.0\.0#d0.*not accepted"):
        _make(workspace, part, verdicts=verdicts[1:])
    rejected = Report("validate", verdicts[0].subject, "fail", facts={"accepted": None})
    with pytest.raises(RefusedError, match="got fail"):
        _make(workspace, part, verdicts=[*verdicts, rejected])
    other = {"accepted": {"digest": "sha256:" + "0" * 64, "folder": None}}
    changed = conclude("validate", verdicts[0].subject, [], facts=other)
    with pytest.raises(DigestMismatch, match="not the one that was accepted"):
        _make(workspace, part, verdicts=[*verdicts, changed])


def test_rows_in_quarantine_stay_there(workspace: Workspace) -> None:
    """Of a batch with rows in quarantine only the accepted rows become features."""
    part = window(workspace, NAME, NOW).new
    folder = workspace.sources / "small" / "trips" / "d3"
    kept = workspace.home / "objects" / "quarantine" / "accepted"
    kept.mkdir(parents=True)
    shutil.copy(folder / "batch.json", kept)
    rows = [observations.trip(n, at=3 * 1440 + n) for n in range(10)]
    observations.write(kept / "part-00000.parquet", "trips", rows)
    batch = sources.read_folder(kept, "small/trips", "d3")
    accepted = {"digest": batch.digest, "folder": "objects/quarantine/accepted"}
    verdict = conclude("validate", "small/trips@1.0.0#d3", [], facts={"accepted": accepted})
    made = _make(workspace, part, verdicts=[*_verdicts(workspace, part), verdict])
    assert made.facts["rows"] == 10
    assert made.facts["batches"]["small/trips"] == {"d3": batch.digest}


def test_a_good_pair_passes_review_and_verification(
    workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Two whole bundles of one definition, the hold-out later, are fit for a release."""
    assert audit.review(workspace, NAME, *pair).verdict == "pass"
    verified = audit.verify(workspace, NAME, *pair)
    assert verified.verdict == "pass"
    assert verified.facts["holdout"]["rows"] == 60


def test_a_changed_cell_fails_verification_alone(
    workspace: Workspace, pair: tuple[str, str]
) -> None:
    """Damage is a finding of the snapshot stage that names cell and bundle, and of no other."""
    spoil.changed_cell(workspace.objects, NAME, pair[0], column="warmth", row=70)
    found = audit.verify(workspace, NAME, *pair)
    assert [(item.rule, item.location) for item in found.findings] == [("bundle.damaged", pair[0])]
    assert "column warmth, rows 0 to 119" in found.findings[0].message
    assert audit.review(workspace, NAME, *pair).verdict == "pass"


def test_a_lost_archive_cannot_be_verified(workspace: Workspace, pair: tuple[str, str]) -> None:
    """Being unable to look is an error, not a finding."""
    workspace.objects.delete(show.versions(workspace)[0]["archive"])
    with pytest.raises(ObjectMissing):
        audit.verify(workspace, NAME, *pair)


def test_review_compares_the_pair(workspace: Workspace, pair: tuple[str, str]) -> None:
    """A hold-out that overlaps or precedes training is a finding."""
    swapped = audit.review(workspace, NAME, pair[1], pair[0])
    assert [item.rule for item in swapped.findings] == ["bundle.holdout-earlier"]
    same = audit.review(workspace, NAME, pair[0], pair[0])
    assert {item.rule for item in same.findings} == {
        "bundle.holdout-overlaps",
        "bundle.holdout-earlier",
    }


def test_review_knows_the_contracts(workspace: Workspace, pair: tuple[str, str]) -> None:
    """A contract that vanished, or says something else than it did, is a finding."""
    (workspace.root / "contracts/published/small/vehicles/1.0.0.contract.json").unlink()
    found = audit.review(workspace, NAME, *pair)
    assert {item.rule for item in found.findings} == {"bundle.contract-unknown"}
    publish_contract(workspace, "vehicles")
    columns = [
        {
            "name": "place",
            "type": "int64",
            "nullable": False,
            "personal_data": "none",
            "description": "Other.",
        }
    ]
    publish_contract(
        workspace,
        "weather",
        columns=columns,
        key=["place"],
        schema_hash=schema_hash([Column("place", "int64")]),
    )
    found = audit.review(workspace, NAME, *pair)
    assert {item.rule for item in found.findings} == {"bundle.contract-changed"}


def test_review_sees_another_definition(workspace: Workspace, pair: tuple[str, str]) -> None:
    """A hold-out computed otherwise than the training bundle is a finding."""
    path = workspace.root / "contracts/published/small/trips/lateness.features.json"
    path.write_bytes(path.read_bytes().replace(b"Will a trip end late?", b"Another title"))
    other = _make(workspace, window(workspace, NAME, NOW).holdout).facts["feature_version"]
    found = audit.review(workspace, NAME, pair[0], other)
    assert {item.rule for item in found.findings} == {"bundle.definition-differs"}


def test_versions_can_be_seen(workspace: Workspace, pair: tuple[str, str]) -> None:
    """People see what is published, what it holds, and where and from what it was made."""
    assert show.definitions(workspace) == [NAME]
    assert [row["version"] for row in show.versions(workspace)] == list(pair)
    assert show.versions(workspace, "small/trips/other") == []
    found = show.version(workspace, NAME, pair[0])
    assert found["rows"] == 120
    assert found["provenance"]["lineage"]["small/trips"]["d1"] == {"commit": "d1"}
    assert {column["role"] for column in found["columns"]} == {
        "key",
        "event_time",
        "feature",
        "label",
    }
    spoil.changed_cell(workspace.objects, NAME, pair[0], column="warmth", row=1)
    with pytest.raises(DigestMismatch):
        show.version(workspace, NAME, pair[0])


def test_seeing_is_cheap(root: Path) -> None:
    """The reading door loads neither Prefect nor an engine nor Arrow."""
    program = (
        "import sys, tasks.snapshot.show;"
        "print([n for n in ('prefect','duckdb','pyarrow','numpy') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_days_are_delivered_in_order(workspace: Workspace) -> None:
    """A late delivery with an older logical time is placed by its time and not its name."""
    deliver(workspace, "trips", "z", "2020-02-28", [observations.trip(1, at=-2000)])
    assert window(workspace, NAME, NOW).training.batches["small/trips"] == ["z", "d0", "d1"]
    assert len(DAYS) == 4
