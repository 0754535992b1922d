"""The door of DuckDB: an engine in this process that can reach only the files it is given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from contracts.base.errors import CaissonError, SourceUnavailable


class Connection(Protocol):
    """What the project uses of a DuckDB connection."""

    def execute(self, query: str, parameters: Any = ...) -> Connection:
        """Run one statement."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row of the last statement."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows of the last statement."""
        ...

    def to_arrow_table(self) -> Any:
        """Return the result of the last statement as a pyarrow table."""
        ...

    def close(self) -> None:
        """Let the engine go."""
        ...


def connect(
    files: Sequence[Path] = (),
    folders: Sequence[Path] = (),
    *,
    memory_limit: str = "512MB",
    threads: int = 2,
) -> Connection:
    """Open an engine that is locked down.

    No extension is installed or loaded, nothing outside ``files`` and ``folders`` is read or
    written, no network is used, and no statement can change any of this.

    Args:
        files: Files that may be read and written.
        folders: Folders that may be read and written, with all below them.
        memory_limit: Memory before work fails or, with a folder given, spills into the first one.
        threads: Threads of one query.
    """
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory_limit,
            "threads": threads,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_unsigned_extensions": False,
            "python_enable_replacements": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    if folders:
        spill = folders[0] / ".duckdb-spill"
        connection.execute(f"SET temp_directory = {quote_text(str(spill))}")
    else:
        connection.execute("SET temp_directory = ''")
    spellings = dict.fromkeys(form for path in files for form in (str(path), literal(path)))
    allowed = ", ".join(map(quote_text, spellings))
    connection.execute(f"SET allowed_paths = [{allowed}]")
    allowed = ", ".join(quote_text(str(path)) for path in folders)
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    opened: Connection = connection
    return opened


@contextlib.contextmanager
def opened(
    files: Sequence[Path] = (),
    folders: Sequence[Path] = (),
    *,
    where: str,
    memory_limit: str = "512MB",
) -> Iterator[Connection]:
    """Hold a locked-down engine for the length of a block.

    Args:
        files: Files that may be read and written.
        folders: Folders that may be read and written.
        where: What is being read, for messages.
        memory_limit: Memory before work fails or spills.

    Raises:
        SourceUnavailable: If the engine cannot read the data or runs out of memory.
    """
    import duckdb

    connection = connect(files, folders, memory_limit=memory_limit)
    try:
        yield connection
    except CaissonError:
        raise
    except duckdb.Error as err:
        raise SourceUnavailable(
            f"the data cannot be read: {str(err).splitlines()[0][:300]}",
            location=where,
            remedy="Check that the files are whole Parquet files, and have them delivered again.",
        ) from err
    finally:
        connection.close()


def refusal_of(connection: Connection, pattern: str) -> str:
    """Return why the engine does not accept an expression; empty if it does."""
    import duckdb

    try:
        connection.execute("SELECT regexp_full_match('', ?)", [pattern]).fetchall()
    except duckdb.Error as err:
        return str(err).splitlines()[0][:200]
    return ""


def quote_name(name: str) -> str:
    """Return a column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def parquet(files: Sequence[Path]) -> str:
    """Return a table expression that reads Parquet files, their names taken as they are."""
    names = ", ".join(quote_text(literal(path)) for path in files)
    return f"read_parquet([{names}], union_by_name = true)"


def literal(path: Path) -> str:
    """Return a path in which the engine's wildcards stand for themselves."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
