"""Stage 4: does the library open the graph, and is it the one the manifest describes?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base.errors import ManifestInvalid
from model_packages.format import layout
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.interface import Array, Backend, Session, SessionOptions
from model_packages.runtime.load.model import ModelSpec


@dataclass
class OrderedSession:
    """A session whose outputs come in the order of the manifest."""

    inner: Session
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    order: tuple[int, ...]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the library says about the session."""
        return self.inner.facts

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the declared outputs in their declared order."""
        answers = self.inner.run(inputs)
        return [answers[index] for index in self.order]

    def close(self) -> None:
        """Close the session inside."""
        self.inner.close()


def build(
    backend: Backend, folder: Path, spec: ModelSpec, options: SessionOptions
) -> tuple[Session, dict[str, Any]]:
    """Open the graph and compare its inputs and outputs with the manifest.

    Raises:
        BackendFailed: If the library refuses the graph.
        ManifestInvalid: If graph and manifest differ.
    """
    session = backend.open(folder / layout.GRAPH, options)
    problems = _differences("input", session.inputs, spec.inputs)
    problems += _differences("output", session.outputs, spec.outputs)
    wanted = {tensor.name for tensor in spec.inputs}
    problems += [
        f"input {tensor.name} of the graph is not declared"
        for tensor in session.inputs
        if tensor.name not in wanted
    ]
    if problems:
        session.close()
        raise ManifestInvalid(
            "; ".join(problems),
            location=layout.GRAPH,
            remedy="Make manifest.json say what the graph takes and answers.",
        )
    places = {tensor.name: index for index, tensor in enumerate(session.outputs)}
    order = tuple(places[tensor.name] for tensor in spec.outputs)
    figures = {**session.facts, "backend": backend.name}
    return OrderedSession(session, spec.inputs, spec.outputs, order), figures


def _differences(
    kind: str, found: tuple[TensorSpec, ...], declared: tuple[TensorSpec, ...]
) -> list[str]:
    present = {tensor.name: tensor for tensor in found}
    problems = []
    for tensor in declared:
        other = present.get(tensor.name)
        if other is None:
            problems.append(f"declared {kind} {tensor.name} is not in the graph")
        elif other.datatype != tensor.datatype:
            problems.append(
                f"{kind} {tensor.name}: declared {tensor.datatype}, graph has {other.datatype}"
            )
        elif not _same_shape(other.shape, tensor.shape):
            problems.append(
                f"{kind} {tensor.name}: declared shape {list(tensor.shape)}, "
                f"graph has {list(other.shape)}"
            )
    return problems


def _same_shape(found: tuple[int, ...], declared: tuple[int, ...]) -> bool:
    """Whether sizes agree where both name one, and the graph leaves the rows free."""
    if len(found) != len(declared) or found[:1] != (-1,):
        return False
    pairs = zip(found, declared, strict=True)
    return all(-1 in (first, second) or first == second for first, second in pairs)
