"""Builds what stages need from the settings."""

from __future__ import annotations

from contracts.base import failpoint
from contracts.base.clock import Clock, SystemClock
from contracts.base.progress import Reporter, silent
from flows.settings import Settings
from tasks.ledger.store import Ledger
from tasks.workspace import Workspace


def workspace(
    settings: Settings, *, clock: Clock | None = None, progress: Reporter = silent
) -> Workspace:
    """Return the workspace of an installation, with its folders made and failpoints armed.

    Raises:
        UnavailableError: If the home folder cannot be written.
    """
    failpoint.configure(settings.failpoints)
    return reading(settings, clock=clock, progress=progress).prepare()


def reading(
    settings: Settings, *, clock: Clock | None = None, progress: Reporter = silent
) -> Workspace:
    """Return the workspace for commands that only read: nothing is made, the home may be absent."""
    default = settings.home / "sources"
    return Workspace(
        home=settings.home,
        root=settings.root,
        clock=clock or SystemClock(),
        progress=progress,
        batches=None if settings.sources == default else settings.sources,
    )


def ledger(place: Workspace) -> Ledger:
    """Return the release ledger of a workspace."""
    return Ledger(place.ledger_path, place.clock)
