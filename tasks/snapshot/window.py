"""Chooses which batches train a model, which judge it, and which are new, as of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from contracts.base.errors import SourceUnavailable
from contracts.catalog import Catalog
from contracts.features import declaration
from contracts.features.definition import FeatureDefinition, Input
from contracts.sources import files as sources
from contracts.sources.interface import Batch
from tasks.workspace import Workspace

PUBLISHED = "contracts/published"


@dataclass(frozen=True)
class Selection:
    """The batches of one bundle.

    Attributes:
        batches: Names of batches by source.
        as_of: Logical time of the newest of the spine's batches; the bundle's ``as_of``.
    """

    batches: dict[str, list[str]]
    as_of: datetime


@dataclass(frozen=True)
class Window:
    """What a nightly run works on.

    Attributes:
        training: All older batches.
        holdout: The batch before the newest.
        new: The newest batch.
    """

    training: Selection
    holdout: Selection
    new: Selection


def window(workspace: Workspace, definition_name: str, as_of: datetime) -> Window:
    """Choose the batches of a definition that had been delivered as of a moment.

    The spine's newest batch is new, the one before judges, the rest trains. Of an ``asof`` input
    come the batches of the same time and the one before, of a ``lookup`` the newest one.

    Raises:
        SourceUnavailable: If fewer than three batches of the spine, or none of another input, had
            been delivered.
    """
    definition = declaration.load(workspace.root / PUBLISHED, definition_name)
    spine = _delivered(workspace, definition.spine, as_of)
    if len(spine) < 3:
        raise SourceUnavailable(
            "too few batches for training, hold-out and new data",
            expected="at least 3",
            found=f"{len(spine)} delivered by {as_of.isoformat()}",
            location=definition.spine.source,
        )
    chosen = (spine[:-2], spine[-2:-1], spine[-1:])
    return Window(*(_selection(workspace, definition, part) for part in chosen))


def _selection(
    workspace: Workspace, definition: FeatureDefinition, spine: Sequence[Batch]
) -> Selection:
    first, last = spine[0].logical_time, spine[-1].logical_time
    batches = {definition.spine.source: [batch.name for batch in spine]}
    for source in definition.joined:
        delivered = _delivered(workspace, source, last)
        if not delivered:
            raise SourceUnavailable(
                f"no batch had been delivered by {last.isoformat()}", location=source.source
            )
        kept = delivered[-1:]
        if source.join == "asof":
            earlier = [batch for batch in delivered if batch.logical_time < first]
            kept = earlier[-1:] + [batch for batch in delivered if batch.logical_time >= first]
        batches[source.source] = [batch.name for batch in kept]
    return Selection(batches, last)


def _delivered(workspace: Workspace, source: Input, as_of: datetime) -> list[Batch]:
    """Return the batches of an input delivered by a moment, oldest first."""
    contract = Catalog(workspace.root / PUBLISHED).load(source.contract)
    found = [
        sources.open_batch(workspace.sources, contract, name)
        for name in sources.list_batches(workspace.sources, contract.location)
    ]
    known = [batch for batch in found if batch.logical_time <= as_of]
    return sorted(known, key=lambda batch: (batch.logical_time, batch.name))
