"""The saga journal: every outer effect with its inverse first, its outcome after.

An operation (one release, one deployment, one rollback) is a row of effects. It opens with an
intent, each effect adds an intent that names its inverse and an outcome, and it closes with an
outcome. What a crash leaves open is found in the ledger at the start of the next writing verb and
either completed or undone, newest effect first. Inverses are plain data, so any later process can
act on them; acting twice must change nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from contracts.base import digest, failpoint
from contracts.base.errors import CaissonError, CorruptLog, RefusedError
from model_packages.oci.reference import PackageRef
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger

Verb = Literal["release", "deploy", "rollback"]
Result = Literal["done", "undone", "failed", "completed"]
Undo = Callable[[Mapping[str, Any]], None]

OPEN = "open"


@dataclass(frozen=True)
class Inverse:
    """What takes an effect back.

    Attributes:
        act: Name of the act, which a table of the operation's verb maps to a function.
        arguments: What it needs, as plain data.
    """

    act: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


# For effects that need no undoing: bytes named by their own digest are never wrong.
KEEP = Inverse("keep")


@dataclass(frozen=True)
class Step:
    """One effect on record.

    Attributes:
        name: Name of the step.
        inverse: What takes it back.
        result: How it ended; None if nobody wrote that down.
    """

    name: str
    inverse: Inverse
    result: Result | None


@dataclass(frozen=True)
class Operation:
    """An operation on record.

    Attributes:
        key: Identity of the operation.
        verb: What was under way.
        subject: On what, such as ``flight-delay/local``.
        facts: What it was about: package, target.
        steps: Its effects in the order they began.
        result: How it ended; None while it is open.
    """

    key: str
    verb: Verb
    subject: str
    facts: Mapping[str, Any]
    steps: tuple[Step, ...]
    result: Result | None

    def ended(self, name: str) -> bool:
        """Whether a step was carried out, and that was written down."""
        return any(step.name == name and step.result == "done" for step in self.steps)


class Journal:
    """Writes one operation to the ledger."""

    def __init__(self, ledger: Ledger, operation: Operation) -> None:
        """Continue an operation that is open on record."""
        self._ledger = ledger
        self._key = operation.key
        self._subject = operation.subject
        self._open = list(operation.steps)

    @property
    def key(self) -> str:
        """Identity of the operation."""
        return self._key

    @classmethod
    def begin(cls, ledger: Ledger, verb: Verb, subject: str, facts: Mapping[str, Any]) -> Journal:
        """Open an operation: write down that it is about to happen."""
        earlier = len(ledger.records("intent", subject))
        key = digest.of_json([verb, subject, facts, earlier])
        body = {"operation": key, "step": OPEN, "verb": verb, "facts": dict(facts)}
        failpoint.hit("journal.open.before")
        ledger.append("intent", subject, body)
        failpoint.hit("journal.open.after")
        return cls(ledger, Operation(key, verb, subject, facts, (), None))

    @contextlib.contextmanager
    def effect(self, name: str, inverse: Inverse = KEEP) -> Iterator[None]:
        """Carry out one effect in the block, between its intent and its outcome.

        If the block raises, the effect stays without outcome: it may have happened in part, so
        ``undo`` takes it back like one that was carried out.
        """
        body = {"operation": self._key, "step": name, "inverse": _plain(inverse)}
        failpoint.hit("journal.intent.before")
        self._ledger.append("intent", self._subject, body)
        self._open.append(Step(name, inverse, None))
        failpoint.hit("journal.intent.after")
        yield
        self._outcome(name, "done")

    def undo(self, acts: Mapping[str, Undo]) -> list[str]:
        """Take back every effect, newest first, and return what could not be taken back.

        Args:
            acts: For each name of an act, the function that carries it out.
        """
        troubles = []
        for step in reversed(self._open):
            if step.result in ("undone", "completed"):
                continue
            try:
                if step.inverse.act != KEEP.act:
                    acts[step.inverse.act](step.inverse.arguments)
            except CaissonError as err:
                troubles.append(f"{step.name}: {err}")
            else:
                self._outcome(step.name, "undone")
        return troubles

    def close(self, result: Result, note: str = "") -> None:
        """Write down how the operation ended."""
        self._outcome(OPEN, result, note)

    def _outcome(self, name: str, result: Result, note: str = "") -> None:
        body = {"operation": self._key, "step": name, "result": result, "note": note}
        failpoint.hit("journal.outcome.before")
        self._ledger.append("outcome", self._subject, body)
        failpoint.hit("journal.outcome.after")


def operations(ledger: Ledger, subject: str | None = None) -> list[Operation]:
    """Return the operations on record, oldest first, all or those on one subject.

    Raises:
        CorruptLog: If the journal's records do not fit together.
    """
    found: dict[str, list[Record]] = {}
    records = ledger.records("intent", subject) + ledger.records("outcome", subject)
    for record in sorted(records, key=lambda item: item.number):
        found.setdefault(str(record.body.get("operation")), []).append(record)
    try:
        return [_operation(key, rows) for key, rows in found.items()]
    except (KeyError, TypeError) as err:
        raise CorruptLog(f"journal cannot be read: {err!r}", location="ledger") from err


def unfinished(ledger: Ledger, subject: str | None = None) -> list[Operation]:
    """Return the operations that are open, newest first."""
    return [item for item in reversed(operations(ledger, subject)) if item.result is None]


def lock_path(locks: Path, ref: PackageRef) -> Path:
    """Return the lock file that all who release one package hold in turn."""
    return locks / f"release-{digest.short(ref.digest, 32)}"


def settle(ledger: Ledger, subject: str) -> int:
    """Close releases of a package that a crash left open, whose lock the caller holds.

    Their effects are bytes and records named by content: what is there is right, what is missing
    is done again by the caller. So there is nothing to undo.

    Returns:
        How many were open.
    """
    open_ones = [item for item in unfinished(ledger, subject) if item.verb == "release"]
    for operation in open_ones:
        Journal(ledger, operation).close("completed", "done again by the next command")
    return len(open_ones)


def require_undone(troubles: Sequence[str], subject: str) -> None:
    """Refuse to go on over effects that could not be taken back.

    Raises:
        RefusedError: If there are any; the operation stays open for the next start.
    """
    if troubles:
        raise RefusedError(
            f"not everything could be taken back: {'; '.join(troubles)}",
            location=subject,
            remedy="Remove the cause; the next deploy, rollback or release tries again first.",
        )


def _operation(key: str, records: Sequence[Record]) -> Operation:
    head, *rest = records
    steps: dict[str, Step] = {}
    ended: Result | None = None
    for record in rest:
        body, name = record.body, record.body["step"]
        if record.kind == "intent":
            inverse = Inverse(body["inverse"]["act"], body["inverse"]["arguments"])
            steps[name] = Step(name, inverse, None)
        elif name == OPEN:
            ended = body["result"]
        else:
            steps[name] = Step(name, steps[name].inverse, body["result"])
    body = head.body
    return Operation(key, body["verb"], head.subject, body["facts"], tuple(steps.values()), ended)


def _plain(inverse: Inverse) -> dict[str, Any]:
    return {"act": inverse.act, "arguments": dict(inverse.arguments)}
