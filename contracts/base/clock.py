"""Time enters by constructor: a Clock for now, an ``as_of`` for the logical time of a step."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

from contracts.base.errors import InputError


class Clock(Protocol):
    """Where a component takes its time from."""

    def now(self) -> datetime:
        """Return the present moment, with zone UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for durations."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present moment, with zone UTC."""
        return datetime.now(tz=UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()


def to_text(moment: datetime) -> str:
    """Return a moment as RFC 3339 text in UTC, with milliseconds."""
    if moment.tzinfo is None:
        raise InputError("moment has no time zone", found=moment.isoformat())
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def from_text(text: str, *, where: str = "") -> datetime:
    """Read RFC 3339 text, or a date which means its first moment in UTC.

    Raises:
        InputError: If the text is neither, or is a time without a zone.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as err:
        raise InputError(
            "not a moment",
            expected="RFC 3339 such as 2026-11-30T21:40:00Z, or a date",
            found=repr(text),
            location=where,
        ) from err
    if len(text) > len("2026-11-30"):
        raise InputError("moment has no time zone", found=text, location=where)
    return moment.replace(tzinfo=UTC)
