"""Rows as inputs of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contracts.base.errors import BundleInvalid
from model_packages.format.tensors import TensorSpec
from tasks import sample

SPECS = (TensorSpec("carrier", "BYTES", (-1,)), TensorSpec("distance", "FP32", (-1,)))
TABLE = pa.table(
    {
        "late": pa.array([True, False, True, False]),
        "carrier": ["AA", None, "Ü", ""],
        "distance": pa.array([1, None, 3, 4], pa.int32()),
    }
)


def test_missing_values_follow_the_model_format() -> None:
    """A missing text is empty, a missing number is NaN, everything else is kept."""
    found = sample.draw(TABLE, SPECS, "late", rows=10, seed=1)
    assert list(found.inputs["carrier"]) == ["AA", "", "Ü", ""]
    assert np.array_equal(
        found.inputs["distance"], np.array([1, np.nan, 3, 4], np.float32), equal_nan=True
    )
    assert list(found.label) == [1, 0, 1, 0]


def test_choice_is_seeded_and_keeps_order() -> None:
    """The same seed takes the same rows, in the bundle's order."""
    one = sample.draw(TABLE, SPECS[1:], "late", rows=2, seed=5)
    other = sample.draw(TABLE, SPECS[1:], "late", rows=2, seed=5)
    assert len(one) == 2
    assert np.array_equal(one.inputs["distance"], other.inputs["distance"], equal_nan=True)


def test_file_reads_back(tmp_path: Path) -> None:
    """A sample survives the way through a file, texts included."""
    wanted = sample.draw(TABLE, SPECS, "late", rows=4, seed=1)
    sample.write(wanted, tmp_path / "rows.npz")
    found = sample.read(tmp_path / "rows.npz")
    assert list(found.inputs) == ["carrier", "distance"]
    assert list(found.inputs["carrier"]) == list(wanted.inputs["carrier"])
    assert found.inputs["carrier"].dtype == object


@pytest.mark.parametrize(
    ("table", "label"), [(TABLE, "delay"), (TABLE.drop(["carrier"]), "late"), (TABLE[:0], "late")]
)
def test_what_is_missing_is_named(table: pa.Table, label: str) -> None:
    """A column or rows that are not there are an error of the bundle."""
    with pytest.raises(BundleInvalid, match="bundle does not hold"):
        sample.draw(table, SPECS, label, rows=4, seed=1)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file that is no sample is an error, not a traceback of numpy."""
    path = tmp_path / "rows.npz"
    path.write_bytes(b"PK no archive")
    with pytest.raises(BundleInvalid):
        sample.read(path)
