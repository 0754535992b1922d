"""Reads from a graph what the static stage needs: nodes, and the types that flow through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from model_packages.graph import facts as graph_facts
from model_packages.graph import reading
from tasks.hardware.kernels import NodeKind
from tasks.hardware.static import Graph

# Element types as numbered by the ONNX specification (onnx.proto3, TensorProto.DataType).
_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: "float8e4m3fn",
    19: "float8e5m2",
}


def read(path: Path) -> Graph:
    """Read a graph file.

    Raises:
        ManifestInvalid: If it is no valid graph.
        InputError: If it cannot be read.
    """
    stated = graph_facts.facts(path)
    model = reading.inferred(reading.load(path), path)
    counts: Counter[tuple[str, str, frozenset[str]]] = Counter(_nodes(model))
    nodes = [
        NodeKind(domain, operator, types, count)
        for (domain, operator, types), count in counts.items()
    ]
    return Graph(
        opsets={_domain(name): version for name, version in stated.opsets.items()},
        nodes=tuple(sorted(nodes, key=lambda node: (node.name, sorted(node.types)))),
        weight_bytes=stated.parameter_bytes,
        activation_bytes=stated.activation_bytes_per_row,
    )


def _nodes(model: Any) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield every node; one that calls a function of the file stands for the function's body."""
    own = {(item.domain, item.name) for item in model.functions}
    for graph in reading.graphs(model):
        types = _types(graph)
        for node in graph.node:
            if (node.domain, node.op_type) in own:
                continue
            names = [*node.input, *node.output]
            flowing = frozenset(types[name] for name in names if name in types)
            yield _domain(node.domain), node.op_type, flowing


def _types(graph: Any) -> Mapping[str, str]:
    """Return the element type of every tensor of a graph that is known; none of a function's."""
    if not hasattr(graph, "initializer"):
        return {}
    types = {item.name: _TYPES.get(item.data_type, "other") for item in graph.initializer}
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
            types[value.name] = _TYPES.get(value.type.tensor_type.elem_type, "other")
    return types


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
