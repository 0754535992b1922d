"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 30, 21, 0, tzinfo=UTC)


class FixedClock:
    """A Clock for tests; every reading may also move it by a fixed step."""

    def __init__(self, now: datetime = START, *, step_s: float = 0.0) -> None:
        """Start at ``now``; each reading afterwards moves time by ``step_s`` seconds."""
        self._now = now
        self._step_s = step_s
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the present moment, with zone UTC."""
        moment = self._now
        self.advance(self._step_s)
        return moment

    def monotonic(self) -> float:
        """Return seconds since this clock was made."""
        elapsed = self._elapsed
        self.advance(self._step_s)
        return elapsed

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        self._now += timedelta(seconds=seconds)
        self._elapsed += seconds
