"""Golden cases."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format import cases, manifest
from model_packages.format.cases import Case, Tensor, Tolerance
from tests.fakes import packages

MANIFEST = manifest.from_dict(packages.manifest())


def test_cases_are_read_in_order_and_fit(source: Path) -> None:
    """The cases of a good package are named, have rows and fit the manifest."""
    read = cases.load(source / "test_cases")
    assert [(case.name, case.rows) for case in read] == [("valid_01", 3), ("valid_02", 1)]
    assert cases.mismatches(MANIFEST, read) == []
    assert read[0].request["inputs"][0]["data"] == ["AA", "ZZ", "UA"]


def test_nested_values_are_read_row_by_row(source: Path) -> None:
    """A matrix may be written as lists of lists, as the protocol allows."""
    tensor = {"name": "m", "datatype": "INT64", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
    packages.write_json(source / "test_cases" / "valid_input_02.json", {"inputs": [tensor]})
    assert cases.load(source / "test_cases")[1].inputs[0].data == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        ({"data": [1.0]}, "does not hold 1 values"),
        ({"data": 3}, "expected a list"),
        ({"data": ["a", 1.0, 2.0]}, "no FP32"),
        ({"datatype": "INT64", "data": [1, 2, 3.5]}, "no INT64"),
        ({"datatype": "INT64", "data": [1, 2, True]}, "no INT64"),
        ({"datatype": "BYTES", "data": ["a", "b", None]}, "no BYTES"),
        ({"datatype": "BOOL", "data": [True, False, 1]}, "no BOOL"),
        ({"extra": 1}, "unknown field"),
    ],
)
def test_malformed_tensors_are_refused(source: Path, tensor: dict[str, Any], words: str) -> None:
    """Values must be of the stated datatype and fill the stated shape."""
    plain = {"name": "x", "datatype": "FP32", "shape": [3], "data": [1.0, None, 2]}
    packages.write_json(
        source / "test_cases" / "valid_input_01.json", {"inputs": [{**plain, **tensor}]}
    )
    with pytest.raises(ManifestInvalid, match=words):
        cases.load(source / "test_cases")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("notes.txt", "expected valid_input_NN.json"),
        ("valid_input_09.json", "has no valid_output_09.json"),
        ("valid_output_09.json", "has no input"),
    ],
)
def test_files_that_pair_with_nothing_are_refused(source: Path, name: str, words: str) -> None:
    """Every input has an output, and nothing else lies among them."""
    (source / "test_cases" / name).write_text("{}")
    with pytest.raises(ManifestInvalid, match=words):
        cases.load(source / "test_cases")


def test_a_package_without_cases_is_refused(tmp_path: Path) -> None:
    """A model that proves nothing is not delivered."""
    with pytest.raises(ManifestInvalid, match="there is no case"):
        cases.load(tmp_path / "absent")


def test_a_negative_tolerance_is_refused(source: Path) -> None:
    """A tolerance that nothing can meet is a mistake."""
    path = source / "test_cases" / "valid_output_01.json"
    packages.edit_json(path, tolerance={"absolute": -1})
    with pytest.raises(ManifestInvalid, match="negative"):
        cases.load(source / "test_cases")
    packages.edit_json(path, tolerance=None)
    assert cases.load(source / "test_cases")[0].tolerance == Tolerance()


def test_a_case_that_is_no_json_is_refused(source: Path) -> None:
    """Reading is strict."""
    (source / "test_cases" / "valid_input_01.json").write_text("{")
    with pytest.raises(InputError, match="not readable as JSON"):
        cases.load(source / "test_cases")


def case(*outputs: Tensor, inputs: tuple[Tensor, ...] = ()) -> Case:
    return Case("valid_01", inputs, outputs, Tolerance(0.1, 0.01))


def test_what_does_not_fit_the_manifest_is_named() -> None:
    """Missing, unknown, wrongly typed and wrongly shaped tensors are told apart."""
    broken = case(
        Tensor("score", "FP64", (2, 1), (1.0, 1.0)),
        inputs=(Tensor("distance", "FP32", (3,), (1.0,) * 3), Tensor("other", "FP32", (3,), ())),
    )
    text = "; ".join(cases.mismatches(MANIFEST, [broken]))
    for words in (
        "input carrier is missing",
        "input other is not declared",
        "expected FP32, got FP64",
        "expected shape [-1], got [2, 1]",
        "differ in the length of their batch",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ([100.0], True),
        ([101.09], True),
        ([98.91], True),
        ([101.2], False),
        ([math.nan], False),
        ([None], False),
    ],
)
def test_floats_are_compared_with_the_tolerance(answer: list[float | None], same: bool) -> None:
    """Absolute and relative tolerance add up."""
    golden = case(Tensor("score", "FP32", (1,), (100.0,)))
    assert (cases.compare(golden, {"score": answer}) == []) is same


def test_a_missing_golden_value_must_be_missing() -> None:
    """None and NaN are the same absence, and nothing else is."""
    golden = case(Tensor("score", "FP32", (1,), (None,)))
    assert cases.compare(golden, {"score": [math.nan]}) == []
    assert cases.compare(golden, {"score": [0.0]})


def test_texts_and_lengths_are_compared_exactly() -> None:
    """No tolerance applies to what is not a float."""
    golden = case(Tensor("kind", "BYTES", (2,), ("a", "b")))
    assert cases.compare(golden, {"kind": ["a", "b"]}) == []
    assert "[1]" in cases.compare(golden, {"kind": ["a", "c"]})[0]
    assert "expected 2 values" in cases.compare(golden, {"kind": ["a"]})[0]
    assert "is missing" in cases.compare(golden, {})[0]


def test_a_value_without_json_form_is_not_written() -> None:
    """NaN is written as null by the caller, on purpose."""
    with pytest.raises(ManifestInvalid, match="write None"):
        cases.dump(case(Tensor("score", "FP32", (1,), (math.nan,))))


FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(st.none() | FLOATS, min_size=1, max_size=5), FLOATS.filter(lambda x: x >= 0))
def test_a_case_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, values: list[float | None], absolute: float
) -> None:
    """What is written is what is read, and it matches itself."""
    folder = tmp_path_factory.mktemp("cases")
    tensor = Tensor("x", "FP32", (len(values),), tuple(values))
    written = replace(case(tensor, inputs=(tensor,)), tolerance=Tolerance(absolute, 0.0))
    request, answer = cases.dump(written)
    (folder / "valid_input_01.json").write_bytes(request)
    (folder / "valid_output_01.json").write_bytes(answer)
    assert cases.load(folder) == (written,)
    assert cases.compare(written, {"x": values}) == []
