"""Batches in folders: found, measured, and refused when they are not plain."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.base.errors import DigestMismatch, InputError, SourceUnavailable
from contracts.sources import files
from tests.fakes import batches


def test_digest_depends_on_content_only(tmp_path: Path) -> None:
    """Two deliveries of equal files are one identity, wherever they lie."""
    first = batches.deliver(tmp_path / "a", batches.table(batches.rows()))
    second = batches.deliver(tmp_path / "b ü", batches.table(batches.rows()), name="other")
    changed = batches.deliver(tmp_path / "c", batches.table(batches.rows(amount={0: 9.0})))
    assert first.digest == second.digest
    assert first.digest != changed.digest
    assert first.size == first.paths[0].stat().st_size


def test_batches_are_listed_by_name_and_by_moment(tmp_path: Path) -> None:
    """Listing sorts by name; what was delivered by a moment is sorted by time."""
    content = batches.table(batches.rows())
    batches.deliver(tmp_path, content, name="b", moment=batches.MOMENT)
    batches.deliver(tmp_path, content, name="a", moment=batches.MOMENT + timedelta(days=1))
    (tmp_path / "shop/orders/.part").mkdir()
    (tmp_path / "shop/orders/unfinished").mkdir()
    assert files.list_batches(tmp_path, "shop/orders") == ["a", "b"]
    assert files.list_batches(tmp_path, "shop/none") == []
    assert files.delivered(tmp_path, "shop/orders", batches.MOMENT) == ["b"]
    later = batches.MOMENT + timedelta(days=2)
    assert files.delivered(tmp_path, "shop/orders", later) == ["b", "a"]


def test_contract_says_where_batches_are(tmp_path: Path) -> None:
    """A batch opened by its contract carries the contract's name."""
    batches.deliver(tmp_path / "x", batches.table(batches.rows()))
    (tmp_path / "x/shop/orders").rename(tmp_path / "orders")
    contract = batches.make(location="orders")
    assert files.open_batch(tmp_path, contract, "day").source == "shop/orders"


@pytest.mark.parametrize("name", ["none", "../day", "", ".", "a/b"])
def test_unknown_batch_is_told_with_those_that_exist(tmp_path: Path, name: str) -> None:
    """A name that is no batch, or leaves the folder, is refused."""
    batches.deliver(tmp_path, batches.table(batches.rows()))
    with pytest.raises(SourceUnavailable, match="day"):
        files.open_batch(tmp_path, "shop/orders", name)


@pytest.mark.parametrize("strange", ["link", "folder", "kind", "nothing"])
def test_strange_content_is_refused(tmp_path: Path, strange: str) -> None:
    """Links, folders, other files and emptiness are not silently left out."""
    path = batches.deliver(tmp_path, batches.table(batches.rows())).paths[0]
    if strange == "link":
        path.with_name("more.parquet").symlink_to(path)
    elif strange == "folder":
        path.with_name("more.parquet").mkdir()
    elif strange == "kind":
        path.with_name("more.csv").write_text("x")
    else:
        path.unlink()
    with pytest.raises(InputError, match="something other"):
        files.open_batch(tmp_path, "shop/orders", "day")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "x",
        json.dumps({"logical_time": "2026-01-01", "lineage": []}),
        json.dumps({"logical_time": "yesterday", "lineage": {}}),
        json.dumps({"logical_time": "2026-01-01", "lineage": {}, "more": 1}),
    ],
)
def test_malformed_description_is_refused(tmp_path: Path, text: str) -> None:
    """A description must hold exactly a moment and a lineage."""
    path = batches.deliver(tmp_path, batches.table(batches.rows())).paths[0]
    path.with_name("batch.json").write_text(text)
    with pytest.raises(InputError):
        files.open_batch(tmp_path, "shop/orders", "day")


def test_change_after_opening_is_noticed(tmp_path: Path) -> None:
    """A file replaced or removed while it was judged is an error."""
    batch = batches.deliver(tmp_path, batches.table(batches.rows()))
    files.verify(batch)
    batches.deliver(tmp_path, batches.table(batches.rows(amount={0: 9.0})))
    with pytest.raises(DigestMismatch, match="changed"):
        files.verify(batch)
    batch.paths[0].unlink()
    with pytest.raises(SourceUnavailable):
        files.verify(batch)
