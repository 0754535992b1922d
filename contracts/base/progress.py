"""Progress of long work: who does it reports (stage, done, total, unit), who watches decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# Unit of the steps that say only that a stage began (0 of 1) or ended (1 of 1).
STAGE = "stage"


@dataclass(frozen=True)
class Progress:
    """One step forward.

    Attributes:
        stage: Name of the work, such as ``train``.
        done: Units finished.
        total: Units in all; 0 if not known.
        unit: What is counted, such as ``rows``.
    """

    stage: str
    done: float
    total: float
    unit: str


class Reporter(Protocol):
    """Receives progress; must return quickly and never raise."""

    def __call__(self, progress: Progress, /) -> None:
        """Take note of one step."""
        ...


def silent(progress: Progress, /) -> None:
    """Ignore progress; the default where nobody watches."""
    del progress
