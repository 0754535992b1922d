"""What a deployment needs of a target, whatever it runs on.

A target has two slots. Exactly one is live; the other is idle, or holds the candidate while a
deployment is under way. Every method may be called again after a crash: loading a package that is
loaded, promoting what is live and unloading what is gone change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from contracts.base.digest import Digest
from contracts.base.errors import InputError


@dataclass(frozen=True)
class Release:
    """A package as a target keeps it.

    Attributes:
        model: Name of the model, which is the repository of its packages.
        package: Digest of the package.
        set_digest: Digest of its files.
        layout: The OCI layout on the target that holds its index, blobs and signature.
        tree: The unpacked package, with ``model/`` and ``runtime/``.
    """

    model: str
    package: Digest
    set_digest: Digest
    layout: Path
    tree: Path


@dataclass(frozen=True)
class SlotStatistics:
    """What one slot answered since it was loaded.

    Attributes:
        answers: Requests answered, with errors among them.
        errors: Answers the model or the runtime is to blame for (status 500 and above).
        bounds_ms: Upper bounds of the latency buckets; the last bucket has none.
        counts: Answers in each bucket, one more than there are bounds.
    """

    answers: int = 0
    errors: int = 0
    bounds_ms: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    def since(self, earlier: SlotStatistics) -> SlotStatistics:
        """Return what was answered after an earlier reading of the same slot.

        Raises:
            InputError: If the counters ran backwards or the buckets differ.
        """
        if earlier.bounds_ms not in (self.bounds_ms, ()):
            raise InputError("latency buckets of two readings differ")
        before = earlier.counts or (0,) * len(self.counts)
        counts = tuple(now - then for now, then in zip(self.counts, before, strict=True))
        answers, errors = self.answers - earlier.answers, self.errors - earlier.errors
        if min((answers, errors, *counts)) < 0:
            raise InputError(
                "counters of a slot ran backwards",
                remedy="The slot was loaded again during the canary; deploy again.",
            )
        return SlotStatistics(answers, errors, self.bounds_ms, counts)


@dataclass(frozen=True)
class TargetState:
    """What a target says about itself.

    Attributes:
        running: Whether it answers.
        ready: Whether its live slot can serve.
        url: Address of the data listener; empty when it does not run.
        model: Name of the model it serves; empty before the first deployment.
        live: Package that answers.
        candidate: Package in the other slot.
        canary_share: Share of requests that the candidate answers.
        details: What else the target tells, for people.
    """

    running: bool = False
    ready: bool = False
    url: str = ""
    model: str = ""
    live: Digest | None = None
    candidate: Digest | None = None
    canary_share: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GoldenResult:
    """How a loaded package did on its own test cases.

    Attributes:
        cases: Cases run.
        failures: What did not match, one sentence a case.
    """

    cases: int
    failures: tuple[str, ...] = ()


class Target(Protocol):
    """A place where releases run."""

    @property
    def name(self) -> str:
        """Return the name of the target."""
        ...

    @property
    def home(self) -> Path:
        """Return the folder where the target keeps packages."""
        ...

    def ensure(self) -> TargetState:
        """Start the target if it does not run, and return its state.

        Raises:
            UnavailableError: If it cannot be started.
        """
        ...

    def state(self) -> TargetState:
        """Return the state of the target; one that does not answer is not running."""
        ...

    def load(self, release: Release) -> None:
        """Load a kept package into the slot that is not live.

        Raises:
            LoadFailed: If the package cannot be loaded; the slot is empty then.
            SwapRefused: If the other slot holds another package.
        """
        ...

    def golden(self, package: Digest) -> GoldenResult:
        """Run the test cases of a loaded package against itself."""
        ...

    def route(self, share: float, lease_s: float) -> None:
        """Send a share of requests to the candidate until the lease runs out."""
        ...

    def promote(self, package: Digest) -> None:
        """Make the candidate live; what was live becomes the other slot."""
        ...

    def restore(self) -> None:
        """Send every request to the live slot."""
        ...

    def unload(self, package: Digest) -> None:
        """Empty the slot that holds a package, which must not be live."""
        ...

    def drain(self, timeout_s: float) -> bool:
        """Wait until the slot that is not live answers nothing more; say whether it came to it."""
        ...

    def statistics(self) -> Mapping[Digest, SlotStatistics]:
        """Return what each loaded package answered since it was loaded."""
        ...

    def logs(self, lines: int) -> Sequence[str]:
        """Return the last lines the target logged."""
        ...

    def stop(self) -> None:
        """End the target; what it served is live again at the next start."""
        ...
