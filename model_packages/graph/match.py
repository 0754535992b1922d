"""Compare what a manifest promises with what the graph has."""

from __future__ import annotations

from collections.abc import Sequence

from model_packages.format.manifest import Manifest
from model_packages.format.tensors import TensorSpec
from model_packages.graph.facts import GraphFacts


def mismatches(manifest: Manifest, facts: GraphFacts) -> list[tuple[str, str]]:
    """Return where manifest and graph differ, as (location, message)."""
    return [
        *_compare("inputs", manifest.inputs, facts.inputs),
        *_compare("outputs", manifest.outputs, facts.outputs),
    ]


def _compare(
    kind: str, declared: Sequence[TensorSpec], present: Sequence[TensorSpec]
) -> list[tuple[str, str]]:
    problems = []
    graph = {spec.name: spec for spec in present}
    for spec in declared:
        location = f"manifest.json: {kind} {spec.name}"
        found = graph.pop(spec.name, None)
        if found is None:
            problems.append((location, "the graph has no such tensor"))
            continue
        if found.datatype != spec.datatype:
            problems.append(
                (location, f"expected {found.datatype} as the graph, got {spec.datatype}")
            )
        if not _fits(spec.shape, found.shape):
            shapes = f"expected {list(found.shape)} as the graph, got {list(spec.shape)}"
            problems.append((location, shapes))
    return problems + [
        (f"model.onnx: {kind} {name}", "the manifest does not declare it") for name in graph
    ]


def _fits(declared: tuple[int, ...], graph: tuple[int, ...]) -> bool:
    """Whether every shape that is declared is one the graph takes."""
    return len(declared) == len(graph) and all(
        there in (-1, here) for here, there in zip(declared, graph, strict=True)
    )
