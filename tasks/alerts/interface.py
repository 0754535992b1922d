"""An alert, and what every place it can be sent to promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from contracts.base import digest
from contracts.base.digest import Digest

Action = Literal["trigger", "resolve"]
Level = Literal["critical", "error", "warning", "info"]


@dataclass(frozen=True)
class Alert:
    """One message about one incident.

    Attributes:
        action: ``trigger`` opens the incident, ``resolve`` closes it.
        key: Name of the incident; messages of one key are one incident everywhere.
        summary: One sentence for a person; holds no values of rows.
        level: How bad it is.
        source: What raised it, such as ``nyc/flights@1.0.0``.
        at: When, RFC 3339.
        details: Plain data for the reader: rules, counts, digests.
    """

    action: Action
    key: str
    summary: str
    level: Level
    source: str
    at: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> Digest:
        """Identity of the message."""
        return digest.of_json(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "details": dict(self.details)}


class Sink(Protocol):
    """A place alerts are sent to."""

    @property
    def name(self) -> str:
        """Name of the place, stable over restarts; holds no secret."""
        ...

    def send(self, alert: Alert) -> None:
        """Hand an alert over.

        Raises:
            UnavailableError: If it was not accepted; it will be tried again.
        """
        ...
