"""Rows of a feature bundle as inputs of a model, and as a file that a child process can read.

Texts stay texts and numbers become 32-bit floats; a missing text is empty, a missing number NaN,
as the model format says. The file is a numpy archive without pickled objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.base.errors import BundleInvalid
from model_packages.format.tensors import TensorSpec

Array = NDArray[Any]

_INPUT = "input:"
_LABEL = "label"


@dataclass(frozen=True)
class Sample:
    """Rows with their label.

    Attributes:
        inputs: One array an input of the model, in the model's order.
        label: What really happened, 0 or 1.
    """

    inputs: Mapping[str, Array]
    label: Array

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.label)

    def take(self, rows: Array) -> Sample:
        """Return some of the rows."""
        chosen = {name: values[rows] for name, values in self.inputs.items()}
        return Sample(chosen, self.label[rows])


def draw(table: Any, inputs: Sequence[TensorSpec], label: str, *, rows: int, seed: int) -> Sample:
    """Return rows of a bundle's table, chosen by a seed and kept in their order.

    Args:
        table: An Arrow table, as a bundle gives it.
        inputs: What the model declares to take.
        label: Name of the label's column.
        rows: How many; all if there are fewer.
        seed: Chooses them.

    Raises:
        BundleInvalid: If a column is missing, or there is no row.
    """
    missing = sorted({*(spec.name for spec in inputs), label} - set(table.column_names))
    if missing or not table.num_rows:
        raise BundleInvalid(
            "bundle does not hold what the model takes",
            expected="a column for each input and the label, and rows",
            found=f"no {', '.join(missing)}" if missing else "no row",
            remedy="Name the bundle's columns in the manifest, or snapshot the right definition.",
        )
    order = np.random.default_rng(seed).permutation(table.num_rows)
    chosen = table.take(np.sort(order[:rows]))
    columns = {spec.name: _column(chosen[spec.name], spec) for spec in inputs}
    return Sample(columns, _numbers(chosen[label]))


def write(sample: Sample, path: Path) -> None:
    """Write a sample to a file ending in ``.npz``."""
    arrays = {
        _INPUT + name: values.astype(str) if values.dtype == object else values
        for name, values in sample.inputs.items()
    }
    np.savez(path, allow_pickle=False, **{_LABEL: sample.label}, **arrays)


def read(path: Path) -> Sample:
    """Read a sample back.

    Raises:
        BundleInvalid: If the file holds anything else.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            inputs = {
                name.removeprefix(_INPUT): _texts(archive[name])
                for name in archive.files
                if name.startswith(_INPUT)
            }
            return Sample(inputs, archive[_LABEL])
    except (OSError, KeyError, ValueError) as err:
        raise BundleInvalid("not a sample file", found=str(err), location=str(path)) from err


def _column(values: Any, spec: TensorSpec) -> Array:
    if spec.datatype != "BYTES":
        return _numbers(values)
    plain = values.to_pylist()
    return np.array(["" if item is None else str(item) for item in plain], dtype=object)


def _numbers(values: Any) -> Array:
    return np.asarray(values.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float32)


def _texts(values: Array) -> Array:
    return values.astype(object) if values.dtype.kind == "U" else values
