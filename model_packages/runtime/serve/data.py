"""The data listener: Open Inference Protocol v2 over REST."""

from __future__ import annotations

import secrets
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from contracts.base.clock import Clock
from contracts.base.errors import CaissonError, ModelUnknown, RequestInvalid
from model_packages.runtime.record.decisions import Decision
from model_packages.runtime.serve import inference
from model_packages.runtime.serve.batcher import Job, Outcome, QueueFull
from model_packages.runtime.serve.inference import Inference
from model_packages.runtime.serve.messages import (
    JSON_LENGTH,
    PACKAGE_DIGEST,
    REQUEST_ID,
    ROUTE_KEY,
    TIMEOUT_MS,
    Answer,
    NotReady,
    Request,
    RequestRefused,
    error_answer,
    json_answer,
    safe_id,
    status_of,
)
from model_packages.runtime.serve.slot import Slot

_EXTENSIONS = ["binary_tensor_data"]
_VERSION = "0.1.0"
_FIRST_FAULT = 500  # statuses from here on are not the client's doing


class Slots(Protocol):
    """What the data listener asks of the slots."""

    @property
    def live(self) -> Slot | None:
        """The slot that serves."""
        ...

    def choose(self, key: str) -> tuple[Slot | None, bool]:
        """Return the slot for a key, and whether it is the canary."""
        ...


class Log(Protocol):
    """Where decisions go."""

    def append(self, decision: Decision) -> None:
        """Queue one decision; never waits."""
        ...


@dataclass(slots=True)
class _Passage:
    """One inference request on its way."""

    request: Request
    id: str
    slot: Slot | None = None
    canary: bool = False
    inference: Inference | None = None


class DataHandler:
    """Answers the data listener."""

    def __init__(self, slots: Slots, log: Log, clock: Clock) -> None:
        """Serve what is in ``slots``."""
        self._slots = slots
        self._log = log
        self._clock = clock
        self._prefix = secrets.token_hex(6)
        self._count = 0
        self.draining = False

    def handle(self, request: Request) -> None:
        """Answer one request, now or when the model is done."""
        parts = request.path.split("/")
        if len(parts) >= 5 and parts[-1] == "infer" and parts[:3] == ["", "v2", "models"]:
            self._infer(request, parts)
            return
        headers = self._headers(self._id(request, ""), self._slots.live)
        try:
            content = self._look_up(request, parts)
        except CaissonError as err:
            request.respond(error_answer(err, headers))
            return
        request.respond(json_answer(content, headers=headers))

    # Questions.

    def _look_up(self, request: Request, parts: list[str]) -> dict[str, Any]:
        if parts[:2] != ["", "v2"]:
            raise _no_such_path(request.path)
        if request.method not in ("GET", "HEAD"):
            raise RequestRefused("method is not allowed", 405, expected="GET")
        match parts[2:]:
            case []:
                return {"name": "caisson", "version": _VERSION, "extensions": _EXTENSIONS}
            case ["health", "live"]:
                return {"live": True}
            case ["health", "ready"]:
                self._require_live()
                return {"ready": True}
            case ["models", _, *rest]:
                return self._describe(parts, rest, request.path)
        raise _no_such_path(request.path)

    def _describe(self, parts: list[str], rest: list[str], path: str) -> dict[str, Any]:
        slot = self._require_live()
        spec = slot.model.spec
        if rest[:1] == ["versions"] and len(rest) > 1:
            rest = rest[2:]
        if rest not in ([], ["ready"]):
            raise _no_such_path(path)
        _require_model(slot, parts)
        if rest:
            return {"name": spec.name, "ready": True}
        return {
            "name": spec.name,
            "versions": [spec.version],
            "platform": slot.model.platform,
            "inputs": [_tensor(item) for item in spec.inputs],
            "outputs": [_tensor(item) for item in spec.outputs],
        }

    def _require_live(self) -> Slot:
        slot = self._slots.live
        if slot is None:
            raise NotReady("no model is live", remedy="Deploy a release to this target.")
        if self.draining:
            raise NotReady("this worker is ending", remedy="Send the request again.")
        return slot

    # Inference.

    def _infer(self, request: Request, parts: list[str]) -> None:
        passage = _Passage(request, "")
        try:
            self._submit(passage, parts)
        except CaissonError as err:
            self._finish(passage, err)

    def _submit(self, passage: _Passage, parts: list[str]) -> None:
        request = passage.request
        passage.id = self._id(request, "")
        if request.method != "POST":
            raise RequestRefused("method is not allowed", 405, expected="POST")
        message = inference.split(request.body, request.headers.get(JSON_LENGTH))
        passage.id = self._id(request, message.id) if message.id else passage.id
        key = request.headers.get(ROUTE_KEY) or passage.id
        slot, passage.canary = self._slots.choose(key)
        if slot is None:
            raise NotReady("no model is live", remedy="Deploy a release to this target.")
        passage.slot = slot
        _require_model(slot, parts)
        spec = slot.model.spec
        passage.inference = found = inference.read(message, spec.inputs, spec.outputs)
        slot.batcher.submit(
            Job(
                inputs=found.inputs,
                rows=found.rows,
                deadline=request.received + _timeout_s(request, slot),
                done=self._continuation(passage),
                gone=lambda: request.abandoned,
            )
        )

    def _continuation(self, passage: _Passage) -> Callable[[Outcome], None]:
        def proceed(outcome: Outcome) -> None:
            self._finish(passage, outcome)

        return proceed

    def _finish(self, passage: _Passage, outcome: Outcome) -> None:
        slot = passage.slot
        headers = self._headers(passage.id, slot)
        if isinstance(outcome, CaissonError):
            answer = _refusal(outcome, headers)
        else:
            assert slot is not None
            assert passage.inference is not None
            answer = inference.write(passage.inference, outcome, slot.model.spec, headers)
        passage.request.respond(answer)
        self._count_answer(passage, outcome, answer.status)

    def _count_answer(self, passage: _Passage, outcome: Outcome, status: int) -> None:
        slot = passage.slot
        if slot is not None:
            statistics = slot.statistics
            if isinstance(outcome, CaissonError):
                statistics.errors[outcome.code] += 1
                statistics.faults += status >= _FIRST_FAULT
            else:
                statistics.answers += 1
            statistics.latency.record(self._clock.monotonic() - passage.request.received)
        self._log.append(
            Decision(
                time_ms=int(self._clock.now().timestamp() * 1000),
                request_id=passage.id,
                package_digest=slot.digest if slot else "",
                slot=slot.name if slot else "",
                status=status,
                canary=passage.canary,
            )
        )

    def _id(self, request: Request, own: str) -> str:
        given = safe_id(request.headers.get(REQUEST_ID)) or own
        if given:
            return given
        self._count += 1
        return f"{self._prefix}-{self._count:x}"

    def _headers(self, identity: str, slot: Slot | None) -> tuple[tuple[str, str], ...]:
        if slot is None:
            return ((REQUEST_ID, identity),)
        return ((REQUEST_ID, identity), (PACKAGE_DIGEST, slot.digest))


def _refusal(err: CaissonError, headers: tuple[tuple[str, str], ...]) -> Answer:
    if isinstance(err, QueueFull):
        headers = (*headers, ("retry-after", str(err.retry_after_s)))
    elif status_of(err) == NotReady.http_status:
        headers = (*headers, ("retry-after", "1"))
    return error_answer(err, headers)


def _require_model(slot: Slot, parts: list[str]) -> None:
    """Judge ``/v2/models/{name}[/versions/{version}]...``."""
    spec = slot.model.spec
    name = urllib.parse.unquote(parts[3])
    if name != spec.name:
        raise ModelUnknown("no such model", expected=spec.name, found=name[:80])
    rest = parts[4:]
    if rest[:1] == ["versions"]:
        version = urllib.parse.unquote(rest[1])
        if version != spec.version:
            raise ModelUnknown("no such version", expected=spec.version, found=version[:80])
        rest = rest[2:]
    if len(rest) > 1:
        raise _no_such_path("/".join(parts))


def _timeout_s(request: Request, slot: Slot) -> float:
    text = request.headers.get(TIMEOUT_MS)
    if text is None:
        return slot.timeout_s
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) == 0:
        raise RequestInvalid(
            f"header {TIMEOUT_MS} is wrong", expected="whole milliseconds", found=text[:40]
        )
    return min(int(text) / 1000, slot.timeout_s)


def _tensor(spec: Any) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _no_such_path(path: str) -> RequestRefused:
    return RequestRefused("no such path", 404, found=path[:120])
