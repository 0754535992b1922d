"""The admin listener: what the deploy flow may do to a target. Every path needs the token."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, InputError
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve.messages import (
    Request,
    RequestRefused,
    error_answer,
    json_answer,
)
from model_packages.runtime.serve.slots import Slots

_log = logging.getLogger(__name__)

_LONGEST_DRAIN_S = 300.0
_CHALLENGE = (("www-authenticate", "Bearer"),)

Act = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


class AdminHandler:
    """Answers the admin listener."""

    def __init__(
        self,
        slots: Slots,
        token: str,
        *,
        facts: Callable[[], Mapping[str, Any]],
        stop: Callable[[], None],
    ) -> None:
        """Serve the acts of ``slots``.

        Args:
            slots: What is acted upon.
            token: What a client must present.
            facts: Further facts for the status.
            stop: Ends the whole target.
        """
        self._slots = slots
        self._token = token.encode()
        self._facts = facts
        self._stop = stop
        self._tasks: set[asyncio.Task[None]] = set()
        self._acts: dict[tuple[str, str], Act] = {
            ("GET", "/admin/status"): self._status,
            ("GET", "/admin/statistics"): self._statistics,
            ("POST", "/admin/load"): self._load,
            ("POST", "/admin/golden"): self._golden,
            ("POST", "/admin/route"): self._route,
            ("POST", "/admin/promote"): self._promote,
            ("POST", "/admin/restore"): self._restore,
            ("POST", "/admin/unload"): self._unload,
            ("POST", "/admin/drain"): self._drain,
            ("POST", "/admin/stop"): self._end,
        }

    def handle(self, request: Request) -> None:
        """Check the token and begin the act."""
        if not self._known(request.headers.get("authorization", "")):
            refusal = RequestRefused("token is missing or wrong", 401)
            request.respond(error_answer(refusal, _CHALLENGE))
            return
        act = self._acts.get((request.method, request.path))
        if act is None:
            request.respond(error_answer(self._no_act(request)))
            return
        task = asyncio.get_running_loop().create_task(self._answer(request, act))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _known(self, header: str) -> bool:
        scheme, _, token = header.partition(" ")
        given = token.strip().encode("latin-1", "replace")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._token)

    def _no_act(self, request: Request) -> RequestRefused:
        methods = [method for method, path in self._acts if path == request.path]
        if methods:
            return RequestRefused("method is not allowed", 405, expected=methods[0])
        return RequestRefused("no such path", 404, found=request.path[:120])

    async def _answer(self, request: Request, act: Act) -> None:
        try:
            request.respond(json_answer(await act(_body(request))))
        except CaissonError as err:
            _log.warning("%s: %s", request.path, err)
            request.respond(error_answer(err))
        except Exception:  # noqa: BLE001 - the edge: whoever asked must get an answer
            _log.exception("%s failed", request.path)
            request.respond(error_answer(RequestRefused("internal error", 500)))

    async def _status(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        return {**self._slots.status(), **self._facts()}

    async def _statistics(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        return self._slots.statistics()

    async def _load(self, body: Mapping[str, Any]) -> dict[str, Any]:
        source = PackageSource(
            folder=Path(_text(body, "folder")),
            package_digest=_digest(body, "package_digest"),
            set_digest=_digest(body, "set_digest"),
        )
        slot = await self._slots.load(source, replace=_flag(body, "replace"))
        return {"slot": slot.name, **slot.describe()}

    async def _golden(self, body: Mapping[str, Any]) -> dict[str, Any]:
        results = await self._slots.golden(_digest(body, "package_digest"))
        return {
            "passed": all(result.passed for result in results),
            "cases": [result.to_dict() for result in results],
        }

    async def _route(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._slots.route(_number(body, "canary_share"), _number(body, "lease_s"))
        return self._slots.status()

    async def _promote(self, body: Mapping[str, Any]) -> dict[str, Any]:
        await self._slots.promote(_digest(body, "package_digest"))
        return self._slots.status()

    async def _restore(self, body: Mapping[str, Any]) -> dict[str, Any]:
        expected = _digest(body, "package_digest") if "package_digest" in body else None
        await self._slots.restore(expected)
        return self._slots.status()

    async def _unload(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"unloaded": await self._slots.unload(_digest(body, "package_digest"))}

    async def _drain(self, body: Mapping[str, Any]) -> dict[str, Any]:
        limit = min(_number(body, "timeout_s"), _LONGEST_DRAIN_S)
        return {"drained": await self._slots.drain(limit)}

    async def _end(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        self._stop()
        return {"stopping": True}


def _body(request: Request) -> Mapping[str, Any]:
    if not request.body:
        return {}
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as err:
        raise RequestRefused(f"body is not JSON: {err}", 400) from err
    if not isinstance(body, dict):
        raise RequestRefused("body is not a JSON object", 400)
    return body


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError("not text", found=repr(value)[:80], location=name)
    return value


def _digest(body: Mapping[str, Any], name: str) -> Digest:
    return digests.parse(_text(body, name), where=name)


def _number(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("not a number", found=repr(value)[:80], location=name)
    return float(value)


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise InputError("neither true nor false", found=repr(value)[:80], location=name)
    return value
