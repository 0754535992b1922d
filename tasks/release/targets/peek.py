"""Looks at a local target from outside: one small request, and no heavy import.

Read-only commands use this; whoever acts on the target uses ``local.py``.
"""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest, files
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.home import State
from tasks.release.targets.interface import TargetState

_TIMEOUT_S = 5.0
_LIMIT = 1 << 20


def peek(home: Path, *, timeout_s: float = _TIMEOUT_S) -> TargetState:
    """Return the state of the target in a folder; one that does not answer is not running."""
    try:
        state = homes.read_state(home)
        status = _ask(home, state, timeout_s)
        return TargetState(
            running=True,
            ready=bool(status["ready"]),
            url=state.data_url,
            model=status["model"],
            live=_digest(status["live"]),
            candidate=_digest(status["candidate"]),
            canary_share=status["canary_share"],
            details={"pid": state.pid, "restarts": state.restarts, **status},
        )
    except (OSError, http.client.HTTPException, CaissonError, KeyError, TypeError):
        return TargetState()


def await_requests(url: str, timeout_s: float) -> bool:
    """Wait until a target's data listener answers; say whether it did.

    It answers once what was live is loaded again: until then its connections wait in the kernel.
    """
    try:
        _get(url, "/v2/health/live", {}, timeout_s)
    except (OSError, http.client.HTTPException):
        return False
    return True


def _ask(home: Path, state: State, timeout_s: float) -> Mapping[str, Any]:
    token = files.read_bounded(home / state.token_file, 4096).decode().strip()
    headers = {"authorization": f"Bearer {token}"}
    data = _get(state.admin_url, "/admin/status", headers, timeout_s)
    status: Mapping[str, Any] = canonical.loads(data, limit=_LIMIT, where=state.admin_url)
    return status


def _get(url: str, path: str, headers: dict[str, str], timeout_s: float) -> bytes:
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port or 80, timeout=timeout_s
    )
    try:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as response:
            return response.read(_LIMIT)
    finally:
        connection.close()


def _digest(text: str | None) -> Digest | None:
    return None if text is None else digest.parse(text, where="state of the target")
