"""Inference requests and answers of the Open Inference Protocol v2, in JSON and binary form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from contracts.base.errors import RequestInvalid
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array
from model_packages.runtime.load.model import ModelSpec
from model_packages.runtime.serve.messages import JSON_LENGTH, Answer, safe_id

_BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Message:
    """The JSON part of a request, and the raw bytes that follow it.

    Attributes:
        fields: The JSON object.
        raw: What follows it.
    """

    fields: Mapping[str, Any]
    raw: memoryview

    @property
    def id(self) -> str:
        """The request's own id if it can be used as one, else empty."""
        value = self.fields.get("id")
        return safe_id(value) if isinstance(value, str) else ""


@dataclass(frozen=True)
class Wanted:
    """One output a client asks for."""

    index: int
    binary: bool


@dataclass(frozen=True)
class Inference:
    """A request that fits the model.

    Attributes:
        inputs: One array for each declared input.
        rows: Rows in each of them.
        outputs: What is to be answered, in the client's order.
        id: The client's own id, which is echoed; None if there is none.
    """

    inputs: dict[str, Array]
    rows: int
    outputs: tuple[Wanted, ...]
    id: str | None


def split(body: bytes, length: str | None) -> Message:
    """Read the JSON part of a body.

    Args:
        body: The whole body.
        length: Header ``inference-header-content-length``; None if all of it is JSON.

    Raises:
        RequestInvalid: If it is not a JSON object, or the header lies.
    """
    view = memoryview(body)
    end = len(body) if length is None else _length(length, len(body))
    try:
        fields = orjson.loads(view[:end])
    except orjson.JSONDecodeError as err:
        raise RequestInvalid(f"body is not JSON: {err}") from err
    if not isinstance(fields, dict):
        raise RequestInvalid("body is not a JSON object")
    return Message(fields, view[end:])


def read(
    message: Message, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Inference:
    """Judge a request against a model.

    Raises:
        RequestInvalid: If an input or output is missing, unknown, repeated or does not fit.
    """
    given = _named(message.fields.get("inputs"), "input")
    arrays: dict[str, Array] = {}
    offset = 0
    specs = {spec.name: spec for spec in inputs}
    for name, tensor in given.items():
        spec = specs.get(name)
        if spec is None:
            raise RequestInvalid(
                "input is unknown", expected=", ".join(specs), location=f"input {name[:80]}"
            )
        arrays[name], offset = _input(spec, tensor, message.raw, offset)
    missing = [name for name in specs if name not in arrays]
    if missing:
        raise RequestInvalid("inputs are missing", expected=", ".join(missing))
    if offset != len(message.raw):
        raise RequestInvalid(
            "bytes after the last binary input", expected=f"{offset}", found=f"{len(message.raw)}"
        )
    identity = message.fields.get("id")
    if identity is not None and not isinstance(identity, str):
        raise RequestInvalid("id is not text")
    return Inference(arrays, _rows(arrays), _outputs(message.fields, outputs), identity)


def write(
    inference: Inference,
    answers: Sequence[Array],
    spec: ModelSpec,
    headers: tuple[tuple[str, str], ...],
) -> Answer:
    """Return the answer to a request.

    Args:
        inference: The request.
        answers: All outputs of the model, in their declared order.
        spec: The model.
        headers: Headers of the answer.
    """
    raw: list[bytes] = []
    described = []
    for wanted in inference.outputs:
        output, array = spec.outputs[wanted.index], answers[wanted.index]
        tensor: dict[str, Any] = {
            "name": output.name,
            "datatype": output.datatype,
            "shape": list(array.shape),
        }
        if wanted.binary:
            data = tensors.to_binary(array)
            raw.append(data)
            tensor["parameters"] = {"binary_data_size": len(data)}
        else:
            tensor["data"] = tensors.to_json(array)
        described.append(tensor)
    content: dict[str, Any] = {"model_name": spec.name, "model_version": spec.version}
    if inference.id is not None:
        content["id"] = inference.id
    content["outputs"] = described
    text = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    if not raw:
        return Answer(200, text, headers=headers)
    framed = (*headers, (JSON_LENGTH, str(len(text))))
    return Answer(200, b"".join([text, *raw]), _BINARY, framed)


def _length(text: str, total: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > total:
        raise RequestInvalid(
            f"header {JSON_LENGTH} is wrong", expected=f"0 to {total}", found=text[:40]
        )
    return int(text)


def _named(items: Any, kind: str) -> dict[str, Mapping[str, Any]]:
    if not isinstance(items, list):
        raise RequestInvalid(f"{kind}s is not a list")
    named: dict[str, Mapping[str, Any]] = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise RequestInvalid(f"an {kind} has no name")
        if item["name"] in named:
            raise RequestInvalid(f"{kind} is given twice", location=f"{kind} {item['name'][:80]}")
        named[item["name"]] = item
    return named


def _input(
    spec: TensorSpec, tensor: Mapping[str, Any], raw: memoryview, offset: int
) -> tuple[Array, int]:
    if tensor.get("datatype") != spec.datatype:
        raise RequestInvalid(
            "datatype does not fit",
            expected=spec.datatype,
            found=repr(tensor.get("datatype"))[:40],
            location=f"input {spec.name}",
        )
    shape = tensors.check_shape(spec, tensor.get("shape"))
    size = _parameters(tensor).get("binary_data_size")
    if size is None:
        return tensors.from_json(spec, shape, tensor.get("data")), offset
    if type(size) is not int or not 0 <= size <= len(raw) - offset:
        raise RequestInvalid(
            "binary_data_size is wrong",
            expected=f"0 to {len(raw) - offset}",
            found=repr(size)[:40],
            location=f"input {spec.name}",
        )
    if "data" in tensor:
        raise RequestInvalid("data is given twice", location=f"input {spec.name}")
    end = offset + size
    return tensors.from_binary(spec, shape, raw[offset:end]), end


def _rows(arrays: Mapping[str, Array]) -> int:
    sizes = {len(array) for array in arrays.values()}
    if len(sizes) != 1:
        raise RequestInvalid("inputs have different numbers of rows", found=str(sorted(sizes)))
    rows = sizes.pop()
    if rows == 0:
        raise RequestInvalid("request has no rows")
    return rows


def _outputs(fields: Mapping[str, Any], specs: Sequence[TensorSpec]) -> tuple[Wanted, ...]:
    default = _flag(_parameters(fields).get("binary_data_output", False))
    items = fields.get("outputs")
    if items is None or items == []:
        return tuple(Wanted(index, default) for index in range(len(specs)))
    places = {spec.name: index for index, spec in enumerate(specs)}
    wanted = []
    for name, item in _named(items, "output").items():
        if name not in places:
            raise RequestInvalid(
                "output is unknown", expected=", ".join(places), location=f"output {name[:80]}"
            )
        binary = _parameters(item).get("binary_data", default)
        wanted.append(Wanted(places[name], _flag(binary)))
    return tuple(wanted)


def _parameters(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = fields.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise RequestInvalid("parameters is not an object")
    return parameters


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RequestInvalid("a binary_data parameter is neither true nor false")
    return value
