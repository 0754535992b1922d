"""Read an ONNX file without trusting it: bounded, checked, data confined. Door of ``onnx``."""

from __future__ import annotations

import math
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format import inventory as inventories
from model_packages.format.tensors import TensorSpec

# An onnx.ModelProto or GraphProto; the library is untyped for us and loaded late.
Model = Any
Graph = Any

LIMIT = 2**31 - 1  # what a protocol buffer may hold
_DATATYPES = {
    "FLOAT": "FP32", "DOUBLE": "FP64", "FLOAT16": "FP16", "BFLOAT16": "BF16", "BOOL": "BOOL",
    "STRING": "BYTES", "INT8": "INT8", "INT16": "INT16", "INT32": "INT32", "INT64": "INT64",
    "UINT8": "UINT8", "UINT16": "UINT16", "UINT32": "UINT32", "UINT64": "UINT64",
}  # fmt: skip
_BITS = {"FLOAT4E2M1": 4, "INT4": 4, "UINT4": 4, "STRING": 0}


def load(path: Path) -> Model:
    """Parse a graph without its external data.

    Raises:
        InputError: If it is missing, not a plain file or larger than 2 GiB.
        ManifestInvalid: If it is no ONNX model.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # no stubs

    try:
        status = path.lstat()
    except OSError as err:
        raise InputError(f"cannot be read: {err.strerror}", location=str(path)) from err
    if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
        raise InputError("not a plain file of at most 2 GiB", location=str(path))
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except (DecodeError, ValueError, RuntimeError) as err:
        raise _invalid("not an ONNX model", path, err) from err
    if not model.graph.node or not model.opset_import:
        raise ManifestInvalid("not an ONNX model", found="no operators", location=str(path))
    return model


def check(path: Path) -> None:
    """Run the ONNX checker on the file itself, as it also looks at external data.

    Raises:
        ManifestInvalid: With what the checker says.
    """
    import onnx

    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as err:
        raise _invalid("refused by the ONNX checker", path, err) from err


def inferred(model: Model, path: Path) -> Model:
    """Return the model with the shapes of intermediate results, where they can be told.

    Raises:
        ManifestInvalid: If shapes contradict each other.
    """
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as err:
        raise _invalid("shapes contradict each other", path, err) from err


def graphs(model: Model) -> list[Graph]:
    """Return the main graph, every graph inside an operator, and the bodies of functions."""
    found: list[Graph] = []
    pending = [model.graph, *model.functions]
    while pending:
        graph = pending.pop(0)
        found.append(graph)
        for node in graph.node:
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else []
                pending += list(attribute.graphs)
    return found


def operators(model: Model) -> Mapping[str, int]:
    """Count operators by ``domain::operator``, in sub-graphs and functions too."""
    return Counter(
        f"{node.domain or 'ai.onnx'}::{node.op_type}"
        for graph in graphs(model)
        for node in graph.node
    )


def parameters(model: Model) -> tuple[int, int]:
    """Return elements and bytes of all constants."""
    elements = size = 0
    for tensor in tensors(model):
        count = math.prod(tensor.dims)
        elements += count
        size += _bytes_of(tensor, count)
    return elements, size


def interface(values: Iterable[Any], graph: Graph) -> tuple[TensorSpec, ...]:
    """Return the tensors among a graph's inputs or outputs; constants are no inputs."""
    constants = {tensor.name for tensor in graph.initializer}
    return tuple(
        TensorSpec(value.name, datatype(value.type), shape(value.type))
        for value in values
        if value.name not in constants
    )


def datatype(kind: Any) -> str:
    """Return the OIP datatype of a type; what OIP cannot say is named as ONNX does."""
    import onnx

    if not kind.HasField("tensor_type"):
        return str(kind.WhichOneof("value") or "unknown")
    name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
    return _DATATYPES.get(name, name)


def shape(kind: Any) -> tuple[int, ...]:
    """Return a tensor's shape with -1 where a dimension has no fixed length."""
    return tuple(
        int(item.dim_value) if item.HasField("dim_value") and item.dim_value >= 0 else -1
        for item in kind.tensor_type.shape.dim
    )


def external_data(model: Model, path: Path) -> tuple[str, ...]:
    """Return the files that hold constants, all plain files beside the graph.

    Raises:
        ManifestInvalid: If one lies elsewhere, is a link, or is shorter than a constant says.
    """
    import onnx

    names: set[str] = set()
    for tensor in tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            names.add(_confined(tensor, path))
    return tuple(sorted(names))


def tensors(model: Model) -> Iterator[Any]:
    """Yield every constant: initializers, sparse ones, and those in attributes."""
    for graph in graphs(model):
        if hasattr(graph, "initializer"):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
    for item in [*sparse, *attribute.sparse_tensors]:
        yield from (item.values, item.indices)


def _confined(tensor: Any, path: Path) -> str:
    entries = {item.key: item.value for item in tensor.external_data}
    name = entries.get("location", "")
    where = f"{path}: constant {tensor.name}"
    if "/" in name or not inventories.is_plain(name):
        raise ManifestInvalid(
            "data outside the package's folder",
            expected="a plain file beside the graph",
            found=repr(name)[:100],
            location=where,
            remedy="Save the model with its data in model.onnx.data.",
        )
    numbers = [entries.get("offset", "0"), entries.get("length", "0")]
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in numbers):
        raise ManifestInvalid("malformed place of external data", location=where)
    data = path.with_name(name)
    if data.is_symlink() or not data.is_file():
        raise ManifestInvalid("external data is no plain file", found=name, location=where)
    if sum(map(int, numbers)) > data.stat().st_size:
        raise ManifestInvalid("external data is cut short", found=name, location=where)
    return str(name)


def _bytes_of(tensor: Any, count: int) -> int:
    import onnx

    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    if kind == "STRING":
        return sum(len(text) for text in tensor.string_data)
    if kind in _BITS:
        return (count * _BITS[kind] + 7) // 8
    return count * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def _invalid(message: str, path: Path, err: Exception) -> ManifestInvalid:
    text = " ".join(str(err).split())[:500]
    return ManifestInvalid(
        message, found=text, location=str(path), remedy="Export the model to ONNX again."
    )
