from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from tasks import template


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    path = tmp_path / "made.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);")
    connection.close()
    return path


def rows(path: Path) -> list[tuple[int]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT a FROM t").fetchall()
    connection.close()
    return found


def test_the_next_home_begins_with_a_copy(database: Path, tmp_path: Path) -> None:
    """What was kept comes back, without what it was told to forget; the original is untouched."""
    target = tmp_path / "home" / "next.db"
    assert not template.restore("prefect", target)
    assert template.keep("prefect", database, forget=["DELETE FROM t WHERE a = 2"])
    assert template.restore("prefect", target)
    assert rows(target) == [(1,)]
    assert rows(database) == [(1,), (2,)]
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_damaged_template_is_none(database: Path, tmp_path: Path) -> None:
    """A template that is no sound database is not used."""
    template.keep("prefect", database, forget=[])
    template.path_of("prefect").write_bytes(b"no database" * 1000)
    assert not template.restore("prefect", tmp_path / "next.db")
    assert not (tmp_path / "next.db").exists()


def test_a_failed_keep_leaves_nothing(database: Path) -> None:
    """What cannot be cleaned, or cannot be written, is not kept."""
    assert not template.keep("prefect", database, forget=["DELETE FROM missing"])
    folder = template.path_of("prefect").parent
    assert list(folder.iterdir()) == []
    folder.rmdir()
    folder.touch()
    assert not template.keep("prefect", database, forget=[])
