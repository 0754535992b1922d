"""The engine is locked down: it reaches what it is given and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError, SourceUnavailable
from contracts.engine import duck
from tests.fakes import batches


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/caisson-escape.csv'",
        "ATTACH '/tmp/caisson-escape.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM 'http://127.0.0.1:1/x.parquet'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '100GB'",
    ],
)
def test_statement_cannot_leave_the_engine(statement: str) -> None:
    """Files, network, extensions and settings are out of reach."""
    with pytest.raises(SourceUnavailable), duck.opened(where="test") as connection:
        connection.execute(statement).fetchall()
    assert not Path("/tmp/caisson-escape.csv").exists()


def test_only_the_listed_file_is_read(tmp_path: Path) -> None:
    """A file beside the listed one stays closed."""
    first = batches.deliver(tmp_path, batches.table(batches.rows()), name="a").paths[0]
    second = batches.deliver(tmp_path, batches.table(batches.rows()), name="b").paths[0]
    with duck.opened([first], where="test") as connection:
        query = f"SELECT count(*) FROM {duck.parquet([first])}"
        assert connection.execute(query).fetchone() == (4,)
    with pytest.raises(SourceUnavailable), duck.opened([first], where="test") as connection:
        connection.execute(f"SELECT count(*) FROM {duck.parquet([second])}")


def test_folders_may_be_read_written_and_spilled_to(tmp_path: Path) -> None:
    """A listed folder is open with all below it."""
    with duck.opened(folders=[tmp_path], where="test") as connection:
        target = duck.quote_text(str(tmp_path / "out.parquet"))
        connection.execute(f"COPY (SELECT 1 AS x) TO {target} (FORMAT parquet)")
        assert connection.execute(f"SELECT x FROM {target}").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "name", ["plain", "with space", "ü ñ 日本", "a'b", "we[1]rd", "st*r", "q?"]
)
def test_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    """Quotes, wildcards and letters of any script in a path mean themselves."""
    batch = batches.deliver(tmp_path / name, batches.table(batches.rows()))
    decoy = tmp_path / "we1rd"
    batches.deliver(decoy, batches.table(batches.rows(9)))
    with duck.opened(batch.paths, where="test") as connection:
        query = f"SELECT count(*) FROM {duck.parquet(batch.paths)}"
        assert connection.execute(query).fetchone() == (4,)


def test_our_own_errors_pass_through() -> None:
    """An error of the project raised inside the block is not dressed up as the engine's."""
    with pytest.raises(InputError, match="mine"), duck.opened(where="test"):
        raise InputError("mine")


def test_too_little_memory_is_a_typed_error(tmp_path: Path) -> None:
    """A query that does not fit into memory ends with an error, not with the process."""
    with (
        pytest.raises(SourceUnavailable, match="cannot be read"),
        duck.opened(where="test", memory_limit="10MB") as connection,
    ):
        connection.execute("SELECT count(DISTINCT i) FROM range(20000000) t(i)").fetchone()


@pytest.fixture(scope="module")
def engine() -> Iterator[duck.Connection]:
    with duck.opened(where="test") as connection:
        yield connection


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_quoting_is_exact(engine: duck.Connection, text: str) -> None:
    """A quoted text evaluates to itself; a quoted name is one column of that name."""
    assert engine.execute(f"SELECT {duck.quote_text(text)}").fetchone() == (text,)
    if text:
        name = duck.quote_name(text)
        assert engine.execute(f"SELECT {name} FROM (SELECT 1 AS {name})").fetchone() == (1,)
