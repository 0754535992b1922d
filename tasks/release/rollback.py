"""Returns a target to the release before, from bytes the target kept.

Needs the ledger and the target, and nothing else: no registry, Prefect or MLflow. Digests and the
signature recorded at deployment are checked again; waivers that expired since are reported and
never block, because going back must always be possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.base import clock, failpoint, files
from contracts.base.digest import short
from contracts.base.errors import CaissonError, LoadFailed, RefusedError
from contracts.base.report import Finding, Report, conclude
from tasks.ledger.store import Ledger
from tasks.release import cutover, history, kept
from tasks.release.cutover import Move
from tasks.release.journal import Journal, require_undone
from tasks.release.targets.interface import Target
from tasks.workspace import Workspace

STAGE = "rollback"


@dataclass(frozen=True)
class RollbackOptions:
    """What a rollback may be told.

    Attributes:
        reason: Why, for the record.
        by: Who asked for it.
        drain_s: Longest wait for the bad slot to finish its answers.
    """

    reason: str = ""
    by: str = ""
    drain_s: float = 2.0


def rollback(
    workspace: Workspace, model: str, target: Target, options: RollbackOptions | None = None
) -> Report:
    """Make the release before the live one live again.

    Args:
        workspace: Ledger and locks.
        model: Name of the model.
        target: Where it runs.
        options: Reason and who.

    Returns:
        pass, with what is live now and low findings for waivers that have expired.

    Raises:
        RefusedError: If there is no earlier release.
        IntegrityError: If the bytes the target kept are not those that were deployed.
        LoadFailed: If the earlier release cannot be loaded; the live one stays live.
        UnavailableError: If the target cannot be started.
    """
    chosen = options or RollbackOptions()
    begun = workspace.clock.monotonic()
    with files.locked(cutover.lock_path(workspace.locks, target.name)):
        ledger = Ledger(workspace.ledger_path, workspace.clock)
        recovered = cutover.recover(ledger, target)
        move = _move(ledger, model, target.name)
        drained = _carry_out(ledger, target, move, chosen)
    findings = _warnings(ledger, move, workspace.clock.now())
    measurements: dict[str, Any] = {
        "seconds": workspace.clock.monotonic() - begun,
        "drained": drained,
        "url": target.state().url,
    }
    if recovered:
        measurements["recovered"] = recovered
    facts = {"model": model, "target": target.name, "package_digest": move.new, "from": move.old}
    return conclude(STAGE, move.subject, findings, facts=facts, measurements=measurements)


def _move(ledger: Ledger, model: str, target: str) -> Move:
    stack = history.releases(ledger, model, target)
    if len(stack) < 2:
        live = f"{stack[0]} is the oldest" if stack else "nothing is live"
        raise RefusedError(
            f"there is no earlier release of {model} to go back to: {live}",
            location=target,
            remedy="Deploy a release: `caisson deploy`.",
        )
    return Move(model, target, stack[-1], stack[-2])


def _carry_out(ledger: Ledger, target: Target, move: Move, options: RollbackOptions) -> bool:
    failpoint.hit("rollback.reopen.before")
    release = kept.reopen(target.home, move.new, _key_ids(ledger, move))
    target.ensure()
    about = {"model": move.model, "target": move.target, "old": move.old, "package": move.new}
    journal = Journal.begin(ledger, "rollback", move.subject, about)
    try:
        golden = cutover.load(journal, target, release)
        if golden.failures:
            raise LoadFailed(
                f"golden cases do not match any more: {'; '.join(golden.failures[:3])}",
                stage="health",
                location=str(release.tree),
                remedy="The live release stays live. Deploy another release.",
            )
        body = {"operation": journal.key, "reason": options.reason, "by": options.by}
        cutover.decide(journal, ledger, move, "rollback", body)
    except BaseException as err:
        pointer = ledger.pointer(move.model, move.target)
        if pointer is None or pointer.digest != move.new:
            require_undone(journal.undo(cutover.acts(target)), move.subject)
            journal.close("undone", f"{type(err).__name__}: {err}"[:500])
        raise
    try:
        cutover.switch(journal, target, move.new)
        drained = cutover.retire(journal, target, move.old, options.drain_s)
    except CaissonError as err:
        raise RefusedError(
            f"the ledger says {move.new} is live, but the target was not switched: {err}",
            location=target.name,
            remedy="Run `caisson deploy` or `caisson rollback` again, which completes it first.",
        ) from err
    journal.close("done")
    return drained


def _deployed(ledger: Ledger, move: Move) -> Mapping[str, Any]:
    """Return what was recorded when the earlier release was deployed last."""
    bodies = [record.body for record in ledger.records("deploy", move.subject)]
    ours = [body for body in bodies if body["package"] == move.new]
    return ours[-1] if ours else {}


def _key_ids(ledger: Ledger, move: Move) -> list[str] | None:
    return _deployed(ledger, move).get("key_ids")


def _warnings(ledger: Ledger, move: Move, now: datetime) -> list[Finding]:
    """Return a low finding for every waiver of the release that has expired since."""
    waivers = _deployed(ledger, move).get("waivers", [])
    return [_expired(move, waiver) for waiver in waivers if _over(waiver, now)]


def _over(waiver: dict[str, Any], now: datetime) -> bool:
    return clock.from_text(waiver["expires"], where=f"waiver {waiver['id']}") <= now


def _expired(move: Move, waiver: dict[str, Any]) -> Finding:
    return Finding(
        rule="rollback.waiver-expired",
        subject=move.new,
        location=str(waiver["id"]),
        severity="low",
        message=f"waiver {waiver['id']} of {short(move.new)} expired on {waiver['expires']}",
        remedy="Renew the waiver or release a fix; the rollback was carried out.",
        evidence=waiver,
    )
