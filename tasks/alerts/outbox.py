"""Keeps alerts until every sink has them: an outage or a kill loses none.

An alert is first written to the outbox, then sent. What a sink did not take stays and is tried
again, in order, with the next alert. A trigger of an incident that is open, and a resolve of one
that is not, say nothing new and are dropped.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest, failpoint, files
from contracts.base.errors import CaissonError, UnavailableError
from tasks.alerts.interface import Alert, Sink

_LOG = logging.getLogger(__name__)
_MOST_PENDING = 10_000


class FileSink:
    """The default sink: one JSON line an alert, in a file that people and tools can follow."""

    name = "file"

    def __init__(self, path: Path) -> None:
        """Append to ``path``."""
        self._path = path

    def send(self, alert: Alert) -> None:
        """Append an alert and wait until it is on disk.

        Raises:
            UnavailableError: If the file cannot be written.
        """
        line = canonical.dumps({**alert.to_dict(), "id": alert.id}) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as err:
            raise UnavailableError(
                f"alert cannot be written: {err.strerror}", location=str(self._path)
            ) from err


class Outbox:
    """Alerts on their way, and the incidents that are open."""

    def __init__(self, folder: Path, sinks: Sequence[Sink]) -> None:
        """Keep state in ``folder`` and send to every sink."""
        self._pending = folder / "pending"
        self._open = folder / "open"
        self._lock = folder / "lock"
        self._sinks = tuple(sinks)

    def send(self, alert: Alert) -> bool:
        """Take an alert and try to deliver it, with all that are still waiting.

        Returns:
            Whether it said something new.

        Raises:
            UnavailableError: If the outbox itself cannot be written.
        """
        with files.locked(self._lock):
            marker = self._open / f"{digest.short(digest.of_json(alert.key), 32)}.json"
            if marker.exists() == (alert.action == "trigger"):
                self._flush()
                return False
            self._enqueue(alert)
            failpoint.hit("alerts.enqueue.after")
            if alert.action == "trigger":
                files.write_json(marker, alert.to_dict())
            else:
                marker.unlink()
            self._flush()
        return True

    def flush(self) -> int:
        """Try again what is waiting; return how many alerts still wait."""
        with files.locked(self._lock):
            self._flush()
            return len(self._waiting())

    def incidents(self) -> list[dict[str, Any]]:
        """Return the alerts of all open incidents, in a stable order."""
        found = [files.read_json(path) for path in sorted(self._open.glob("*.json"))]
        return sorted(found, key=lambda item: (item["at"], item["key"]))

    def _waiting(self) -> list[Path]:
        return sorted(self._pending.glob("*.json"))

    def _enqueue(self, alert: Alert) -> None:
        waiting = self._waiting()
        if len(waiting) >= _MOST_PENDING:
            raise UnavailableError(
                "too many alerts wait for delivery",
                expected=f"at most {_MOST_PENDING}",
                found=str(len(waiting)),
                location=str(self._pending),
                remedy="Correct the addresses of the sinks, then flush the outbox.",
            )
        same = [item for item in map(files.read_json, waiting) if item["alert"]["key"] == alert.key]
        if same and same[-1]["alert"]["action"] == alert.action:
            return  # a run was killed between taking the alert and noting the incident
        number = int(waiting[-1].name.partition("-")[0]) + 1 if waiting else 1
        path = self._pending / f"{number:012d}-{digest.short(alert.id)}.json"
        files.write_json(path, {"alert": alert.to_dict(), "delivered": []})

    def _flush(self) -> None:
        down: set[str] = set()
        for path in self._waiting():
            entry = files.read_json(path)
            alert = Alert(**entry["alert"])
            for sink in self._sinks:
                if sink.name in entry["delivered"] or sink.name in down:
                    continue
                try:
                    sink.send(alert)
                except CaissonError as err:
                    down.add(sink.name)  # later alerts wait, so that each sink sees them in order
                    _LOG.warning("alert %s not delivered to %s: %s", alert.key, sink.name, err)
                    continue
                entry["delivered"].append(sink.name)
                files.write_json(path, entry)
            if {sink.name for sink in self._sinks} <= set(entry["delivered"]):
                path.unlink()
