"""Changing one weight."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from contracts.base.errors import InputError
from model_packages.graph.weights import with_changed_weight


def graph(*constants: tuple[str, list[float]]) -> bytes:
    """Return a serialised graph that holds constants as raw floats."""
    import numpy as np
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    tensors = [
        numpy_helper.from_array(np.array(values, dtype=np.float32), name)
        for name, values in constants
    ]
    node = helper.make_node("Identity", ["x"], ["y"])
    made = helper.make_graph([node], "g", [value], [value], tensors)
    return helper.make_model(made).SerializeToString()


def values(data: bytes) -> dict[str, list[float]]:
    model = onnx.load_model_from_string(data)
    return {item.name: numpy_helper.to_array(item).tolist() for item in model.graph.initializer}


def test_the_largest_value_of_the_last_match_changes() -> None:
    """One float of one constant differs, by the part that was asked for."""
    data = graph(("a.weight", [1.0, 2.0]), ("b.weight", [1.0, -8.0]), ("b.bias", [3.0, 0.5]))
    changed = with_changed_weight(data)
    assert values(changed) == {**values(data), "b.weight": [1.0, -10.0]}
    assert sum(old != new for old, new in zip(data, changed, strict=True)) <= 4
    assert values(with_changed_weight(data, ending="bias", part=1.0))["b.bias"] == [6.0, 0.5]


def test_a_graph_without_such_a_constant_is_refused(source: Path) -> None:
    """Constants that are not raw floats, or are named otherwise, are left alone."""
    with pytest.raises(InputError, match="no constant"):
        with_changed_weight((source / "model.onnx").read_bytes())
    with pytest.raises(InputError, match="not an ONNX model"):
        with_changed_weight(b"\xff\xff\xff")
