"""What Parquet footers tell without reading data."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from contracts.base.errors import SourceUnavailable
from contracts.engine import footer
from tests.fakes import batches


def test_newest_is_found_over_all_row_groups(tmp_path: Path) -> None:
    """The greatest time comes from the statistics of every row group."""
    batch = batches.deliver(tmp_path, batches.table(batches.rows(9)), row_group_size=2)
    (found,) = footer.read(batch.paths, "placed")
    assert (found.rows, found.newest) == (9, batches.MOMENT - timedelta(hours=1))


def test_missing_statistics_say_nothing(tmp_path: Path) -> None:
    """A row group of nulls only, or a column that is not there, leaves the time unknown."""
    content = batches.rows(2, placed={0: None, 1: None})
    batch = batches.deliver(tmp_path, batches.table(content))
    assert footer.read(batch.paths, "placed")[0].newest is None
    assert footer.read(batch.paths, "nowhere")[0].newest is None
    assert footer.read(batch.paths, "customer")[0].newest is None


@pytest.mark.parametrize("damage", ["empty", "cut", "noise"])
def test_damaged_file_is_a_typed_error(tmp_path: Path, damage: str) -> None:
    """What is no whole Parquet file is told by name."""
    path = batches.deliver(tmp_path, batches.table(batches.rows())).paths[0]
    data = path.read_bytes()
    path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "noise": b"x" * 99}[damage])
    with pytest.raises(SourceUnavailable, match="not a readable Parquet file"):
        footer.read([path])


def test_missing_file_is_a_typed_error(tmp_path: Path) -> None:
    """A file that vanished is told by name."""
    with pytest.raises(SourceUnavailable, match="gone"):
        footer.read([tmp_path / "gone.parquet"])


def test_values_become_moments_in_utc() -> None:
    """Dates, and times without a zone, are taken as UTC; other values are no moment."""
    assert footer.as_moment(date(2026, 1, 2)) == datetime(2026, 1, 2, tzinfo=UTC)
    assert footer.as_moment(datetime.fromisoformat("2026-01-02")) == datetime(
        2026, 1, 2, tzinfo=UTC
    )
    assert footer.as_moment(7) is None
