"""Two slots and what may happen to them: load, try, promote, restore, drain, unload.

The deploy flow decides and the slots obey, with one exception: when the flow's lease on a canary
runs out, every request goes back to the live slot. Each act may be repeated; what is done
already changes nothing. All methods run on the event loop; only loading runs beside it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base.clock import Clock
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, InputError, SwapRefused
from model_packages.runtime.backends.interface import Backend
from model_packages.runtime.config import QueueOptions
from model_packages.runtime.load import golden
from model_packages.runtime.load.model import LoadedModel, PackageSource, Stage
from model_packages.runtime.load.stages import load
from model_packages.runtime.serve import persistence
from model_packages.runtime.serve.persistence import Record
from model_packages.runtime.serve.route import SLOTS, Route, RouteWord, SlotName, idle
from model_packages.runtime.serve.slot import Slot, fill, retire

_log = logging.getLogger(__name__)

_LONGEST_LEASE_S = 3600.0


@dataclass
class _Loading:
    """A load under way."""

    slot: SlotName
    digest: Digest
    stage: Stage = "metadata"

    def enter(self, stage: Stage) -> None:
        """Take note of a stage that begins."""
        self.stage = stage


class Slots:
    """The slots of one target. Construct on a loop."""

    def __init__(
        self, home: Path, backend: Callable[[], Backend], clock: Clock, queue: QueueOptions
    ) -> None:
        """Prepare empty slots for the target in ``home``."""
        self._home = home
        self._backend = backend
        self._clock = clock
        self._queue = queue
        self._word = RouteWord()
        self._slots: dict[SlotName, Slot] = {}
        self._record = Record()
        self._loading: _Loading | None = None
        self._busy = asyncio.Lock()
        self._lease_end = 0.0
        self._lease_lost = False
        self._failure: CaissonError | None = None

    # Asking.

    @property
    def live(self) -> Slot | None:
        """The slot that serves."""
        name = self._word.read().live
        return self._slots.get(name) if name else None

    @property
    def pending(self) -> int:
        """Requests under way in all slots."""
        return sum(slot.batcher.pending for slot in self._slots.values())

    def choose(self, key: str) -> tuple[Slot | None, bool]:
        """Return the slot for a request's key, and whether it is the canary."""
        route = self._word.read()
        name = route.choose(key)
        return (self._slots.get(name) if name else None), name is not None and name != route.live

    def status(self) -> dict[str, Any]:
        """Return the state of everything, as plain data."""
        route = self._word.read()
        live = self.live
        candidate = self._slots.get(idle(route))
        lease = max(0.0, self._lease_end - self._clock.monotonic()) if route.canary else 0.0
        return {
            "model": live.model.spec.name if live else "",
            "live": live.digest if live else None,
            "candidate": candidate.digest if candidate else None,
            "previous": self._record.previous.package_digest if self._record.previous else None,
            "canary_share": route.share if route.canary else 0.0,
            "lease_s": lease,
            "lease_lost": self._lease_lost,
            "loading": dict(vars(self._loading)) if self._loading else None,
            "failure": self._failure.to_dict() if self._failure else None,
            "slots": {
                name: self._slots[name].describe() if name in self._slots else None
                for name in SLOTS
            },
        }

    def statistics(self) -> dict[str, Any]:
        """Return the figures of each loaded slot."""
        return {
            name: {"package_digest": slot.digest, **slot.statistics.to_dict()}
            for name, slot in self._slots.items()
        }

    # Acting.

    async def resume(self) -> None:
        """Load and serve what was live when the last worker ended."""
        try:
            self._record = persistence.load(self._home)
            source = self._record.live
            if source is None:
                return
            async with self._busy:
                slot = await self._load(source, "A")
        except CaissonError as err:
            self._failure = err
            _log.exception("what was live could not be loaded")
            return
        self._word.write(Route(live=slot.name))

    async def load(self, source: PackageSource, *, replace: bool = False) -> Slot:
        """Load a package into the slot that is not live.

        Args:
            source: The package, in the target's home.
            replace: Whether a package that is in that slot makes room.

        Raises:
            LoadFailed: If it cannot be loaded; the slot is empty then.
            SwapRefused: If the slot holds another package, or another load is under way.
            InputError: If the folder is not in the target's home.
        """
        if self._busy.locked():
            raise SwapRefused("another package is being loaded", remedy="Wait for it to end.")
        async with self._busy:
            held = self._find(source.package_digest)
            if held is not None:
                return held
            folder = persistence.inside(self._home, source.folder)
            name = idle(self._word.read())
            await self._make_room(name, replace=replace)
            return await self._load(dataclasses.replace(source, folder=folder), name)

    async def golden(self, digest: Digest) -> list[golden.CaseResult]:
        """Run the golden cases of a loaded package.

        Raises:
            InputError: If it is not loaded.
        """
        model = self._require(digest).model
        return await asyncio.to_thread(golden.run, model.session, model.spec.cases)

    def route(self, share: float, lease_s: float) -> None:
        """Send a share of the requests to the candidate until the lease runs out.

        Raises:
            InputError: If share or lease is out of range.
            SwapRefused: If there is no candidate or nothing is live.
        """
        if not 0 <= share <= 1 or not 0 < lease_s <= _LONGEST_LEASE_S:
            raise InputError(
                "share or lease is out of range",
                expected=f"a share of 0 to 1 and a lease of up to {_LONGEST_LEASE_S:g} s",
                found=f"{share} and {lease_s}",
            )
        route = self._word.read()
        self._lease_lost = False
        if share == 0:
            self._word.write(Route(live=route.live))
            return
        name = idle(route)
        if route.live is None or name not in self._slots:
            raise SwapRefused(
                "there is no candidate beside a live package",
                remedy="Load a package first; the first one of a target needs no canary.",
            )
        self._lease_end = self._clock.monotonic() + lease_s
        self._word.write(Route(route.live, name, share))

    async def promote(self, digest: Digest) -> None:
        """Make a loaded package live; what was live becomes the previous one.

        Raises:
            InputError: If it is not loaded.
        """
        slot = self._require(digest)
        route = self._word.read()
        if slot.name == route.live:
            return
        record = self._record.promoted(slot.model.source)
        await asyncio.to_thread(persistence.save, self._home, record)
        self._record = record
        self._failure = None
        self._word.write(Route(live=slot.name))

    async def restore(self, digest: Digest | None = None) -> Digest:
        """Return to the previous package, loading it if it is no longer loaded.

        Args:
            digest: The package the caller expects there; None for whatever it is.

        Raises:
            SwapRefused: If there is no previous package, or another one than expected.
            LoadFailed: If it cannot be loaded.
        """
        previous = self._record.previous
        if previous is None or digest not in (None, previous.package_digest):
            raise SwapRefused(
                "the previous package is not the one expected",
                expected=digest or "a previous package",
                found=previous.package_digest if previous else "none",
                remedy="Deploy the release that is wanted.",
            )
        await self.load(previous, replace=True)
        await self.promote(previous.package_digest)
        return previous.package_digest

    async def unload(self, digest: Digest) -> bool:
        """Empty the slot that holds a package, after what is under way in it.

        Returns:
            Whether there was such a slot.

        Raises:
            SwapRefused: If it is live.
        """
        slot = self._find(digest)
        if slot is None:
            return False
        route = self._word.read()
        if slot.name == route.live:
            raise SwapRefused("the live package cannot be unloaded", remedy="Promote another.")
        if slot.name == route.canary:
            self._word.write(Route(live=route.live))
        await self._retire(slot)
        return True

    async def drain(self, limit_s: float) -> bool:
        """Wait until the slot that is not live answers nothing more.

        Returns:
            Whether it came to that.

        Raises:
            SwapRefused: If it still gets a share of the requests.
        """
        route = self._word.read()
        if route.canary is not None:
            raise SwapRefused("the candidate still gets requests", remedy="Set its share to 0.")
        slot = self._slots.get(idle(route))
        return slot is None or await slot.batcher.drain(limit_s)

    def tick(self, now: float) -> None:
        """Give up a canary whose lease ran out, and answer what is late."""
        route = self._word.read()
        if route.canary is not None and now >= self._lease_end:
            _log.warning("canary lease lost; every request goes to the live package")
            self._word.write(Route(live=route.live))
            self._lease_lost = True
        for slot in self._slots.values():
            slot.batcher.expire(now)

    def stuck(self, now: float) -> bool:
        """Whether a model has computed for so long that it will not end."""
        return any(
            slot.batcher.running_s(now) > self._queue.stuck_s for slot in self._slots.values()
        )

    async def close(self, limit_s: float) -> bool:
        """Finish what is under way and end all inference threads.

        Returns:
            Whether everything was finished within the limit.
        """
        slots = list(self._slots.values())
        drained = [await slot.batcher.drain(limit_s) for slot in slots]
        for slot in slots:
            slot.batcher.close()
        return all(drained)

    async def _load(self, source: PackageSource, name: SlotName) -> Slot:
        self._loading = _Loading(name, source.package_digest)
        try:
            model = await asyncio.to_thread(
                load, source, self._backend(), self._clock, watch=self._loading.enter
            )
        finally:
            self._loading = None
        self._require_same_model(model)
        slot = self._slots[name] = fill(name, model, self._clock, self._queue)
        return slot

    def _require_same_model(self, model: LoadedModel) -> None:
        live = self.live
        if live is not None and live.model.spec.name != model.spec.name:
            model.session.close()
            raise SwapRefused(
                "a target serves one model",
                expected=live.model.spec.name,
                found=model.spec.name,
                remedy="Deploy it to another target.",
            )

    async def _make_room(self, name: SlotName, *, replace: bool) -> None:
        slot = self._slots.get(name)
        if slot is None:
            return
        if not replace or self._word.read().canary == name:
            raise SwapRefused(
                "the other slot holds another package",
                found=slot.digest,
                remedy="Unload it first.",
            )
        await self._retire(slot)

    async def _retire(self, slot: Slot) -> None:
        del self._slots[slot.name]
        await retire(slot)

    def _find(self, digest: Digest) -> Slot | None:
        return next((slot for slot in self._slots.values() if slot.digest == digest), None)

    def _require(self, digest: Digest) -> Slot:
        slot = self._find(digest)
        if slot is None:
            held = ", ".join(slot.digest for slot in self._slots.values())
            raise InputError("package is not loaded", expected=digest, found=held or "none")
        return slot
