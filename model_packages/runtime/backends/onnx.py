"""ONNX Runtime; the only file that imports it, inside its functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from model_packages.format.tensors import TensorSpec
from model_packages.runtime import config
from model_packages.runtime.backends.interface import Array, BackendFailed, SessionOptions

_TYPES = {
    "tensor(bool)": "BOOL",
    "tensor(uint8)": "UINT8",
    "tensor(uint16)": "UINT16",
    "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64",
    "tensor(int8)": "INT8",
    "tensor(int16)": "INT16",
    "tensor(int32)": "INT32",
    "tensor(int64)": "INT64",
    "tensor(float16)": "FP16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": "BYTES",
}
_QUIET = 3  # ONNX Runtime's severity "error"; its warnings go to stderr unasked
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")


class OnnxSession:
    """A graph opened by ONNX Runtime on the CPU."""

    def __init__(self, session: Any, options: SessionOptions) -> None:
        """Take an open session and read its inputs and outputs."""
        self._session = session
        self._names = [item.name for item in session.get_outputs()]
        self.inputs = _specs(session.get_inputs())
        self.outputs = _specs(session.get_outputs())
        self.facts: Mapping[str, Any] = {
            "providers": list(session.get_providers()),
            "threads": options.threads,
            "optimisation": "all",
            "spinning": False,
        }

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return all outputs of one run.

        Raises:
            BackendFailed: If the graph cannot be computed for these inputs.
        """
        try:
            answers: list[Array] = self._session.run(self._names, dict(inputs))
        except Exception as err:  # the library raises kinds of its own, without a root
            raise BackendFailed(_words(err)) from err
        return answers

    def close(self) -> None:
        """Drop the session; its memory is free once nobody runs it."""
        self._session = None


class OnnxBackend:
    """Opens ONNX graphs, with external weight data mapped beside them."""

    name = "onnx"
    platform = "onnxruntime_onnx"

    def prepare(self) -> None:
        """Import the library."""
        _library()

    def open(self, model: Path, options: SessionOptions) -> OnnxSession:
        """Open a graph from its file.

        Raises:
            BackendFailed: If the file or a graph element is refused.
        """
        onnxruntime = _library()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        settings.log_severity_level = _QUIET
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        settings.add_session_config_entry("session.inter_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(
                str(model), sess_options=settings, providers=["CPUExecutionProvider"]
            )
        except Exception as err:  # the library raises kinds of its own, without a root
            raise BackendFailed(_words(err), location=str(model)) from err
        return OnnxSession(session, options)


def _library() -> Any:
    config.silence_telemetry()  # before the import, which is when the library looks
    import onnxruntime

    return onnxruntime


def _specs(items: Sequence[Any]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(
            name=item.name,
            datatype=_TYPES.get(item.type, item.type),
            shape=tuple(size if isinstance(size, int) else -1 for size in item.shape or ()),
        )
        for item in items
    )


def _words(err: Exception) -> str:
    lines = _PREFIX.sub("", str(err)).strip().splitlines()
    return lines[0] if lines else type(err).__name__
