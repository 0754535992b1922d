"""Tensors as the Open Inference Protocol names them: datatype and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model_packages.format.fields import Fields

# Bytes of one element; a text element is counted as its length prefix and a short word.
SIZES = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8,
    "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": 32,
}  # fmt: skip
DATATYPES = tuple(SIZES)
FLOATS = ("FP16", "BF16", "FP32", "FP64")


@dataclass(frozen=True)
class TensorSpec:
    """One named input or output of a model.

    Attributes:
        name: Its name in the graph and in requests.
        datatype: Its OIP v2 datatype; ``BYTES`` is text.
        shape: Its dimensions; -1 is any length, and the first is the batch.
        description: What it means, for people.
        minimum: Smallest value the model was made for, if stated.
        maximum: Largest value the model was made for, if stated.
        categories: The texts the model knows, if it is categorical; others count as unknown.
        nullable: Whether a value may be missing: NaN in floats, empty text in ``BYTES``.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    categories: tuple[str, ...] = ()
    nullable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without the fields that were not given."""
        data: dict[str, Any] = {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
        }
        if self.description:
            data["description"] = self.description
        if self.minimum is not None:
            data["minimum"] = self.minimum
        if self.maximum is not None:
            data["maximum"] = self.maximum
        if self.categories:
            data["categories"] = list(self.categories)
        if self.nullable:
            data["nullable"] = True
        return data


def read_spec(fields: Fields) -> TensorSpec:
    """Read one tensor from a manifest, noting problems in ``fields``."""
    spec = TensorSpec(
        name=fields.text("name"),
        datatype=fields.text("datatype", choices=DATATYPES),
        shape=fields.integers("shape", required=True, minimum=-1),
        description=fields.text("description", ""),
        minimum=fields.number("minimum"),
        maximum=fields.number("maximum"),
        categories=fields.texts("categories"),
        nullable=fields.boolean("nullable"),
    )
    fields.close()
    _judge(spec, fields)
    return spec


def _judge(spec: TensorSpec, fields: Fields) -> None:
    if spec.shape and spec.shape[0] != -1:
        fields.problems.append(f"{fields.path}.shape: the first dimension is the batch, so -1")
    if 0 in spec.shape:
        fields.problems.append(f"{fields.path}.shape: a dimension cannot be 0")
    if None not in (spec.minimum, spec.maximum) and spec.minimum > spec.maximum:  # type: ignore[operator] # None is excluded in front
        fields.problems.append(f"{fields.path}: minimum is above maximum")
    if spec.datatype == "BYTES" and (spec.minimum, spec.maximum) != (None, None):
        fields.problems.append(f"{fields.path}: text has no minimum or maximum")
    if spec.categories and spec.datatype != "BYTES":
        fields.problems.append(f"{fields.path}.categories: only text has categories")
