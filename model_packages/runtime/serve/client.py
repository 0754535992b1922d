"""Synchronous clients of both listeners, with errors of the project's own tree."""

from __future__ import annotations

import http.client
import threading
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from contracts.base import files
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, RequestInvalid, ServerUnavailable
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array
from model_packages.runtime.serve import failures
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.figures import SlotStatistics
from model_packages.runtime.serve.messages import (
    JSON_LENGTH,
    PACKAGE_DIGEST,
    REQUEST_ID,
    ROUTE_KEY,
    TIMEOUT_MS,
)

_LARGEST_ANSWER = 256 * 2**20
_DROPPED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
_DATATYPES = {"f2": "FP16", "f4": "FP32", "f8": "FP64", "b1": "BOOL"}


@dataclass(frozen=True)
class Reply:
    """One HTTP answer.

    Attributes:
        status: Its status.
        headers: Its headers by lower-case name.
        body: Its bytes.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One keep-alive connection; for one thread at a time."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Prepare a connection to ``http://host:port``; nothing is sent yet."""
        parts = urllib.parse.urlsplit(url)
        self._url = url
        self._plain = http.client.HTTPConnection(
            parts.hostname or "", parts.port or 80, timeout=timeout_s
        )

    def send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], *, again: bool
    ) -> Reply:
        """Send one request and read its answer.

        Args:
            method: HTTP method.
            path: Path.
            body: Bytes to send.
            headers: Headers to send.
            again: Whether to send it a second time if a kept connection turns out to be closed.

        Raises:
            ServerUnavailable: If the server cannot be reached or does not answer in time.
        """
        kept = self._plain.sock is not None
        try:
            return self._exchange(method, path, body, headers)
        except _DROPPED as err:
            self._plain.close()
            if kept and again:
                return self.send(method, path, body, headers, again=False)
            raise self._unreachable(str(err) or type(err).__name__) from err
        except (OSError, http.client.HTTPException) as err:
            self._plain.close()
            raise self._unreachable(str(err) or type(err).__name__) from err

    def close(self) -> None:
        """Close the connection."""
        self._plain.close()

    def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        plain = self._plain
        if plain.sock is None:
            plain.connect()  # which switches Nagle's delay off
        plain.request(method, path, body, dict(headers))
        with plain.getresponse() as response:
            data = response.read(_LARGEST_ANSWER)
            names = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, names, data)

    def _unreachable(self, found: str) -> CaissonError:
        return ServerUnavailable(
            "target does not answer",
            found=found,
            location=self._url,
            remedy="Is it running? caisson status shows it.",
        )


class AdminClient:
    """What may be done to a target. One thread at a time."""

    def __init__(self, url: str, token: str, *, timeout_s: float = 300.0) -> None:
        """Prepare a client of an admin listener."""
        self._connection = Connection(url, timeout_s)
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    @classmethod
    def connect(cls, home: Path, *, timeout_s: float = 300.0) -> AdminClient:
        """Return a client of the running target of a home.

        Raises:
            ServerUnavailable: If it is not running.
        """
        state = homes.read_state(home)
        token = files.read_bounded(home / state.token_file, 4096).decode().strip()
        return cls(state.admin_url, token, timeout_s=timeout_s)

    def status(self) -> dict[str, Any]:
        """Return the target's state: live, candidate, previous, share, slots, decisions."""
        return self._ask("GET", "status")

    def statistics(self) -> dict[Digest, SlotStatistics]:
        """Return the figures of each loaded package."""
        answer = self._ask("GET", "statistics")
        return {
            Digest(slot["package_digest"]): SlotStatistics.from_dict(slot)
            for slot in answer.values()
        }

    def load(
        self, folder: Path, package: Digest, set_digest: Digest, *, replace: bool = False
    ) -> dict[str, Any]:
        """Load a package into the slot that is not live; again is no act.

        Args:
            folder: Its ``/model`` tree, in the target's home.
            package: Digest of its OCI index.
            set_digest: Digest its files must have.
            replace: Whether what is in that slot makes room.

        Returns:
            The slot and its six stages with their seconds.

        Raises:
            LoadFailed: Naming the stage.
            SwapRefused: If the slot holds another package.
        """
        body = {"folder": str(folder), "package_digest": package, "set_digest": set_digest}
        return self._ask("POST", "load", {**body, "replace": replace})

    def golden(self, package: Digest) -> dict[str, Any]:
        """Run a loaded package's golden cases: ``{"passed", "cases": [...]}``."""
        return self._ask("POST", "golden", {"package_digest": package})

    def route(self, canary_share: float, *, lease_s: float = 60.0) -> dict[str, Any]:
        """Send a share of requests to the candidate for as long as the lease lasts."""
        return self._ask("POST", "route", {"canary_share": canary_share, "lease_s": lease_s})

    def promote(self, package: Digest) -> dict[str, Any]:
        """Make a loaded package live; again is no act."""
        return self._ask("POST", "promote", {"package_digest": package})

    def restore(self, package: Digest | None = None) -> dict[str, Any]:
        """Return to the previous package, which is loaded if need be."""
        return self._ask("POST", "restore", {"package_digest": package} if package else {})

    def unload(self, package: Digest) -> bool:
        """Empty the slot of a package that is not live; returns whether there was one."""
        return bool(self._ask("POST", "unload", {"package_digest": package})["unloaded"])

    def drain(self, *, timeout_s: float = 30.0) -> bool:
        """Wait until the slot that is not live answers nothing more."""
        return bool(self._ask("POST", "drain", {"timeout_s": timeout_s})["drained"])

    def stop(self) -> None:
        """End the target."""
        self._ask("POST", "stop")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, act: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = orjson.dumps(body) if body is not None else b""
        reply = self._connection.send(
            method, f"/admin/{act}", data, self._headers, again=method == "GET"
        )
        failures.require_ok(reply.status, reply.headers, reply.body)
        answer: dict[str, Any] = orjson.loads(reply.body)
        return answer


@dataclass(frozen=True)
class Prediction:
    """What a model answered.

    Attributes:
        outputs: Its outputs by name.
        request_id: Id of the request, under which the decision log knows it.
        package_digest: The package that answered.
        model_version: Version of the model.
    """

    outputs: Mapping[str, Array]
    request_id: str
    package_digest: Digest
    model_version: str


@dataclass(frozen=True)
class Call:
    """One request to be sent.

    Attributes:
        inputs: Values by input name: arrays of the right type, or plain lists, which get the type
            that the model declares.
        request_id: Id to give it; empty to let the server give one.
        route_key: What decides the canary; empty for the request id.
    """

    inputs: Mapping[str, Array | Sequence[Any]]
    request_id: str = ""
    route_key: str = ""


class InferenceClient:
    """A client of a data listener, for any number of threads."""

    def __init__(self, url: str, *, timeout_s: float = 30.0) -> None:
        """Prepare a client of ``http://host:port``."""
        self._url = url
        self._timeout_s = timeout_s
        self._own = threading.local()
        self._all: list[Connection] = []
        self._declared: dict[str, dict[str, str]] = {}

    def ready(self) -> bool:
        """Whether a model is live."""
        return self._send("GET", "/v2/health/ready", b"", {}).status == 200

    def metadata(self, model: str) -> dict[str, Any]:
        """Return a model's inputs and outputs."""
        reply = self._send("GET", f"/v2/models/{urllib.parse.quote(model)}", b"", {})
        failures.require_ok(reply.status, reply.headers, reply.body)
        content: dict[str, Any] = orjson.loads(reply.body)
        return content

    def infer(
        self,
        model: str,
        call: Call,
        *,
        outputs: Sequence[str] = (),
        binary: bool = True,
        timeout_ms: int = 0,
    ) -> Prediction:
        """Send one request.

        Args:
            model: Name of the model.
            call: The request.
            outputs: Outputs to ask for; all if empty.
            binary: Whether tensors travel as raw bytes or as JSON.
            timeout_ms: Time limit below the model's own; 0 for the model's.

        Raises:
            RequestInvalid: If it does not fit the model.
            Overloaded: If too many requests wait.
            ServerUnavailable: If the target cannot be reached.
            RuntimeFault: If anything else went wrong in the target.
        """
        plain = any(not isinstance(values, np.ndarray) for values in call.inputs.values())
        declared = self._datatypes(model) if plain else {}
        body, headers = _write(call, outputs, declared, binary=binary)
        if timeout_ms:
            headers[TIMEOUT_MS] = str(timeout_ms)
        path = f"/v2/models/{urllib.parse.quote(model)}/infer"
        reply = self._send("POST", path, body, headers)
        failures.require_ok(reply.status, reply.headers, reply.body)
        return _read(reply)

    def infer_many(
        self, model: str, calls: Iterable[Call], *, threads: int = 8, binary: bool = True
    ) -> Iterator[Prediction]:
        """Send many requests over several connections; answers come in the order of the calls."""
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(lambda call: self.infer(model, call, binary=binary), calls)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.close()

    def _datatypes(self, model: str) -> Mapping[str, str]:
        """Ask once what a model takes."""
        if model not in self._declared:
            inputs = self.metadata(model)["inputs"]
            self._declared[model] = {tensor["name"]: tensor["datatype"] for tensor in inputs}
        return self._declared[model]

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = Connection(self._url, self._timeout_s)
            self._all.append(connection)
        return connection.send(method, path, body, headers, again=True)


def _write(
    call: Call, outputs: Sequence[str], declared: Mapping[str, str], *, binary: bool
) -> tuple[bytes, dict[str, str]]:
    raw: list[bytes] = []
    inputs = []
    for name, values in call.inputs.items():
        array = _array(values, declared.get(name))
        tensor: dict[str, Any] = {
            "name": name,
            "datatype": _datatype(array),
            "shape": list(array.shape),
        }
        if binary:
            raw.append(tensors.to_binary(array))
            tensor["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            tensor["data"] = tensors.to_json(array)
        inputs.append(tensor)
    fields: dict[str, Any] = {"inputs": inputs, "parameters": {"binary_data_output": binary}}
    if outputs:
        fields["outputs"] = [{"name": name} for name in outputs]
    text = orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)
    headers = {JSON_LENGTH: str(len(text))} if binary else {"content-type": "application/json"}
    if call.request_id:
        headers[REQUEST_ID] = call.request_id
    if call.route_key:
        headers[ROUTE_KEY] = call.route_key
    return b"".join([text, *raw]), headers


def _array(values: Array | Sequence[Any], datatype: str | None) -> Array:
    if isinstance(values, np.ndarray):
        return values
    if datatype is not None and tensors.supported(datatype):
        try:
            return np.array(values, dtype=tensors.dtype_of(datatype))
        except (TypeError, ValueError, OverflowError) as err:
            raise RequestInvalid("values have another type", expected=datatype) from err
    array = np.array(values)
    return array.astype(object) if array.dtype.kind in "US" else array


def _datatype(array: Array) -> str:
    kind = array.dtype.kind
    if kind in "OSU":
        return "BYTES"
    named = _DATATYPES.get(f"{kind}{array.dtype.itemsize}")
    return named or f"{'UINT' if kind == 'u' else 'INT'}{array.dtype.itemsize * 8}"


def _read(reply: Reply) -> Prediction:
    length = int(reply.headers.get(JSON_LENGTH, len(reply.body)))
    content = orjson.loads(reply.body[:length])
    raw = memoryview(reply.body)[length:]
    outputs: dict[str, Array] = {}
    offset = 0
    for tensor in content["outputs"]:
        shape = tuple(tensor["shape"])
        spec = TensorSpec(tensor["name"], tensor["datatype"], shape, nullable=True)
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            outputs[spec.name] = tensors.from_json(spec, shape, tensor["data"])
        else:
            outputs[spec.name] = tensors.from_binary(spec, shape, raw[offset : offset + size])
            offset += size
    return Prediction(
        outputs=outputs,
        request_id=reply.headers.get(REQUEST_ID, ""),
        package_digest=Digest(reply.headers.get(PACKAGE_DIGEST, "")),
        model_version=content["model_version"],
    )
