"""What the engine asks of an inference library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from contracts.base.errors import RuntimeFault
from model_packages.format.tensors import TensorSpec

Array = NDArray[Any]


class BackendFailed(RuntimeFault):
    """An inference library refused a model or a run; its own words are in the message."""

    code = "backend-failed"


@dataclass(frozen=True)
class SessionOptions:
    """How a model is opened.

    Attributes:
        threads: Threads inside one operator.
        device: Where it runs; only ``cpu`` in this version.
    """

    threads: int = 1
    device: str = "cpu"


class Session(Protocol):
    """One model, opened. ``run`` may be called from any thread, one call at a time."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What the graph takes."""
        ...

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What the graph answers."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is to be recorded about how it runs."""
        ...

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return all outputs in their declared order."""
        ...

    def close(self) -> None:
        """Free what the session holds."""
        ...


class Backend(Protocol):
    """Opens models of one kind."""

    name: str
    platform: str

    def prepare(self) -> None:
        """Load the library itself, so that its memory is not counted as a model's."""
        ...

    def open(self, model: Path, options: SessionOptions) -> Session:
        """Open a model file.

        Raises:
            BackendFailed: If the library refuses it.
        """
        ...
