"""A target in one JSON file: it outlives the process, so a killed command finds it as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.digest import Digest
from contracts.base.errors import LoadFailed, ServerUnavailable, SwapRefused
from tasks.release.targets.interface import GoldenResult, Release, SlotStatistics, TargetState

BOUNDS_MS = tuple(0.25 * 2 ** (step / 2) for step in range(24))
_EMPTY = {
    "running": False, "model": "", "live": None, "candidate": None, "share": 0.0,
    "answers": {}, "errors": {}, "shift": {}, "calls": [], "faults": {},
}  # fmt: skip


class FakeTarget:
    """Keeps its slots in ``<home>/fake.json`` and answers requests with ``serve``.

    Faults are planted by ``plant("load", "...")``: the next call of that name raises or, for
    ``golden``, reports a failing case.
    """

    def __init__(self, home: Path, name: str = "local") -> None:
        """Name the target and its folder."""
        self._home = home
        self._name = name
        self._path = home / "fake.json"

    @property
    def name(self) -> str:
        """Return the name of the target."""
        return self._name

    @property
    def home(self) -> Path:
        """Return the folder where the target keeps packages."""
        return self._home

    def ensure(self) -> TargetState:
        """Start it."""
        self._change("ensure", running=True)
        return self.state()

    def state(self) -> TargetState:
        """Return what is in the file."""
        data = self.read()
        url = "http://127.0.0.1:1" if data["running"] else ""
        ready = data["running"] and data["live"] is not None
        return TargetState(
            data["running"], ready, url, data["model"], data["live"], data["candidate"],
            data["share"],
        )  # fmt: skip

    def load(self, release: Release) -> None:
        """Fill the slot that is not live."""
        self._require("load")
        data = self.read()
        if data["live"] == release.package or data["candidate"] == release.package:
            return
        if data["candidate"] is not None:
            raise SwapRefused("the other slot is taken", found=data["candidate"])
        answers = {**data["answers"], release.package: 0}
        errors = {**data["errors"], release.package: 0}
        self._change(
            "load", candidate=release.package, model=release.model, answers=answers, errors=errors
        )

    def golden(self, package: Digest) -> GoldenResult:
        """Report one passing case, or the planted failure."""
        fault = self.read()["faults"].get("golden")
        self._change("golden")
        return GoldenResult(1, (f"case 1 of {package}: {fault}",) if fault else ())

    def route(self, share: float, lease_s: float) -> None:
        """Set the share; leases do not run out here."""
        del lease_s
        self._require("route")
        self._change("route", share=share)

    def promote(self, package: Digest) -> None:
        """Swap the slots."""
        self._require("promote")
        data = self.read()
        if data["live"] == package:
            return
        if data["candidate"] != package:
            raise SwapRefused("not loaded", expected=package, found=str(data["candidate"]))
        self._change("promote", live=package, candidate=data["live"], share=0.0)

    def restore(self) -> None:
        """Route everything to the live slot."""
        self._require("restore")
        self._change("restore", share=0.0)

    def unload(self, package: Digest) -> None:
        """Empty the slot of a package."""
        self._require("unload")
        data = self.read()
        if data["live"] == package:
            raise SwapRefused("cannot unload what is live", found=package)
        if data["candidate"] == package:
            self._change("unload", candidate=None)

    def drain(self, timeout_s: float) -> bool:
        """Nothing is ever under way here."""
        del timeout_s
        self._require("drain")
        return True

    def statistics(self) -> Mapping[Digest, SlotStatistics]:
        """Return what ``serve`` counted."""
        data = self.read()
        held = [package for package in (data["live"], data["candidate"]) if package]
        return {package: _statistics(data, package) for package in held}

    def logs(self, lines: int) -> Sequence[str]:
        """Return the calls so far."""
        return self.read()["calls"][-lines:]

    def stop(self) -> None:
        """End it; the slots stay as they are."""
        self._change("stop", running=False)

    def serve(self, requests: int, *, error_share: float = 0.0) -> None:
        """Answer requests: the candidate's part of them with errors at a share."""
        data = self.read()
        answers, errors = dict(data["answers"]), dict(data["errors"])
        part = round(requests * data["share"]) if data["candidate"] else 0
        answers[data["live"]] += requests - part
        if part:
            answers[data["candidate"]] += part
            errors[data["candidate"]] += round(part * error_share)
        self._change("serve", answers=answers, errors=errors)

    def plant(self, call: str, message: str) -> None:
        """Make a call fail from now on."""
        self._change("plant", faults={**self.read()["faults"], call: message})

    def heal(self) -> None:
        """Remove all planted faults."""
        self._change("heal", faults={})

    def read(self) -> dict[str, Any]:
        """Return the whole state."""
        return files.read_json(self._path) if self._path.exists() else dict(_EMPTY)

    def _require(self, call: str) -> None:
        data = self.read()
        if call in data["faults"] and call != "golden":
            message = data["faults"][call]
            raise LoadFailed(message, stage="graph") if call == "load" else SwapRefused(message)
        if not data["running"]:
            raise ServerUnavailable("target does not run", location=self._name)

    def _change(self, call: str, **values: Any) -> None:
        data = self.read()
        files.write_json(self._path, {**data, **values, "calls": [*data["calls"], call]})


def _statistics(data: dict[str, Any], package: str) -> SlotStatistics:
    """Spread the answers of a slot over three buckets, always in the same way."""
    answers = data["answers"][package]
    counts = [0] * (len(BOUNDS_MS) + 1)
    counts[8], counts[9] = answers // 4, answers // 2
    counts[10] = answers - counts[8] - counts[9]
    return SlotStatistics(answers, data["errors"][package], BOUNDS_MS, tuple(counts))
