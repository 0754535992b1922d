"""What was live where, read from the ledger."""

from __future__ import annotations

from contracts.base.digest import Digest
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger


def subject(model: str, target: str) -> str:
    """Return what the ledger calls a model in a target."""
    return f"{model}/{target}"


def moves(ledger: Ledger, place: str) -> list[Record]:
    """Return every change of what is live in a place, oldest first."""
    found = ledger.records("promote", place) + ledger.records("rollback", place)
    return sorted(found, key=lambda record: record.number)


def releases(ledger: Ledger, model: str, target: str) -> list[Digest]:
    """Return the releases one can go back through, the live one last.

    A promotion adds to it, a rollback takes away: going back twice leads to the release before
    the one before, never forward to the bad one.
    """
    stack: list[Digest] = []
    for move in moves(ledger, subject(model, target)):
        if move.kind == "promote":
            stack.append(Digest(move.body["to"]))
        elif stack:
            stack.pop()
    return stack
