"""A backend without a model: rows are summed by plain arithmetic, so that answers can be checked.

It opens any file. Every output row is the sum of the row's inputs, where text counts as its
number of bytes; wrong on purpose where a test asks for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.interface import Array, BackendFailed, SessionOptions
from model_packages.runtime.backends.tensors import dtype_of

_ROWS = (TensorSpec("value", "FP32", (-1,)),)
_SUMS = (TensorSpec("sum", "FP32", (-1,)),)


def sums(inputs: Mapping[str, Array]) -> Array:
    """Return the sum of each row over all inputs, in double precision."""
    total: Array | float = 0.0
    for array in inputs.values():
        numbers = _lengths(array) if array.dtype == object else array.astype(np.float64)
        total = total + numbers.reshape(len(numbers), -1).sum(axis=1)
    return np.asarray(total)


def _lengths(array: Array) -> Array:
    flat = [float(len(str(text).encode())) for text in array.ravel()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


@dataclass
class FakeSession:
    """Sums rows.

    Attributes:
        inputs: What it takes.
        outputs: What it answers; each output carries the same sums in its own type and shape.
        seconds: How long one run lasts.
        hold: Runs wait for this event, if set.
        fault: Called with the inputs before each run; raise in it to fail.
        batches: Rows of each run so far.
        closed: Whether it was closed.
    """

    inputs: tuple[TensorSpec, ...] = _ROWS
    outputs: tuple[TensorSpec, ...] = _SUMS
    seconds: float = 0.0
    hold: threading.Event | None = None
    fault: Callable[[Mapping[str, Array]], None] | None = None
    batches: list[int] = field(default_factory=list)
    closed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the sums once for each output."""
        totals = sums(inputs)
        self.batches.append(len(totals))
        if self.hold is not None:
            self.hold.wait()
        if self.seconds:
            time.sleep(self.seconds)
        if self.fault is not None:
            self.fault(inputs)
        return [_shaped(totals, spec) for spec in self.outputs]

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


def _shaped(totals: Array, spec: TensorSpec) -> Array:
    sizes = [1 if size == -1 else size for size in spec.shape[1:]]
    grown = totals.reshape((-1, *(1 for _ in sizes)))
    full = np.broadcast_to(grown, (len(totals), *sizes))
    if spec.datatype == "BYTES":
        return full.astype(str).astype(object)
    return full.astype(dtype_of(spec.datatype))


@dataclass
class FakeBackend:
    """Opens fake sessions, or refuses as it is told.

    Attributes:
        sessions: What successive calls of ``open`` return; afterwards new plain sessions.
        refusal: Message to refuse with; empty to open.
        opened: The files opened so far.
    """

    sessions: Sequence[FakeSession] = ()
    refusal: str = ""
    opened: list[Path] = field(default_factory=list)
    name: str = "fake"
    platform: str = "fake"

    def prepare(self) -> None:
        """Do nothing; there is no library."""

    def open(self, model: Path, options: SessionOptions) -> FakeSession:
        """Return the next session.

        Raises:
            BackendFailed: If it was told to refuse.
        """
        del options
        if self.refusal:
            raise BackendFailed(self.refusal, location=str(model))
        count = len(self.opened)
        self.opened.append(model)
        return self.sessions[count] if count < len(self.sessions) else FakeSession()
