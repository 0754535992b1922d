"""Each planted fault is in its copy, and the good original is untouched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import parquet

from contracts.base.errors import DigestMismatch, InputError
from contracts.features import reader
from contracts.features.store import snapshot
from contracts.objects.folder import FolderStore
from contracts.sources import files as sources
from tasks.demo import spoil
from tests.fakes import observations


@pytest.fixture
def good(tmp_path: Path) -> Path:
    root = tmp_path / "sources"
    observations.write(root / "small/trips/b1/part-00000.parquet", "trips", [observations.trip(1)])
    (root / "small/trips/b1/batch.json").write_text(
        '{"logical_time": "2020-03-01T00:00:00Z", "lineage": {"commit": "c"}}'
    )
    return root


def test_a_renamed_column_is_all_that_differs(good: Path, tmp_path: Path) -> None:
    """One name is another; values, time and the original stay."""
    before = sources.open_batch(good, "small/trips", "b1")
    spoil.renamed_column(
        good, "small/trips", "b1", column="delay", to="lateness", into=tmp_path / "bad"
    )
    bad = sources.open_batch(tmp_path / "bad", "small/trips", "b1")
    old, new = (parquet.read_table(batch.paths[0]) for batch in (before, bad))
    renamed = ["lateness" if name == "delay" else name for name in old.column_names]
    assert new.column_names == renamed
    assert new.rename_columns(old.column_names).equals(old)
    assert bad.logical_time == before.logical_time
    assert sources.open_batch(good, "small/trips", "b1") == before


def test_a_stale_batch_is_only_later(good: Path, tmp_path: Path) -> None:
    """The rows are the same, the logical time is later, and planting twice is planting once."""
    for _ in range(2):
        spoil.stale_batch(good, "small/trips", "b1", days=31, into=tmp_path / "bad")
    bad = sources.open_batch(tmp_path / "bad", "small/trips", "b1")
    assert bad.logical_time == datetime(2020, 4, 1, tzinfo=UTC)
    first = parquet.read_table(sources.open_batch(good, "small/trips", "b1").paths[0])
    assert parquet.read_table(bad.paths[0]).equals(first)


def test_what_is_not_there_cannot_be_spoiled(good: Path, tmp_path: Path) -> None:
    """An unknown batch or column is an input error, and nothing is left behind."""
    into = tmp_path / "bad"
    with pytest.raises(InputError, match="no such batch"):
        spoil.stale_batch(good, "small/trips", "b2", days=1, into=into)
    with pytest.raises(InputError, match="no such column"):
        spoil.renamed_column(good, "small/trips", "b1", column="x", to="y", into=into)
    assert not list(into.rglob("*.parquet"))


def test_a_changed_cell_is_found_by_readers(tmp_path: Path) -> None:
    """The damaged bundle looks whole, and is refused by column and rows."""
    store = FolderStore(tmp_path / "objects")
    made = snapshot(
        observations.definition(),
        observations.inputs(tmp_path / "data", observations.ordinary()),
        as_of=datetime(2020, 3, 1, tzinfo=UTC),
        store=store,
        provenance={},
    ).pointer
    for column, row in (("absent", 0), ("warmth", 10**6)):
        with pytest.raises(InputError, match="no such cell"):
            spoil.changed_cell(store, made.definition, made.version, column=column, row=row)
    key = spoil.changed_cell(store, made.definition, made.version, column="warmth", row=7)
    assert key == made.archive
    with pytest.raises(DigestMismatch, match="column warmth, rows 0 to"):
        reader.open_version(store, made.definition, made.version)
