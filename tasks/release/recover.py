"""What every writing verb does first: end what earlier commands left half done.

A target that somebody works on is left to them, and one that does not run is left to its own next
deploy or rollback: an unrelated command neither waits nor starts a server. What cannot be ended
now is told and tried again next time; it never stops the verb that is about to begin.
"""

from __future__ import annotations

from collections.abc import Callable

from contracts.base import files
from contracts.base.errors import CaissonError
from model_packages.oci.reference import PackageRef
from tasks.ledger.store import Ledger
from tasks.release import cutover, journal
from tasks.release.journal import Operation
from tasks.release.targets.interface import Target
from tasks.workspace import Workspace


def recover(workspace: Workspace, open_target: Callable[[str], Target]) -> list[str]:
    """Complete or undo every operation a crash left open, and tell what was done.

    Args:
        workspace: Ledger and locks.
        open_target: Returns a target by name, without starting it.
    """
    ledger = Ledger(workspace.ledger_path, workspace.clock)
    open_ones = journal.unfinished(ledger)
    targets = sorted({str(item.facts["target"]) for item in open_ones if item.verb != "release"})
    stories = [
        story for name in targets for story in _recover_target(workspace, ledger, open_target(name))
    ]
    for operation in open_ones:
        if operation.verb == "release":
            stories += _settle(workspace, ledger, operation)
    return stories


def _recover_target(workspace: Workspace, ledger: Ledger, target: Target) -> list[str]:
    with files.locked(cutover.lock_path(workspace.locks, target.name), wait=False) as held:
        if not held or not target.state().running:
            return []
        try:
            return cutover.recover(ledger, target)
        except CaissonError as err:
            return [f"target {target.name} could not be recovered yet: {err}"]


def _settle(workspace: Workspace, ledger: Ledger, operation: Operation) -> list[str]:
    ref = PackageRef.from_dict(operation.facts)
    with files.locked(journal.lock_path(workspace.locks, ref), wait=False) as held:
        if not held or not journal.settle(ledger, operation.subject):
            return []
    return [f"closed a release of {ref} that an earlier command left half done"]
