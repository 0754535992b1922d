"""manifest.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format import manifest
from tests.fakes import packages

PLAIN = packages.manifest()


def changed(**fields: Any) -> dict[str, Any]:
    return {**PLAIN, **fields}


def test_a_manifest_reads_back_equal() -> None:
    """What is written is what was read."""
    read = manifest.from_dict(PLAIN)
    assert manifest.parse(read.dumps()) == read


def test_a_full_manifest_reads_back_equal() -> None:
    """Every optional field survives, too."""
    read = manifest.from_dict(
        changed(
            inputs=[
                {
                    "name": "x",
                    "datatype": "FP32",
                    "shape": [-1, 3],
                    "description": "three",
                    "minimum": -1,
                    "maximum": 1.5,
                }
            ],
            training={
                "definition": "d",
                "label": "late",
                "retrain": "nightly",
                "seed": 7,
                "options": {"epochs": 3, "fast": True},
                "target_metric": {"roc_auc": 0.67},
            },
        )
    )
    assert read.training is not None
    assert read.training.target_metric == {"roc_auc": 0.67}
    assert read.inputs[0].maximum == 1.5
    assert manifest.parse(read.dumps()) == read


def test_optional_parts_may_be_absent() -> None:
    """A model that names no training, data or hardware is well formed."""
    plain = {
        name: value for name, value in PLAIN.items() if name not in ("training", "data", "hardware")
    }
    read = manifest.from_dict(plain)
    assert read.training is None
    assert read.hardware.devices == ("cpu",)


@pytest.mark.parametrize("license_", [None, ""])
def test_a_missing_licence_is_not_the_formats_business(license_: str | None) -> None:
    """The audit refuses a missing licence; the format reads it as empty text."""
    assert manifest.from_dict(changed(license=license_)).license == ""


def test_all_problems_are_named_at_once() -> None:
    """A person corrects a manifest in one go."""
    broken = changed(name=None, version="1", compliance_level="L9", color="red")
    with pytest.raises(ManifestInvalid) as caught:
        manifest.from_dict(broken)
    for text in ("4 problems", "name: missing", "version", "L1, L2, L3", "color: unknown field"):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"inputs": []}, "at least one"),
        ({"inputs": {}}, "a list"),
        ({"inputs": [1]}, "expected an object, got int"),
        ({"authors": None}, "authors: missing"),
        ({"format_version": 1}, "0 to 0"),
        ({"runtime_api": 2}, "1 to 1"),
        ({"runtime_api": True}, "a whole number"),
        ({"name": "Upper"}, "lower-case"),
        ({"title": 3}, "text"),
        ({"title": "x" * 20_001}, "at most 20000"),
        ({"hardware": {"devices": ["cpu", "cpu"]}}, "distinct"),
        ({"hardware": {"devices": ["cpu"], "memory_mb": -1}}, "0 to"),
        ({"data": [{"name": "d", "owner": "x"}]}, "owner: unknown"),
        ({"training": {"definition": "d", "feature_version": "yesterday"}}, "YYYYMMDD"),
        ({"training": {"definition": "d", "options": {"a": []}}}, "numbers, texts"),
        ({"training": {"definition": "d", "target_metric": {"auc": "high"}}}, "of numbers"),
    ],
)
def test_a_malformed_field_is_refused(fields: dict[str, Any], words: str) -> None:
    """Each field says what it expects."""
    with pytest.raises(ManifestInvalid, match=words):
        manifest.from_dict(changed(**fields))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"shape": [3]}, "the batch"),
        ({"shape": [-1, 0]}, "cannot be 0"),
        ({"shape": [-1, True]}, "whole number"),
        ({"shape": []}, "at least one"),
        ({"datatype": "FLOAT"}, "FP32"),
        ({"minimum": 2, "maximum": 1}, "above maximum"),
        ({"minimum": "low"}, "finite number"),
        ({"datatype": "BYTES", "minimum": 1}, "text has no minimum"),
        ({"categories": ["a"]}, "only text"),
        ({"categories": [1]}, "non-empty text"),
        ({"nullable": "yes"}, "true or false"),
    ],
)
def test_a_malformed_tensor_is_refused(spec: dict[str, Any], words: str) -> None:
    """Inputs are described in the terms of the protocol, consistently."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [-1], **spec}
    with pytest.raises(ManifestInvalid, match=words):
        manifest.from_dict(changed(inputs=[tensor]))


def test_a_name_given_twice_is_refused() -> None:
    """Two inputs of one name cannot be told apart in a request."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [-1]}
    with pytest.raises(ManifestInvalid, match="x is named twice"):
        manifest.from_dict(changed(inputs=[tensor, tensor]))


def test_a_manifest_over_the_limit_is_not_parsed(tmp_path: Path) -> None:
    """A manifest of 100 MB is refused by its size."""
    path = tmp_path / "manifest.json"
    path.write_bytes(b" " * (manifest.LIMIT + 1))
    with pytest.raises(InputError, match="too large"):
        manifest.load(path)


def test_text_that_is_no_json_is_refused() -> None:
    """Reading is strict."""
    with pytest.raises(InputError, match="not readable as JSON"):
        manifest.parse(b'{"name": NaN}')


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(name=st.sampled_from(sorted(PLAIN)), value=VALUES)
def test_no_value_of_any_field_breaks_the_reader(name: str, value: Any) -> None:
    """Whatever stands in a field, the answer is a manifest or one typed error."""
    try:
        read = manifest.from_dict(changed(**{name: value}))
    except ManifestInvalid:
        return
    assert manifest.parse(json.dumps(read.to_dict()).encode()) == read
