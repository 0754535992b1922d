"""Errors of a target, turned back into the exceptions they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from contracts.base.errors import CaissonError, LoadFailed
from model_packages.runtime.serve.batcher import QueueFull
from model_packages.runtime.serve.messages import RequestRefused

_PARTS = ("expected", "found", "location", "remedy")
_FIRST_FAILURE = 400
_SPECIAL = (LoadFailed, QueueFull, RequestRefused)  # these need more than a message


def require_ok(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise the error an answer describes, if it describes one.

    Raises:
        CaissonError: Of the kind that the target raised.
    """
    if status < _FIRST_FAILURE:
        return
    try:
        content: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = {}
    raise _rebuild(status, headers, content if isinstance(content, dict) else {})


def _rebuild(status: int, headers: Mapping[str, str], content: Mapping[str, Any]) -> CaissonError:
    details = content.get("details")
    known = details if isinstance(details, dict) else {}
    parts = {name: str(known[name]) for name in _PARTS if name in known}
    message = str(known.get("message") or content.get("error") or f"HTTP status {status}")
    code = content.get("code")
    if code == LoadFailed.code:
        stage = str(content.get("stage", ""))
        return LoadFailed(message.removeprefix(f"load stage {stage}: "), stage=stage, **parts)
    if code == QueueFull.code:
        after = headers.get("retry-after", "")
        return QueueFull(message, int(after) if after.isdigit() else 1, **parts)
    kind = _kinds().get(code) if isinstance(code, str) else None
    return kind(message, **parts) if kind else RequestRefused(message, status, **parts)


def _kinds() -> dict[str, type[CaissonError]]:
    """Return every kind of error that is made from a message and its parts alone."""
    found: dict[str, type[CaissonError]] = {}
    pending: list[type[CaissonError]] = [CaissonError]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind not in _SPECIAL:
            found.setdefault(kind.code, kind)
    return found
