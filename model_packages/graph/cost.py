"""Estimate what one row costs: operations, and memory for intermediate results.

An estimate is a prior for planning. Dimensions without a fixed length count as 1, a sub-graph
counts as free and is named so, and what really happens is measured by the hardware stage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from model_packages.format.tensors import SIZES
from model_packages.graph import reading


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _words(
    """Abs Add And Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual
    HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mod Mul Neg Not Or
    PRelu Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Sub Sum Tan Tanh
    Where Xor Normalizer Scaler Binarizer Imputer"""
)
_PASSES = {
    "Softmax": 5, "LogSoftmax": 5, "LayerNormalization": 8, "BatchNormalization": 4,
    "InstanceNormalization": 8, "GroupNormalization": 8, "CumSum": 1, "ArgMax": 1, "ArgMin": 1,
    "AveragePool": 1, "MaxPool": 1, "GlobalAveragePool": 1, "GlobalMaxPool": 1,
    "ReduceL1": 1, "ReduceL2": 2, "ReduceLogSumExp": 3, "ReduceMax": 1, "ReduceMean": 1,
    "ReduceMin": 1, "ReduceProd": 1, "ReduceSum": 1, "ReduceSumSquare": 2, "TopK": 4,
}  # fmt: skip
_FREE = _words(
    """ArrayFeatureExtractor Cast CategoryMapper Compress Concat Constant ConstantOfShape
    DepthToSpace Dropout Expand FeatureVectorizer Flatten Gather GatherElements GatherND Identity
    LabelEncoder NonZero OneHot OneHotEncoder Pad Range Reshape Shape Size Slice SpaceToDepth
    Split Squeeze Tile Transpose Unsqueeze ZipMap"""
)


@dataclass(frozen=True)
class Estimate:
    """Cost of one row."""

    flops: int
    peak_bytes: int
    unestimated: tuple[str, ...]


def estimate(model: Any) -> Estimate:
    """Estimate the cost of one row of a model whose shapes were inferred."""
    shapes = _shapes(model.graph)
    flops, unknown = 0, set()
    for node in model.graph.node:
        counted = _flops(node, shapes)
        if counted is None:
            unknown.add(f"{node.domain or 'ai.onnx'}::{node.op_type}")
        else:
            flops += counted
    return Estimate(flops, _peak(model.graph, shapes), tuple(sorted(unknown)))


@dataclass(frozen=True)
class _Shape:
    dimensions: tuple[int, ...]
    element_bytes: int

    @property
    def elements(self) -> int:
        return math.prod(self.dimensions)


def _shapes(graph: Any) -> dict[str, _Shape]:
    """Return the shapes that are known, unknown lengths as 1."""
    found: dict[str, _Shape] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            dimensions = tuple(abs(length) for length in reading.shape(value.type))
            found[value.name] = _Shape(dimensions, SIZES.get(reading.datatype(value.type), 8))
    for tensor in graph.initializer:
        found[tensor.name] = _Shape(tuple(tensor.dims), 0)
    return found


def _flops(node: Any, shapes: Mapping[str, _Shape]) -> int | None:
    kind = node.op_type
    if kind in _FREE:
        return 0
    output = shapes.get(node.output[0]) if node.output else None
    inputs = [shapes.get(name) for name in node.input]
    if output is None or not inputs or inputs[0] is None:
        return None
    if kind in _ELEMENTWISE:
        return output.elements
    if kind in _PASSES:
        return _PASSES[kind] * inputs[0].elements
    return _products(node, inputs, output)


def _products(node: Any, inputs: list[_Shape | None], output: _Shape) -> int | None:
    """Count multiplications and additions of matrix products and convolutions."""
    first, second = (*inputs, None)[:2]
    if first is None or second is None or not first.dimensions or not second.dimensions:
        return None
    if node.op_type == "MatMul":
        return 2 * output.elements * first.dimensions[-1]
    if node.op_type == "Gemm":
        transposed = any(item.name == "transA" and item.i for item in node.attribute)
        return 2 * output.elements * first.dimensions[0 if transposed else -1]
    if node.op_type == "Conv":
        return 2 * output.elements * math.prod(second.dimensions[1:])
    return None


def _peak(graph: Any, shapes: Mapping[str, _Shape]) -> int:
    """Return the most bytes of intermediate results that live at one time, in graph order."""
    last_use = _last_uses(graph)
    alive: dict[str, int] = {
        value.name: _bytes(value.name, shapes) for value in graph.input if value.name in shapes
    }
    peak = sum(alive.values())
    for step, node in enumerate(graph.node):
        alive.update({name: _bytes(name, shapes) for name in node.output if name})
        peak = max(peak, sum(alive.values()))
        for name in [name for name in alive if last_use.get(name, -1) <= step]:
            del alive[name]
    return peak


def _last_uses(graph: Any) -> dict[str, int]:
    uses: dict[str, int] = {}
    for step, node in enumerate(graph.node):
        for name in _consumed(node):
            uses[name] = step
    for value in graph.output:
        uses[value.name] = len(graph.node)
    return uses


def _consumed(node: Any) -> Iterable[str]:
    """Yield what a node reads, also from inside its sub-graphs."""
    yield from node.input
    for attribute in node.attribute:
        subgraphs = [attribute.g] if attribute.HasField("g") else []
        for graph in [*subgraphs, *attribute.graphs]:
            for inner in graph.node:
                yield from _consumed(inner)


def _bytes(name: str, shapes: Mapping[str, _Shape]) -> int:
    known = shapes.get(name)
    return known.elements * known.element_bytes if known else 0
