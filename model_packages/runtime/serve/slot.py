"""One loaded model with its queue and its figures."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from contracts.base.clock import Clock
from contracts.base.digest import Digest
from model_packages.runtime.config import QueueOptions
from model_packages.runtime.load.model import LoadedModel
from model_packages.runtime.memory import release
from model_packages.runtime.serve.batcher import Batcher
from model_packages.runtime.serve.figures import SlotStatistics
from model_packages.runtime.serve.route import SlotName

_log = logging.getLogger(__name__)

_RETIRE_S = 30.0


@dataclass(frozen=True)
class Slot:
    """One of the two places a model can be in."""

    name: SlotName
    model: LoadedModel
    batcher: Batcher
    statistics: SlotStatistics

    @property
    def digest(self) -> Digest:
        """Digest of the package in it."""
        return self.model.source.package_digest

    @property
    def timeout_s(self) -> float:
        """Longest a request may take."""
        return self.model.spec.settings.timeout_ms / 1000

    def describe(self) -> dict[str, Any]:
        """Return what is in it, as plain data."""
        return {
            "package_digest": self.digest,
            "set_digest": self.model.source.set_digest,
            "model": self.model.spec.name,
            "version": self.model.spec.version,
            "pending": self.batcher.pending,
            "stages": [record.to_dict() for record in self.model.records],
        }


def fill(name: SlotName, model: LoadedModel, clock: Clock, queue: QueueOptions) -> Slot:
    """Return a slot that is ready to compute."""
    statistics = SlotStatistics()
    settings = model.spec.settings
    batcher = Batcher(
        model.session,
        max_rows=settings.max_batch_size,
        waiting=min(settings.queue_size, queue.requests),
        clock=clock,
        statistics=statistics,
    )
    batcher.start()
    return Slot(name, model, batcher, statistics)


async def retire(slot: Slot, limit_s: float = _RETIRE_S) -> None:
    """Destroy a model beside the loop, once nothing is under way in it."""
    await slot.batcher.drain(limit_s)
    slot.batcher.close()
    if not await asyncio.to_thread(slot.batcher.join, limit_s):
        _log.error("slot %s: a run does not end; its memory stays taken", slot.name)
        return
    await asyncio.to_thread(slot.model.session.close)
    await asyncio.to_thread(release.trim)
