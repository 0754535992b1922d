"""What runs where, for `caisson status`: read from the ledger and the targets, without Prefect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from contracts.base import clock
from contracts.base.digest import Digest
from tasks.ledger.record import Pointer, Record
from tasks.ledger.store import Ledger
from tasks.release import history
from tasks.release.journal import unfinished
from tasks.release.targets.interface import TargetState
from tasks.release.targets.peek import peek
from tasks.workspace import Workspace


@dataclass(frozen=True)
class Row:
    """One model in one target.

    Attributes:
        model: Name of the model.
        target: Name of the target; empty for a model that was registered and never deployed.
        live: Package that is live by the ledger.
        candidate: Newest registered package that was never live there.
        previous: Package a rollback would return to.
        since: When the live package became live, RFC 3339.
        age_s: Seconds since then.
        level: Compliance level the live package achieved.
        url: Address of the target; empty if it does not run.
        health: ready, not-ready, stopped, differs (from the ledger) or interrupted.
    """

    model: str
    target: str
    live: Digest | None
    candidate: Digest | None
    previous: Digest | None
    since: str
    age_s: float | None
    level: str
    url: str
    health: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


Look = Callable[[str], TargetState]


def status(workspace: Workspace, look: Look | None = None) -> list[Row]:
    """Return one row for each model and target, and one for each model that runs nowhere.

    Args:
        workspace: Ledger, clock and targets.
        look: Returns the state of a target by name; looks at local ones if None.
    """
    state_of = look or (lambda name: peek(workspace.targets / name))
    ledger = Ledger(workspace.ledger_path, workspace.clock)
    now = workspace.clock.now()
    candidates = ledger.records("candidate")
    rows = [
        _row(ledger, pointer, candidates, state_of(pointer.target), now)
        for pointer in ledger.pointers()
    ]
    deployed = {row.model for row in rows}
    waiting = {str(item.body["model"]): item for item in candidates}
    rows += [
        Row(model, "", None, Digest(item.subject), None, "", None, "", "", "not deployed")
        for model, item in sorted(waiting.items())
        if model not in deployed
    ]
    return rows


def _row(
    ledger: Ledger,
    pointer: Pointer,
    candidates: list[Record],
    state: TargetState,
    now: datetime,
) -> Row:
    place = history.subject(pointer.model, pointer.target)
    moves = history.moves(ledger, place)
    moved = next(item for item in moves if item.number == pointer.number)
    seen = {item.body["to"] for item in moves}
    stack = history.releases(ledger, pointer.model, pointer.target)
    ours = [item for item in candidates if item.body["model"] == pointer.model]
    newest = Digest(ours[-1].subject) if ours and ours[-1].subject not in seen else None
    levels = [item.body["achieved_level"] for item in ours if item.subject == pointer.digest]
    return Row(
        model=pointer.model,
        target=pointer.target,
        live=pointer.digest,
        candidate=newest,
        previous=stack[-2] if len(stack) > 1 else None,
        since=moved.at,
        age_s=(now - clock.from_text(moved.at)).total_seconds(),
        level=levels[-1] if levels else "",
        url=state.url,
        health=_health(pointer, state, interrupted=bool(unfinished(ledger, place))),
    )


def _health(pointer: Pointer, state: TargetState, *, interrupted: bool) -> str:
    if not state.running:
        return "stopped"
    if state.live != pointer.digest:
        return "interrupted" if interrupted else "differs"
    return "ready" if state.ready else "not-ready"
