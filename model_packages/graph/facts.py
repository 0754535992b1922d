"""What a graph is: operators, interface, size and cost, as plain data (SPEC.md, section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_packages.format.fields import Fields, refuse
from model_packages.format.tensors import TensorSpec
from model_packages.graph import cost, reading

_LARGEST = 2**53 - 1  # what JSON carries exactly


@dataclass(frozen=True)
class GraphFacts:
    """Facts of one ONNX file.

    Attributes:
        ir_version: Version of the file format.
        opsets: Version of each operator set, by domain; ``ai.onnx`` is the standard one.
        operators: How often each ``domain::operator`` stands in the graph and its sub-graphs.
        inputs: Names, OIP datatypes and shapes; -1 where a dimension has no fixed length.
        outputs: Likewise.
        parameters: Elements of all constants.
        parameter_bytes: Bytes of all constants.
        flops_per_row: Estimated floating-point operations for one row.
        activation_bytes_per_row: Estimated peak of intermediate results for one row.
        unestimated: Operators that count as free because no rule knows their cost.
        external_data: Files beside the graph that hold constants.
        subgraphs: Graphs inside operators (If, Loop, Scan).
        functions: Functions the file defines itself.
    """

    ir_version: int
    opsets: Mapping[str, int]
    operators: Mapping[str, int]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: int
    parameter_bytes: int
    flops_per_row: int
    activation_bytes_per_row: int
    unestimated: tuple[str, ...]
    external_data: tuple[str, ...]
    subgraphs: int
    functions: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **vars(self),
            "opsets": dict(self.opsets),
            "operators": dict(self.operators),
            "inputs": [spec.to_dict() for spec in self.inputs],
            "outputs": [spec.to_dict() for spec in self.outputs],
            "unestimated": list(self.unestimated),
            "external_data": list(self.external_data),
        }

    @classmethod
    def from_dict(cls, data: Any) -> GraphFacts:
        """Read plain data back.

        Raises:
            ManifestInvalid: If a field is missing, unknown or malformed.
        """
        problems: list[str] = []
        fields = Fields(data, "graph", problems)
        numbers = {name: fields.integer(name) for name in _NUMBERS}
        facts = cls(
            opsets=_counts(fields, "opsets"),
            operators=_counts(fields, "operators"),
            inputs=tuple(_spec(item) for item in fields.records("inputs")),
            outputs=tuple(_spec(item) for item in fields.records("outputs")),
            unestimated=fields.texts("unestimated"),
            external_data=fields.texts("external_data"),
            **numbers,
        )
        fields.close()
        refuse(problems, "graph facts")
        return facts


_NUMBERS = (
    "ir_version",
    "parameters",
    "parameter_bytes",
    "flops_per_row",
    "activation_bytes_per_row",
    "subgraphs",
    "functions",
)


def facts(path: Path) -> GraphFacts:
    """Read an ONNX file and establish its facts.

    Raises:
        ManifestInvalid: If it is no valid graph, or refers to data outside its folder.
        InputError: If it cannot be read or is larger than 2 GiB.
    """
    model = reading.load(path)
    external = reading.external_data(model, path)
    reading.check(path)
    estimate = cost.estimate(reading.inferred(model, path))
    parameters, size = reading.parameters(model)
    return GraphFacts(
        ir_version=int(model.ir_version),
        opsets={item.domain or "ai.onnx": int(item.version) for item in model.opset_import},
        operators=dict(sorted(reading.operators(model).items())),
        inputs=reading.interface(model.graph.input, model.graph),
        outputs=reading.interface(model.graph.output, model.graph),
        parameters=min(parameters, _LARGEST),
        parameter_bytes=min(size, _LARGEST),
        flops_per_row=min(estimate.flops, _LARGEST),
        activation_bytes_per_row=min(estimate.peak_bytes, _LARGEST),
        unestimated=estimate.unestimated,
        external_data=external,
        subgraphs=len(reading.graphs(model)) - 1 - len(model.functions),
        functions=len(model.functions),
    )


def _counts(fields: Fields, name: str) -> dict[str, int]:
    value = fields.raw(name)
    if not isinstance(value, Mapping) or not all(type(item) is int for item in value.values()):
        fields.problems.append(f"{fields.path}.{name}: expected an object of whole numbers")
        return {}
    return dict(value)


def _spec(fields: Fields) -> TensorSpec:
    spec = TensorSpec(
        fields.text("name"), fields.text("datatype"), fields.integers("shape", minimum=-1)
    )
    fields.close()
    return spec
