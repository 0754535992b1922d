"""The ledger in an SQLite file: appended to under one writer's lock, never changed.

Several processes may use it at once: every write begins IMMEDIATE and waits for the other writer.
Triggers abort UPDATE and DELETE, and ``verify`` finds what was done around them. The pointer of a
model in a target is moved in the transaction that records the move, and only from the value the
caller expected.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.base import canonical, clock, digest, failpoint
from contracts.base.clock import Clock, SystemClock
from contracts.base.digest import Digest
from contracts.base.errors import (
    CaissonError,
    CorruptLog,
    InputError,
    PointerMoved,
    UnavailableError,
)
from tasks.ledger.record import Kind, Pointer, Record, broken, check, link

_WAIT_S = 30.0
_SCHEMA = """
CREATE TABLE records (
  number INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  previous TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL UNIQUE,
  signature TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX records_by_subject ON records (subject, kind);
CREATE INDEX records_by_kind ON records (kind);
CREATE TRIGGER records_are_final BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'records of the ledger are final'); END;
CREATE TRIGGER records_are_kept BEFORE DELETE ON records
  BEGIN SELECT RAISE(ABORT, 'records of the ledger are kept'); END;
CREATE TABLE pointers (
  model TEXT NOT NULL,
  target TEXT NOT NULL,
  digest TEXT NOT NULL,
  previous TEXT,
  number INTEGER NOT NULL REFERENCES records (number),
  PRIMARY KEY (model, target)
) STRICT;
CREATE TABLE head (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  number INTEGER NOT NULL,
  digest TEXT NOT NULL
) STRICT;
PRAGMA user_version = 1;
"""
_COLUMNS = "number, at, kind, subject, body, previous, digest, signature"


class Ledger:
    """The account of one installation."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        """Name the file; it is made by the first record."""
        self._path = path
        self._clock = clock or SystemClock()

    def append(self, kind: Kind, subject: str, body: Mapping[str, Any]) -> Record:
        """Add a record and return it; when this returns, it is on disk.

        Raises:
            InputError: If the kind is unknown or the body is not plain data.
            UnavailableError: If the file cannot be written.
        """
        failpoint.hit("ledger.append.before")
        with self._writing() as connection:
            record = self._add(connection, kind, subject, body)
        failpoint.hit("ledger.append.after")
        return record

    def move_pointer(
        self,
        model: str,
        target: str,
        *,
        expected: Digest | None,
        new: Digest,
        body: Mapping[str, Any],
        kind: Kind = "promote",
    ) -> Record:
        """Make ``new`` the live release of a model in a target, and record it, in one step.

        Args:
            model: Name of the model.
            target: Name of the target.
            expected: What the caller believes is live; None if nothing is.
            new: Package digest of what becomes live.
            body: What else belongs in the record.
            kind: ``promote`` or ``rollback``.

        Raises:
            PointerMoved: If something else is live; nothing is changed then.
        """
        failpoint.hit("ledger.pointer.before")
        with self._writing() as connection:
            found = _pointer(connection, model, target)
            live = found.digest if found else None
            if live != expected:
                raise _moved(model, target, expected, live)
            move = {"model": model, "target": target, "from": expected, "to": new}
            record = self._add(connection, kind, f"{model}/{target}", {**body, **move})
            connection.execute(
                "INSERT INTO pointers VALUES (?, ?, ?, ?, ?) ON CONFLICT (model, target) DO UPDATE"
                " SET digest = excluded.digest, previous = excluded.previous,"
                " number = excluded.number",
                (model, target, new, expected, record.number),
            )
        failpoint.hit("ledger.pointer.after")
        return record

    def records(self, kind: Kind | None = None, subject: str | None = None) -> list[Record]:
        """Return records in the order they were written, all or those of a kind and subject."""
        asked = {"kind": kind, "subject": subject}
        chosen = {name: value for name, value in asked.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in chosen)
        clause = f" WHERE {where}" if where else ""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM records{clause} ORDER BY number",  # noqa: S608 - fixed names
                chosen,
            ).fetchall()
        return [_record(row) for row in rows]

    def pointer(self, model: str, target: str) -> Pointer | None:
        """Return what is live of a model in a target, or None."""
        with self._reading() as connection:
            return _pointer(connection, model, target) if connection else None

    def pointers(self) -> list[Pointer]:
        """Return what is live of every model in every target."""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT model, target, digest, previous, number FROM pointers ORDER BY 1, 2"
            ).fetchall()
        return [Pointer(*row) for row in rows]

    def verify(self) -> int:
        """Check every record and pointer, and return the number of records.

        Raises:
            CorruptLog: If anything was edited, removed, added or moved, naming where.
        """
        try:
            records = self.records()
            last = check(records)
            self._check_head(last)
            self._check_pointers(records)
        except InputError as err:
            raise CorruptLog(f"a record is unreadable: {err}", location=str(self._path)) from err
        return last.number if last else 0

    def _check_head(self, last: Record | None) -> None:
        """Compare the last record with the one that was written last."""
        with self._reading() as connection:
            row = (
                connection.execute("SELECT number, digest FROM head").fetchone()
                if connection
                else None
            )
        head = tuple(row) if row else (0, "nothing")
        found = (last.number, last.digest) if last else (0, "nothing")
        if head != found:
            raise broken("the end of the ledger is not where it was", f"{head}", f"{found}")

    def _check_pointers(self, records: list[Record]) -> None:
        """Compare the pointers with the moves on record: they are only a view of them."""
        moved: dict[tuple[str, str], Pointer] = {}
        for record in records:
            if record.kind in ("promote", "rollback") and "to" in record.body:
                body = record.body
                moved[body["model"], body["target"]] = Pointer(
                    body["model"], body["target"], body["to"], body["from"], record.number
                )
        found = {(item.model, item.target): item for item in self.pointers()}
        if found != moved:
            wrong = sorted(
                "/".join(key)
                for key in found.keys() | moved.keys()
                if found.get(key) != moved.get(key)
            )
            raise CorruptLog(
                f"the live pointer of {', '.join(wrong)} is not the one on record",
                location=str(self._path),
                remedy="Compare `caisson status` with what the target serves, then roll back.",
            )

    def _add(
        self, connection: sqlite3.Connection, kind: str, subject: str, body: Mapping[str, Any]
    ) -> Record:
        last = connection.execute(
            f"SELECT {_COLUMNS} FROM records ORDER BY number DESC LIMIT 1"  # noqa: S608 - fixed names
        ).fetchone()
        record = link(
            _record(last) if last else None,
            at=clock.to_text(self._clock.now()),
            kind=kind,
            subject=subject,
            body=body,
        )
        text = canonical.dumps(record.body).decode()
        row = {**record.to_dict(), "body": text}
        connection.execute(
            f"INSERT INTO records ({_COLUMNS}) VALUES (:number, :at, :kind, :subject, :body,"  # noqa: S608 - fixed names
            " :previous, :digest, :signature)",
            row,
        )
        connection.execute(
            "INSERT INTO head VALUES (1, ?, ?) ON CONFLICT (only) DO UPDATE"
            " SET number = excluded.number, digest = excluded.digest",
            (record.number, record.digest),
        )
        return record

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the one writer's lock; commit at the end, undo on any error."""
        with self._explained():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(_connect(self._path, "rwc")) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                        _create(connection)
                    yield connection
                    failpoint.hit("ledger.commit.before")
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open read-only; None if there is no ledger yet.

        A writer that was killed leaves a journal, which only a connection that may write undoes.
        """
        if not self._path.exists():
            yield None
            return
        mode = "rw" if self._path.with_name(f"{self._path.name}-journal").exists() else "ro"
        with self._explained(), contextlib.closing(_connect(self._path, mode)) as connection:
            empty = connection.execute("PRAGMA user_version").fetchone()[0] == 0
            yield None if empty else connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the database into ours."""
        try:
            yield
        except CaissonError:
            raise
        except sqlite3.DatabaseError as err:
            if isinstance(err, sqlite3.OperationalError):
                raise _unavailable(self._path, str(err)) from err
            raise CorruptLog(f"ledger cannot be used: {err}", location=str(self._path)) from err
        except OSError as err:
            raise _unavailable(self._path, err.strerror or str(err)) from err


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_S, isolation_level=None
    )


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables within the transaction that is open (executescript would commit it)."""
    statement = ""
    for line in _SCHEMA.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _pointer(connection: sqlite3.Connection, model: str, target: str) -> Pointer | None:
    row = connection.execute(
        "SELECT model, target, digest, previous, number FROM pointers"
        " WHERE model = ? AND target = ?",
        (model, target),
    ).fetchone()
    return Pointer(*row) if row else None


def _record(row: tuple[Any, ...]) -> Record:
    number, at, kind, subject, body, previous, value, signature = row
    where = f"ledger record {number}"
    return Record(
        number,
        at,
        kind,
        subject,
        canonical.loads(body, where=where),
        digest.parse(previous, where=where),
        digest.parse(value, where=where),
        signature,
    )


def _moved(model: str, target: str, expected: Digest | None, live: Digest | None) -> PointerMoved:
    return PointerMoved(
        f"another release of {model} became live in {target} meanwhile",
        expected=expected or "nothing live",
        found=live or "nothing live",
        remedy="Look at `caisson status` and decide again.",
    )


def _unavailable(path: Path, reason: str) -> UnavailableError:
    return UnavailableError(
        f"ledger cannot be used: {reason}",
        location=str(path),
        remedy="Check free space and permissions, or wait for the other command to end.",
    )
