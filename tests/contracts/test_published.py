"""The contracts that data owners published here are kept by the data they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts import publish, show
from contracts.catalog import Catalog
from contracts.engine import footer
from contracts.judge import judge
from contracts.sources import files
from tasks.demo import data

SOURCES = ("nyc/flights", "nyc/planes", "nyc/weather")


@pytest.fixture(scope="module")
def catalog(root: Path) -> Catalog:
    return Catalog(root / "contracts" / "published")


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    data.prepare(folder)
    return folder


def test_every_published_contract_reads_and_keeps_its_steps(catalog: Catalog) -> None:
    """All versions lint, lie where their names say, and follow from the ones before."""
    assert tuple(catalog.names()) == SOURCES
    for name in catalog.names():
        for number in catalog.versions(name):
            contract = catalog.load(f"{name}@{number}")
            unchanged, _ = publish.check(contract, catalog)
            assert unchanged


@pytest.mark.parametrize("name", SOURCES)
def test_every_batch_keeps_its_contract(catalog: Catalog, batches: Path, name: str) -> None:
    """All batches of the year pass; the one known sensor error is told."""
    contract = catalog.load(name)
    names = files.list_batches(batches, contract.location)
    assert len(names) == (1 if name == "nyc/planes" else 12)
    told = []
    for batch in names:
        report = judge(contract, files.open_batch(batches, contract, batch))
        assert report.verdict == "pass", report.findings
        told += [(batch, finding.rule) for finding in report.findings]
    expected = [("2013-02", "data.range:wind-speed-plausible")] if name == "nyc/weather" else []
    assert told == expected


def test_year_of_flights_is_complete(catalog: Catalog, batches: Path) -> None:
    """The twelve batches hold the 336,776 flights of the archive."""
    contract = catalog.load("nyc/flights")
    opened = [
        files.open_batch(batches, contract, name)
        for name in files.list_batches(batches, contract.location)
    ]
    footers = footer.read([path for batch in opened for path in batch.paths])
    assert sum(item.rows for item in footers) == 336_776


def test_what_is_known_only_later_is_marked(catalog: Catalog) -> None:
    """Columns known only after departure or arrival say so, for those who choose features."""
    rows = {row["name"]: row["description"] for row in show.columns(catalog.load("nyc/flights"))}
    late = {name for name, text in rows.items() if "Known only after" in text}
    assert late == {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"}
