"""Change one weight of a graph, to prove that a change is noticed. Door of ``onnx``."""

from __future__ import annotations

from typing import Any

from contracts.base.errors import InputError


def with_changed_weight(data: bytes, *, ending: str = "weight", part: float = 0.25) -> bytes:
    """Return a serialised graph with one constant changed; everything else stays as it is.

    Args:
        data: A serialised graph.
        ending: End of the constant's name; of several constants the last is changed. A bias moves
            every answer, a weight only some.
        part: Change of its largest value, in parts of itself.

    Raises:
        InputError: If this is no graph, or it holds no such constant of 32-bit floats.
    """
    import numpy as np
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # no stubs

    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError, RuntimeError) as err:
        raise InputError("not an ONNX model", found=" ".join(str(err).split())[:200]) from err
    tensors = [item for item in model.graph.initializer if _is_meant(item, ending)]
    if not tensors:
        raise InputError(f"graph holds no constant of raw floats named ...{ending}")
    values = np.frombuffer(tensors[-1].raw_data, dtype="<f4").copy()
    values[np.argmax(np.abs(values))] *= 1 + part
    tensors[-1].raw_data = values.tobytes()
    return bytes(model.SerializeToString())


def _is_meant(tensor: Any, ending: str) -> bool:
    import onnx

    floats = tensor.data_type == onnx.TensorProto.FLOAT and bool(tensor.raw_data)
    return floats and str(tensor.name).endswith(ending)
