"""What deploy and rollback share: load aside, decide in the ledger, switch, retire the old slot.

The ledger decides and the target follows: the pointer moves by compare-and-set first, then the
target is switched. So a crash before the decision is undone, a crash after it is completed, and
nobody has to guess which of the two it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contracts.base import failpoint
from contracts.base.digest import Digest
from contracts.base.errors import LoadFailed, RefusedError
from tasks.ledger.store import Ledger
from tasks.release import history, kept
from tasks.release.journal import Inverse, Journal, Operation, Undo, require_undone, unfinished
from tasks.release.targets.interface import GoldenResult, Release, Target


@dataclass(frozen=True)
class Move:
    """A change of what is live.

    Attributes:
        model: Name of the model.
        target: Name of the target.
        old: What is live before; None if nothing is.
        new: What shall be live.
    """

    model: str
    target: str
    old: Digest | None
    new: Digest

    @property
    def subject(self) -> str:
        """Return what the ledger calls the place that changes."""
        return history.subject(self.model, self.target)


def lock_path(locks: Path, target: str) -> Path:
    """Return the lock file that deploys and rollbacks of one target hold."""
    return locks / f"target-{target}"


def acts(target: Target) -> Mapping[str, Undo]:
    """Return how each inverse is carried out on a target."""
    return {
        "unload": lambda arguments: target.unload(Digest(arguments["package"])),
        "restore": lambda _: target.restore(),
    }


def load(journal: Journal, target: Target, release: Release) -> GoldenResult:
    """Load a kept release into the idle slot and run its test cases.

    Raises:
        LoadFailed: If it cannot be loaded; what the target serves is unchanged.
    """
    _clear_idle_slot(target, release.package)
    failpoint.hit("cutover.load.before")
    with journal.effect("load", Inverse("unload", {"package": release.package})):
        target.load(release)
        failpoint.hit("cutover.load.inside")
    failpoint.hit("cutover.load.after")
    golden = target.golden(release.package)
    failpoint.hit("cutover.golden.after")
    return golden


def decide(
    journal: Journal,
    ledger: Ledger,
    move: Move,
    kind: Literal["promote", "rollback"],
    body: Mapping[str, Any],
) -> None:
    """Move the live pointer; from here on an interrupted change is completed, not undone.

    Raises:
        PointerMoved: If something else became live meanwhile.
    """
    failpoint.hit("cutover.decide.before")
    with journal.effect("decide"):
        ledger.move_pointer(
            move.model, move.target, expected=move.old, new=move.new, body=body, kind=kind
        )
        failpoint.hit("cutover.decide.inside")
    failpoint.hit("cutover.decide.after")


def switch(journal: Journal, target: Target, package: Digest) -> None:
    """Make the loaded package answer every request."""
    failpoint.hit("cutover.switch.before")
    with journal.effect("switch"):
        target.promote(package)
        failpoint.hit("cutover.switch.inside")
    failpoint.hit("cutover.switch.after")


def retire(journal: Journal, target: Target, old: Digest | None, drain_s: float) -> bool:
    """Let the old slot finish its answers, then empty it; say whether it finished in time."""
    if old is None:
        return True
    failpoint.hit("cutover.retire.before")
    with journal.effect("retire"):
        drained = target.drain(drain_s)
        failpoint.hit("cutover.retire.inside")
        target.unload(old)
    failpoint.hit("cutover.retire.after")
    return drained


def record(ledger: Ledger, move: Move, operation: str, body: Mapping[str, Any]) -> None:
    """Write the record of a finished deployment, once."""
    earlier = ledger.records("deploy", move.subject)
    if any(item.body.get("operation") == operation for item in earlier):
        return
    failpoint.hit("cutover.record.before")
    ledger.append("deploy", move.subject, {**body, "operation": operation})
    failpoint.hit("cutover.record.after")


def converge(target: Target, release: Release) -> bool:
    """Make a target serve what the ledger says is live; say whether that changed anything.

    Raises:
        LoadFailed: If the release cannot be loaded or fails its own test cases.
    """
    state = target.ensure()
    if state.live == release.package and state.candidate is None and state.canary_share == 0:
        return False
    if state.live != release.package:
        target.restore()
        _clear_idle_slot(target, release.package)
        target.load(release)
        golden = target.golden(release.package)
        if golden.failures:
            raise LoadFailed(
                f"test cases fail: {'; '.join(golden.failures)}",
                stage="health",
                location=target.name,
                remedy="Roll back: `caisson rollback`.",
            )
        target.promote(release.package)
    target.restore()
    _clear_idle_slot(target, None)
    return True


def recover(ledger: Ledger, target: Target) -> list[str]:
    """Complete or undo what a crash left open on a target, whose lock the caller holds.

    Returns:
        One sentence for each operation that was open.

    Raises:
        RefusedError: If something could not be taken back.
    """
    stories = []
    for operation in unfinished(ledger):
        facts = operation.facts
        if operation.verb != "release" and facts.get("target") == target.name:
            stories.append(_resume(ledger, target, operation))
    return stories


def decided(ledger: Ledger, operation: Operation) -> bool:
    """Whether an operation got as far as moving the pointer."""
    moves = history.moves(ledger, operation.subject)
    return any(move.body.get("operation") == operation.key for move in moves)


def require_model(ledger: Ledger, target: str, model: str) -> None:
    """Refuse a target that serves another model.

    Raises:
        RefusedError: If it does; a target serves one model.
    """
    others = [item.model for item in ledger.pointers() if item.target == target]
    if others and model not in others:
        raise RefusedError(
            "target serves another model",
            expected=", ".join(others),
            found=model,
            location=target,
            remedy="Choose another target with --target.",
        )


def _resume(ledger: Ledger, target: Target, operation: Operation) -> str:
    """Bring one open operation to its end."""
    journal, facts = Journal(ledger, operation), operation.facts
    what = f"{operation.verb} of {facts['package']}"
    if decided(ledger, operation):
        live = ledger.pointer(facts["model"], facts["target"])
        converge(target, kept.reopen(target.home, live.digest if live else facts["package"]))
        if operation.verb == "deploy":
            move = Move(facts["model"], facts["target"], facts["old"], facts["package"])
            record(ledger, move, operation.key, facts["record"])
        journal.close("completed", "completed by the next command")
        return f"completed the {what} that an earlier command left half done"
    if operation.steps:
        target.ensure()
    require_undone(journal.undo(acts(target)), operation.subject)
    journal.close("undone", "undone by the next command")
    return f"undid the {what} that an earlier command left half done"


def _clear_idle_slot(target: Target, wanted: Digest | None) -> None:
    """Empty the slot that is not live, unless it holds what is wanted."""
    other = target.state().candidate
    if other is not None and other != wanted:
        target.unload(other)
