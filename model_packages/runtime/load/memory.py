"""Stage 5: touch the largest batch once, and hold the model to its memory limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from contracts.base.errors import OutOfMemory
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array, Session
from model_packages.runtime.load.model import ModelSpec
from model_packages.runtime.memory import budget


def reserve(spec: ModelSpec, session: Session, before: int) -> dict[str, Any]:
    """Run the largest batch so that its buffers exist before the first request.

    Args:
        spec: The model.
        session: Its open graph.
        before: Bytes the process held when loading began.

    Raises:
        OutOfMemory: If the model took more than its settings allow.
        BackendFailed: If the largest batch cannot be computed.
    """
    rows = spec.settings.max_batch_size
    session.run(filled(session.inputs, rows))
    taken = max(0, budget.resident() - before)
    if taken > spec.settings.memory_mb * budget.MIB:
        raise OutOfMemory(
            "model took more memory than its settings allow",
            expected=f"at most {spec.settings.memory_mb} MiB",
            found=f"{taken // budget.MIB} MiB",
            location="config.yaml memory_mb",
            remedy="Raise memory_mb or lower max_batch_size.",
        )
    return {"rows_touched": rows, "taken": taken, "allowed": spec.settings.memory_mb * budget.MIB}


def filled(specs: tuple[TensorSpec, ...], rows: int) -> dict[str, Array]:
    """Return inputs of ones, and of the first known category in text tensors."""
    made: dict[str, Array] = {}
    for spec in specs:
        sizes = (rows, *(1 if size == -1 else size for size in spec.shape[1:]))
        if spec.datatype == "BYTES":
            word = spec.categories[0] if spec.categories else "1"
            made[spec.name] = np.full(sizes, word, dtype=object)
        else:
            made[spec.name] = np.ones(sizes, dtype=tensors.dtype_of(spec.datatype))
    return made
