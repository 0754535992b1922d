"""HTTP/1.1 on one connection: parse, hand over, answer in order, and bound everything.

What a request means is the handler's business. A malformed request ends its own connection after
an answer that says why; nothing it does is seen by another connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from contracts.base.errors import CaissonError
from model_packages.runtime.config import Limits
from model_packages.runtime.serve.messages import (
    Answer,
    Request,
    RequestRefused,
    encode,
    error_answer,
)

_log = logging.getLogger(__name__)

# Headers whose repetition would let two readers understand a request differently.
_SINGLE = frozenset(
    {"host", "authorization", "content-type", "content-encoding", "inference-header-content-length"}
)
_VERSIONS = frozenset({"1.0", "1.1"})
_LINGER_S = 2.0
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Handler(Protocol):
    """Answers requests; calls ``request.respond`` once for each, now or later, on the loop."""

    def handle(self, request: Request) -> None:
        """Take one request."""
        ...


class Host(Protocol):
    """What a connection needs of the listener that owns it."""

    limits: Limits
    handler: Handler
    draining: bool
    monotonic: Callable[[], float]

    def opened(self, connection: Connection) -> bool:
        """Take note of a connection; False if there are too many."""
        ...

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        ...


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, host: Host) -> None:
        """Prepare for a connection of ``host``."""
        self._host = host
        self._limits = host.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[Request | Answer, bool]] = deque()
        self._current: Request | None = None
        self._since = host.monotonic()
        self._blocked_since = 0.0
        self._reading = False
        self._ended = False
        self._lingering = False
        self._fresh = True
        self._number = 0
        self._closing = False
        self._paused = False
        self._advancing = False
        self._begin()

    # The connection, as asyncio reports it.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or refuse politely where there are too many connections."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's shares no base with it
        if not self._host.opened(self):
            limit = self._limits.connections
            self._end_with(RequestRefused("too many connections", 503, expected=f"{limit}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever works for this client that it has gone."""
        del exc
        self._transport = None
        self._ended = True
        if self._current is not None:
            self._current.abandoned = True
        self._waiting.clear()
        self._host.closed(self)

    def eof_received(self) -> bool:
        """Keep a half-closed connection open as long as answers are owed."""
        self._ended = True
        return self._current is not None or bool(self._waiting)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._ended:
            return
        before = (self._number, self._headed, self._size) if self._reading else None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._ended = True  # the request itself is answered, in HTTP/1.1, as the last one
        except httptools.HttpParserError as err:
            self._refuse_once(RequestRefused(f"malformed HTTP: {err}", 400))
        if self._reading and before == (self._number, self._headed, self._size):
            self._count_head(len(data))  # part of a header, trailer or chunk's size: reported whole
        self._advance()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its answers."""
        self._blocked_since = self._host.monotonic()
        self._update_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._blocked_since = 0.0
        self._update_reading()

    # One request, as the parser reports it.

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._begin()
        self._reading = True
        self._number += 1
        self._since = self._host.monotonic()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is ignored."""
        if self._headed:
            return
        self._count_head(len(name) + len(value))
        key = name.decode("latin-1").lower()
        if key in self._headers:
            if key in _SINGLE:
                self._refuse_once(RequestRefused(f"header {key} is given twice", 400))
                return
            self._headers[key] += f", {value.decode('latin-1')}"
        else:
            self._headers[key] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Judge the head before any body is read."""
        self._headed = True
        refusal = self._judge_head()
        if refusal is not None:
            self._refuse_once(refusal)
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._size += len(body)
        self._head_bytes_seen = 0  # the head was judged; trailers have the same limit
        if self._size > self._limits.body_bytes:
            self._refuse_once(_body_too_large(self._limits))
        elif not self._ended:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Queue the request."""
        self._reading = False
        self._fresh = False
        self._since = now = self._host.monotonic()
        if self._ended:
            return
        close = not self._parser.should_keep_alive() or self._parser.should_upgrade()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(self._method(), self._path, self._headers, body, now, self._respond)
        self._waiting.append((request, close))
        if close:
            self._ended = True

    # Answers, in the order of their requests.

    def check(self, now: float) -> None:
        """Enforce the time limits; called every now and then."""
        if self._transport is None:
            return
        waited = now - self._since
        if self._lingering:
            if waited > _LINGER_S:
                self._transport.abort()
        elif self._blocked_since and now - self._blocked_since > self._limits.write_s:
            self._transport.abort()
        elif self._current is not None or self._waiting:
            return
        elif self._reading or self._fresh:
            if waited > self._limits.read_s:
                self._end_with(RequestRefused("request did not arrive in time", 408))
        elif waited > self._limits.idle_s:
            self._transport.close()

    def close_if_idle(self) -> None:
        """Close unless a request is under way."""
        if self._transport is not None and not self.busy:
            self._transport.close()

    def abort(self) -> None:
        """Cut the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def busy(self) -> bool:
        """Whether a request is arriving or an answer is owed."""
        return self._reading or self._current is not None or bool(self._waiting)

    def _advance(self) -> None:
        self._advancing = True
        self._answer_next()
        self._advancing = False
        self._update_reading()

    def _answer_next(self) -> None:
        while self._current is None and self._waiting and self._transport is not None:
            item, close = self._waiting.popleft()
            if isinstance(item, Answer):
                self._finish(item, close=True, bodiless=False)
                return
            self._current = item
            self._closing = close
            try:
                self._host.handler.handle(item)
            except Exception:  # noqa: BLE001 - the edge: one request's defect must not end the others
                _log.exception("%s %s failed", item.method, item.path)
                self._respond(error_answer(RequestRefused("internal error", 500)))

    def _respond(self, answer: Answer) -> None:
        request = self._current
        if request is None or self._transport is None:
            return
        self._current = None
        last = self._closing or self._host.draining
        self._finish(answer, close=last, bodiless=request.method == "HEAD")
        if self._waiting and not self._advancing:
            self._advance()

    def _finish(self, answer: Answer, *, close: bool, bodiless: bool) -> None:
        self._since = self._host.monotonic()
        self._write(encode(answer, close=close, bodiless=bodiless))
        if close:
            self._waiting.clear()
            self._linger()
        elif self._ended and not self._waiting and self._transport is not None:
            self._transport.close()

    def _linger(self) -> None:
        """End our side and wait for the client's, so that no reset destroys the answer."""
        self._ended = True
        if self._transport is None:
            return
        self._lingering = True
        if self._paused:
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def _refuse_once(self, refusal: CaissonError) -> None:
        if not self._ended:
            self._ended = True
            self._reading = False
            self._waiting.append((error_answer(refusal), True))

    def _end_with(self, refusal: CaissonError) -> None:
        self._refuse_once(refusal)
        self._advance()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _update_reading(self) -> None:
        wanted = bool(self._blocked_since) or len(self._waiting) >= self._limits.pipelined
        if wanted == self._paused or self._lingering or self._transport is None:
            return
        self._paused = wanted
        if wanted:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _begin(self) -> None:
        self._url = b""
        self._path = ""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._head_bytes_seen = 0
        self._headed = False

    def _count_head(self, size: int) -> None:
        self._head_bytes_seen += size
        if self._head_bytes_seen > self._limits.head_bytes:
            self._refuse_once(_head_too_large(self._limits))

    def _method(self) -> str:
        method: str = self._parser.get_method().decode("ascii")
        return method

    def _judge_head(self) -> RequestRefused | None:
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            return RequestRefused("HTTP version is not spoken here", 505, expected="1.1")
        if version == "1.1" and "host" not in self._headers:
            return RequestRefused("header host is missing", 400)
        return self._judge_body() or self._judge_target()

    def _judge_body(self) -> RequestRefused | None:
        headers = self._headers
        if headers.get("transfer-encoding", "chunked").strip().lower() != "chunked":
            return RequestRefused("transfer encoding is not known", 501, expected="chunked")
        if headers.get("content-encoding", "identity").lower() != "identity":
            return RequestRefused("content encoding is not known", 415, expected="identity")
        if int(headers.get("content-length") or 0) > self._limits.body_bytes:
            return _body_too_large(self._limits)
        if self._parser.should_upgrade() and self._has_body():
            return RequestRefused("no upgrade is spoken here", 501, expected="no header upgrade")
        return None

    def _has_body(self) -> bool:
        """Whether a body follows, which the parser does not read where an upgrade is offered."""
        length = self._headers.get("content-length", "0")
        return length != "0" or "transfer-encoding" in self._headers

    def _judge_target(self) -> RequestRefused | None:
        if self._url.startswith(b"/"):
            self._path = self._url.partition(b"?")[0].decode("latin-1")
            return None
        try:
            path = httptools.parse_url(self._url).path
        except httptools.HttpParserInvalidURLError:
            path = None
        if not path:
            return RequestRefused("request target is malformed", 400)
        self._path = path.decode("latin-1")
        return None


def _head_too_large(limits: Limits) -> RequestRefused:
    return RequestRefused(
        "request line and headers are too large", 431, expected=f"{limits.head_bytes} bytes"
    )


def _body_too_large(limits: Limits) -> RequestRefused:
    return RequestRefused("body is too large", 413, expected=f"{limits.body_bytes} bytes")
