"""What a flow starts from: settings, workspace, policy and the logical time of the run.

A flow's own parameters are plain text and numbers, so that it can be started from Python, from
``caisson``, from a schedule or from a form; this turns them into what stages take.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from contracts.base import clock
from contracts.base.progress import Reporter, silent
from flows import presence, wiring
from flows import settings as configuration
from flows.settings import Settings
from tasks.ledger.store import Ledger
from tasks.policy import TargetPolicy
from tasks.policy import load as load_policy
from tasks.workspace import Workspace

_watcher: ContextVar[Reporter] = ContextVar("_watcher", default=silent)


@dataclass(frozen=True)
class Context:
    """Where and when a flow runs.

    Attributes:
        settings: What the environment says.
        workspace: Folders, clock and progress of the installation.
        as_of: Logical time of the run, UTC.
    """

    settings: Settings
    workspace: Workspace
    as_of: datetime

    @property
    def ledger(self) -> Ledger:
        """The release ledger."""
        return wiring.ledger(self.workspace)

    @property
    def contracts(self) -> Path:
        """Folder of published contracts and feature definitions."""
        return self.workspace.root / "contracts" / "published"

    @property
    def models(self) -> Path:
        """Folder of published models."""
        return self.workspace.root / "model_packages" / "published"

    def prepared(self) -> Context:
        """Return this context with every folder of its home made."""
        self.workspace.prepare()
        return self

    def policy(self, target: str | None = None) -> TargetPolicy:
        """Return the policy of a target.

        Raises:
            InputError: If there is none of that name, naming those that exist.
        """
        folder = self.workspace.root / "infra" / "policies"
        return load_policy(folder, target or self.settings.target)


@contextlib.contextmanager
def watched(reporter: Reporter) -> Iterator[None]:
    """Send progress of the flows started in this block to a reporter."""
    token = _watcher.set(reporter)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Reporter:
    """Return who hears of the progress of flows started here; nobody by default."""
    return _watcher.get()


def current(as_of: str | None = None) -> Context:
    """Return the context of a run, which may write in the home folder until this process ends.

    Args:
        as_of: Logical time as RFC 3339 or a date; the present day if None, so that the same
            command repeated on one day is the same work.

    Raises:
        InputError: If a setting or the time is malformed.
        UnavailableError: If the home folder cannot be written.
    """
    found = configuration.load()
    place = wiring.workspace(found, progress=watcher())
    presence.enter(place)
    return Context(found, place, moment(as_of, place.clock))


def moment(as_of: str | None, present: clock.Clock) -> datetime:
    """Return a logical time from text; the first moment of the present day if None."""
    if as_of is not None:
        return clock.from_text(as_of, where="as_of")
    return present.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def reading() -> Context:
    """Return the context of a command that only reads: nothing is made, the home may be absent."""
    found = configuration.load()
    place = wiring.reading(found)
    return Context(found, place, moment(None, place.clock))
