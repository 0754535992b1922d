from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base.digest import Digest
from contracts.base.errors import CorruptLog, InputError, PointerMoved, UnavailableError
from tasks.ledger.store import Ledger
from tests.fakes.clock import FixedClock
from tests.fakes.waiting import until

A = Digest(f"sha256:{'a' * 64}")
B = Digest(f"sha256:{'b' * 64}")
C = Digest(f"sha256:{'c' * 64}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledgér.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path, FixedClock())


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    ledger.append("candidate", A, {"level": "L1"})
    ledger.append("candidate", B, {"level": "L1"})
    ledger.move_pointer("m", "local", expected=None, new=A, body={"by": "x"})
    ledger.move_pointer("m", "local", expected=A, new=B, body={"by": "x"})
    return ledger


def test_records_come_back_as_written(ledger: Ledger) -> None:
    """A record is found by kind and by subject, whole and in order."""
    first = ledger.append("candidate", A, {"model": "m", "n": [1, {"ü": None}]})
    second = ledger.append("deploy", "m/local", {})
    assert ledger.records() == [first, second]
    assert ledger.records("deploy") == [second]
    assert ledger.records("candidate", A) == [first]
    assert ledger.records("candidate", B) == []
    assert (first.number, second.number, second.previous) == (1, 2, first.digest)
    assert first.at == "2026-11-30T21:00:00.000Z"
    assert ledger.verify() == 2


def test_reading_a_ledger_that_is_not_there_makes_none(ledger: Ledger, path: Path) -> None:
    """Status on a fresh machine shows nothing and writes nothing."""
    assert ledger.records() == []
    assert ledger.pointer("m", "local") is None
    assert ledger.pointers() == []
    assert ledger.verify() == 0
    assert not path.exists()


def test_an_empty_file_is_an_empty_ledger(ledger: Ledger, path: Path) -> None:
    """A file that a killed first writer left without tables is no error."""
    path.touch()
    assert ledger.records() == []
    ledger.append("nightly", "n", {})
    assert ledger.verify() == 1


def test_the_pointer_moves_only_from_what_is_expected(filled: Ledger) -> None:
    """A stale expectation changes neither pointer nor records."""
    before = filled.records()
    with pytest.raises(PointerMoved, match="another release") as caught:
        filled.move_pointer("m", "local", expected=A, new=C, body={})
    assert (caught.value.expected, caught.value.found) == (A, B)
    assert filled.records() == before
    pointer = filled.pointer("m", "local")
    assert pointer is not None
    assert (pointer.digest, pointer.previous, pointer.number) == (B, A, 4)


def test_a_move_is_on_record(filled: Ledger) -> None:
    """The record of a move says from what to what, and may be a rollback."""
    record = filled.move_pointer("m", "local", expected=B, new=A, body={}, kind="rollback")
    assert record.kind == "rollback"
    assert record.body == {"model": "m", "target": "local", "from": B, "to": A}
    assert [item.digest for item in filled.pointers()] == [A]
    assert filled.verify() == 5


@pytest.mark.parametrize("statement", ["UPDATE records SET subject = 'x'", "DELETE FROM records"])
def test_the_database_itself_refuses_changes(filled: Ledger, path: Path, statement: str) -> None:
    """Triggers abort any change of a record."""
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="records of the ledger are"):
        connection.execute(statement)
    connection.close()
    assert filled.verify() == 4


EDITS = {
    "edited body": "UPDATE records SET body = replace(body, 'L1', 'L3') WHERE number = 2",
    "edited subject": "UPDATE records SET subject = 'x' WHERE number = 1",
    "edited time": "UPDATE records SET at = '2020-01-01T00:00:00.000Z' WHERE number = 4",
    "edited digest": f"UPDATE records SET digest = '{C}' WHERE number = 2",
    "no digest": "UPDATE records SET digest = 'x' WHERE number = 2",
    "no json": "UPDATE records SET body = '{' WHERE number = 2",
    "removed first": "DELETE FROM records WHERE number = 1",
    "removed middle": "DELETE FROM records WHERE number = 2",
    "removed last": "DELETE FROM records WHERE number = 4",
    "removed all": "DELETE FROM records",
    "swapped": "UPDATE records SET number = -number; UPDATE records SET number = 5 + number",
    "pointer moved": f"UPDATE pointers SET digest = '{C}'",
    "pointer's past": "UPDATE pointers SET previous = NULL",
    "pointer removed": "DELETE FROM pointers",
    "pointer added": f"INSERT INTO pointers VALUES ('n', 'local', '{A}', NULL, 1)",
    "head moved": "UPDATE head SET number = 3",
    "head removed": "DELETE FROM head",
}


def tamper(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TRIGGER records_are_final; DROP TRIGGER records_are_kept;" + script
    )
    connection.close()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_verify_finds_any_tampering(filled: Ledger, path: Path, edit: str) -> None:
    """What was done around the triggers is found, whatever it was."""
    assert filled.verify() == 4
    tamper(path, edit)
    with pytest.raises(CorruptLog):
        filled.verify()


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(1, 4), st.sampled_from(["at", "kind", "subject", "body", "previous"]), st.text())
def test_verify_finds_any_edited_cell(
    tmp_path_factory: pytest.TempPathFactory, number: int, column: str, text: str
) -> None:
    """Any text in any cell of any record is found."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    ledger = Ledger(path, FixedClock())
    for place in range(4):
        ledger.append("deploy", "s", {"place": place})
    connection = sqlite3.connect(path)
    connection.executescript("DROP TRIGGER records_are_final")
    old = connection.execute(
        f"SELECT {column} FROM records WHERE number = ?", (number,)
    ).fetchone()[0]
    value = text.replace("\0", "").encode("utf-8", "replace").decode()
    connection.execute(f"UPDATE records SET {column} = ? WHERE number = ?", (value, number))
    connection.commit()
    connection.close()
    if value != old:
        with pytest.raises(CorruptLog):
            ledger.verify()


def test_a_file_that_is_no_database_is_corrupt(ledger: Ledger, path: Path) -> None:
    """Foreign bytes are told from an empty ledger."""
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(CorruptLog):
        ledger.records()
    with pytest.raises(CorruptLog):
        ledger.append("deploy", "s", {})


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    """A ledger below a plain file is reported, and nothing is lost silently."""
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError):
        Ledger(tmp_path / "file" / "ledger.db").append("deploy", "s", {})


def test_a_missing_table_is_unavailable(ledger: Ledger, path: Path) -> None:
    """A database of another kind is reported, not taken for an empty ledger."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(UnavailableError, match="no such table"):
        ledger.records()


def test_a_bad_record_leaves_nothing(ledger: Ledger) -> None:
    """What cannot be recorded is refused and undone."""
    with pytest.raises(InputError):
        ledger.append("party", "s", {})  # type: ignore[arg-type] # the point of the test
    assert ledger.records() == []


SCRIPT = """
import sys
from pathlib import Path
from contracts.base import failpoint
from contracts.base.digest import Digest
from contracts.base.errors import PointerMoved
from tasks.ledger.store import Ledger

path, name, points = sys.argv[1:]
failpoint.configure(points)
ledger = Ledger(Path(path))
new = Digest("sha256:" + name * 64)
try:
    for number in range(15):
        ledger.append("nightly", name, {"number": number})
    ledger.move_pointer("m", "local", expected=None, new=new, body={})
    print("won")
except PointerMoved:
    print("lost")
"""


@pytest.fixture
def start(root: Path, path: Path) -> Callable[..., subprocess.Popen[str]]:
    def begin(name: str, points: str = "") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path), name, points],
            env={"PYTHONPATH": str(root), "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            text=True,
        )

    return begin


def test_several_processes_may_write_at_once(
    start: Callable[..., subprocess.Popen[str]], ledger: Ledger
) -> None:
    """No record is lost and exactly one of them moves the pointer."""
    running = [start(name) for name in "abcd"]
    said = sorted(process.communicate()[0].strip() for process in running)
    assert said == ["lost", "lost", "lost", "won"]
    assert ledger.verify() == 4 * 15 + 1
    for name in "abcd":
        records = ledger.records("nightly", name)
        assert [record.body["number"] for record in records] == list(range(15))


@pytest.mark.parametrize(
    ("point", "records", "moved"),
    [
        ("ledger.append.before:3", 3, False),
        ("ledger.append.after:3", 4, False),
        ("ledger.commit.before:3", 3, False),
        ("ledger.pointer.before", 15, False),
        ("ledger.commit.before:15", 15, False),
        ("ledger.pointer.after", 16, True),
    ],
)
def test_killed_while_writing_leaves_whole_records(
    start: Callable[..., subprocess.Popen[str]],
    ledger: Ledger,
    point: str,
    records: int,
    moved: bool,
) -> None:
    """After kill -9 a record is there or not, the pointer goes with it, and writing goes on."""
    process = start("a", point)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert ledger.verify() == records
    assert (ledger.pointer("m", "local") is not None) == moved
    ledger.append("nightly", "next", {})
    assert ledger.verify() == records + 1


def test_a_reader_recovers_what_a_killed_writer_left(
    start: Callable[..., subprocess.Popen[str]], ledger: Ledger, path: Path
) -> None:
    """A journal left in the middle of a commit is undone by the first reader."""
    ledger.append("nightly", "first", {})
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    for number in range(2000):
        connection.execute("INSERT INTO pointers VALUES (?, 't', ?, NULL, 1)", (str(number), A))
    journal = path.with_name(f"{path.name}-journal")
    until(journal.exists)
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.with_name("copy.db-journal").write_bytes(journal.read_bytes())
    connection.execute("ROLLBACK")
    connection.close()
    assert Ledger(copy).pointers() == []
    assert Ledger(copy).verify() == 1
