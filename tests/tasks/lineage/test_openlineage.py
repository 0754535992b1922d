from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.base.errors import InputError, UnavailableError
from tasks.lineage import openlineage
from tasks.lineage.record import Release, describe
from tests.fakes import house as fake
from tests.fakes.house import House


@pytest.fixture
def house(tmp_path: Path, root: Path) -> House:
    made = fake.build(tmp_path / "home", root)
    fake.release(made, "one")
    return made


@pytest.fixture
def release(house: House) -> Release:
    return describe(house.ledger.records("candidate")[0], house.manifest, fake.reports())


def test_a_release_names_everything_it_was_made_from(release: Release, house: House) -> None:
    """Bundle, contracts and batches are sources, each with its whole digest, each once."""
    assert [(source.kind, source.name) for source in release.sources] == [
        ("feature_bundle", "bundle/nyc/flights/arrival-delay"),
        ("contract", "contract/nyc/flights@1.0.0"),
        ("batch", "batch/nyc/flights@1.0.0#2013-01"),
        ("batch", "batch/nyc/flights@1.0.0#2013-02"),
        ("contract", "contract/nyc/weather@1.0.0"),
        ("batch", "batch/nyc/weather@1.0.0#2013-01"),
    ]
    assert release.sources[0].digest == house.manifest.root
    assert release.source == f"oci://local/flight-delay@{fake.package('one')}"


def test_without_the_bundle_the_contract_is_still_known(house: House) -> None:
    """A release whose bundle is elsewhere keeps the contract the ledger names."""
    found = describe(house.ledger.records("candidate")[0], None, [])
    assert [source.name for source in found.sources] == ["contract/nyc/flights@1.0.0"]


def test_only_a_candidate_is_a_release(house: House) -> None:
    """Another record of the ledger is refused."""
    record = house.ledger.append("nightly", "n", {})
    with pytest.raises(InputError, match="not a candidate"):
        describe(record, None, [])


def test_an_event_has_what_the_specification_demands(release: Release) -> None:
    """The fields OpenLineage requires are there, and the versions are whole digests."""
    event = openlineage.event(release)
    assert set(event) == {
        "eventType",
        "eventTime",
        "producer",
        "schemaURL",
        "run",
        "job",
        "inputs",
        "outputs",
    }
    assert event["eventTime"] == release.at
    versions = [item["facets"]["version"]["datasetVersion"] for item in event["inputs"]]
    assert versions == [source.digest for source in release.sources]


def test_a_release_is_written_once(release: Release, tmp_path: Path) -> None:
    """Emitting again adds nothing."""
    path = tmp_path / "events" / "openlineage.jsonl"
    path.parent.mkdir()
    assert openlineage.emit(path, release)
    assert not openlineage.emit(path, release)
    (line,) = path.read_text().splitlines()
    assert json.loads(line) == openlineage.event(release)


def test_a_torn_line_is_ended_not_continued(release: Release, tmp_path: Path) -> None:
    """What a killed writer left does not spoil the next event."""
    path = tmp_path / "openlineage.jsonl"
    openlineage.emit(path, release)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert openlineage.emit(path, release)
    assert path.read_bytes() == whole[:-20] + b"\n" + whole


def test_a_place_that_cannot_be_written_is_unavailable(release: Release, tmp_path: Path) -> None:
    """A folder in the place of the file is reported."""
    (tmp_path / "events").mkdir()
    with pytest.raises(UnavailableError, match="lineage events"):
        openlineage.emit(tmp_path / "events", release)
