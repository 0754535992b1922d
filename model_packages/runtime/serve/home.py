"""Names of the files in a target's home, and the state its supervisor publishes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.errors import InputError, ServerUnavailable

STATE = "state.json"
TOKEN = "admin.token"  # noqa: S105 - a file name
LOCK = "supervisor.lock"
LOG = "supervisor.log"
DECISIONS = "decisions.log"


@dataclass(frozen=True)
class State:
    """Where a running target is reached.

    Attributes:
        pid: Process id of the supervisor.
        worker: Process id of the worker.
        data_url: Address of the data listener.
        admin_url: Address of the admin listener.
        token_file: File with the admin token.
        started_at: When the supervisor started, RFC 3339.
        restarts: How often a worker crashed and was started again.
    """

    pid: int
    worker: int
    data_url: str
    admin_url: str
    token_file: str
    started_at: str
    restarts: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"format_version": 0, **vars(self)}

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "") -> State:
        """Read plain data back.

        Raises:
            InputError: If it is not a state.
        """
        if not isinstance(data, Mapping) or data.get("format_version") != 0:
            raise InputError("not a target's state", expected="format_version 0", location=where)
        try:
            return cls(**{name: value for name, value in data.items() if name != "format_version"})
        except TypeError as err:
            raise InputError(f"not a target's state: {err}", location=where) from err


def running(home: Path) -> bool:
    """Whether a supervisor holds the home; does not wait."""
    if not (home / LOCK).exists():
        return False
    with files.locked(home / LOCK, wait=False) as free:
        return not free


def read_state(home: Path) -> State:
    """Return where the running target of a home is reached.

    Raises:
        ServerUnavailable: If none is running.
    """
    path = home / STATE
    if running(home) and path.exists():
        state = State.from_dict(files.read_json(path), where=str(path))
        if Path(f"/proc/{state.pid}").exists():  # else one that was killed left it
            return state
    raise ServerUnavailable(
        "target is not running",
        location=str(home),
        remedy="Deploy a release to it, which starts it.",
    )
