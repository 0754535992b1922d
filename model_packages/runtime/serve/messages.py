"""HTTP requests and answers as plain values, and the one JSON form of an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson

from contracts.base.errors import CaissonError, LoadFailed, RuntimeFault

REQUEST_ID = "caisson-request-id"
ROUTE_KEY = "caisson-route-key"
PACKAGE_DIGEST = "caisson-package-digest"
TIMEOUT_MS = "caisson-timeout-ms"
JSON_LENGTH = "inference-header-content-length"

_JSON = "application/json"
_SAFE = re.compile(r"[\x21-\x7e]{1,128}")
# Statuses of errors that the tree gives none: what happened is the caller's doing or the target's.
_STATUS_OF_EXIT = {1: 409, 2: 422}


class NotReady(RuntimeFault):
    """Nothing is live here, or the worker is ending."""

    code = "not-ready"
    http_status = 503


class DeadlineExceeded(RuntimeFault):
    """The request's time was over before its answer was there."""

    code = "deadline-exceeded"
    http_status = 504


class RequestRefused(RuntimeFault):
    """A request breaks HTTP or a limit; ``status`` says which."""

    code = "request-refused"

    def __init__(self, message: str, status: int, **parts: str) -> None:
        """Remember the status."""
        super().__init__(message, **parts)
        self.http_status = status


@dataclass(frozen=True)
class Answer:
    """What a client gets.

    Attributes:
        status: HTTP status.
        body: The bytes.
        kind: Media type of the bytes.
        headers: Further headers, whose values are known to be safe.
    """

    status: int
    body: bytes
    kind: str = _JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Request:
    """One request, whole.

    Attributes:
        method: HTTP method.
        path: Path without query, still percent-encoded.
        headers: Headers by lower-case name.
        body: The bytes.
        received: When it was whole, in monotonic seconds.
        respond: Call once with the answer.
        abandoned: Whether the client has gone.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    received: float
    respond: Callable[[Answer], None]
    abandoned: bool = field(default=False)


def json_answer(
    value: Any, *, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Answer:
    """Return plain data as an answer."""
    return Answer(status, orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), _JSON, headers)


def error_answer(err: CaissonError, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return an error in the one form every error has: ``{"error": text, "code": kind}``."""
    body: dict[str, Any] = {"error": str(err), "code": err.code}
    if isinstance(err, LoadFailed):
        body["stage"] = err.stage
    details = {name: value for name, value in err.to_dict().items() if value and name != "code"}
    body["details"] = details
    return json_answer(body, status=status_of(err), headers=headers)


def status_of(err: CaissonError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(err, RuntimeFault):
        return err.http_status
    return _STATUS_OF_EXIT[err.exit_status]


def safe_id(text: str | None) -> str:
    """Return a client's id if it can stand in a header and a log, else empty text."""
    return text if text is not None and _SAFE.fullmatch(text) else ""


def encode(answer: Answer, *, close: bool, bodiless: bool) -> bytes:
    """Return the bytes of an answer.

    Args:
        answer: The answer.
        close: Whether the connection ends after it.
        bodiless: Whether the request was a HEAD.
    """
    status = answer.status
    lines = [_STATUS_LINES[status], f"content-type: {answer.kind}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in answer.headers]
    if close:
        lines.append("connection: close\r\n")
    lines.append(f"content-length: {len(answer.body)}\r\n\r\n")
    head = "".join(lines).encode("latin-1")
    return head if bodiless else head + answer.body


_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus
}
