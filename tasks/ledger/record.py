"""One record of the ledger, how it is bound to the one before it, and how a chain is checked.

No I/O: ``store.py`` keeps the records. A record's digest is over the canonical JSON of all its
fields including the digest of the record before it, so no record can be changed, taken out or
moved without every later digest changing too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import CorruptLog, InputError

Kind = Literal[
    "trained",
    "candidate",
    "intent",
    "outcome",
    "promote",
    "rollback",
    "deploy",
    "approval",
    "contract",
    "nightly",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# What the first record is bound to.
GENESIS = digest.of_bytes(b"caisson ledger")


@dataclass(frozen=True)
class Record:
    """One entry.

    Attributes:
        number: Place in the ledger, from 1 without gaps.
        at: When it was written, RFC 3339 in UTC.
        kind: What happened.
        subject: To what: a package digest, ``contract@version`` or ``model/target``.
        body: The rest, as plain data.
        previous: Digest of the record before it; of nothing for the first.
        digest: Digest over all of the above.
        signature: Signature over the digest; empty until ledger keys exist.
    """

    number: int
    at: str
    kind: Kind
    subject: str
    body: Mapping[str, Any]
    previous: Digest
    digest: Digest
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "body": dict(self.body)}


@dataclass(frozen=True)
class Pointer:
    """What is live of a model in a target.

    Attributes:
        model: Name of the model.
        target: Name of the target.
        digest: Package digest of the live release.
        previous: Package digest of the release before it, None if there was none.
        number: The record that moved the pointer here.
    """

    model: str
    target: str
    digest: Digest
    previous: Digest | None
    number: int


def link(
    previous: Record | None, *, at: str, kind: str, subject: str, body: Mapping[str, Any]
) -> Record:
    """Make the record that follows ``previous``.

    Raises:
        InputError: If the kind is unknown, or the body is not plain data.
    """
    if kind not in KINDS:
        raise InputError("unknown kind of record", expected=", ".join(KINDS), found=kind)
    unsealed = Record(
        number=previous.number + 1 if previous else 1,
        at=at,
        kind=kind,
        subject=subject,
        body=dict(body),
        previous=previous.digest if previous else GENESIS,
        digest=GENESIS,
    )
    return replace(unsealed, digest=seal(unsealed))


def seal(record: Record) -> Digest:
    """Return the digest that a record must carry."""
    content = record.to_dict()
    del content["digest"], content["signature"]
    return digest.of_json({"format_version": 0, **content})


def check(records: Iterable[Record]) -> Record | None:
    """Check a whole chain and return its last record.

    Raises:
        CorruptLog: If a record was changed, removed, added or moved.
    """
    last: Record | None = None
    for record in records:
        number = last.number + 1 if last else 1
        before = last.digest if last else GENESIS
        if record.number != number:
            raise broken(f"record {number} is missing", str(number), str(record.number))
        if record.previous != before:
            raise broken(f"record {number} follows another one", before, record.previous)
        if record.digest != seal(record):
            raise broken(f"record {number} was changed", record.digest, seal(record))
        last = record
    return last


def broken(message: str, expected: str, found: str) -> CorruptLog:
    """Make the error of a ledger that does not hold together."""
    return CorruptLog(
        message,
        expected=expected,
        found=found,
        location="ledger",
        remedy="Stop releasing, keep the file as evidence and restore the ledger from a backup.",
    )
