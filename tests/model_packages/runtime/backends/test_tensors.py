"""Values from outside become arrays, or an error that names the tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from contracts.base.errors import RequestInvalid
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends import tensors

_NUMERIC = [
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "FP32", "FP64",
]  # fmt: skip


def spec(
    datatype: str = "FP32", shape: tuple[int, ...] = (-1,), *, nullable: bool = False
) -> TensorSpec:
    return TensorSpec("x", datatype, shape, nullable=nullable)


@pytest.mark.parametrize("datatype", _NUMERIC)
@given(data=st.data())
def test_numbers_survive_both_forms(datatype: str, data: st.DataObject) -> None:
    """Whatever an array holds, its JSON and its bytes read back equal."""
    dtype = tensors.dtype_of(datatype)
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 20)))
    elements: dict[str, Any] = (
        {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else {}
    )
    array = data.draw(arrays.arrays(dtype, shape, elements=elements or None))
    declared = spec(datatype, (-1, -1))
    text = orjson.dumps(tensors.to_json(array), option=orjson.OPT_SERIALIZE_NUMPY)
    np.testing.assert_array_equal(tensors.from_json(declared, shape, orjson.loads(text)), array)
    raw = memoryview(tensors.to_binary(array))
    np.testing.assert_array_equal(tensors.from_binary(declared, shape, raw), array)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_text_survives_both_forms(texts: list[str]) -> None:
    """Any text that UTF-8 can carry reads back equal."""
    array = np.array(texts, dtype=object)
    shape = (len(texts),)
    assert tensors.from_json(spec("BYTES"), shape, tensors.to_json(array)).tolist() == texts
    raw = memoryview(tensors.to_binary(array))
    assert tensors.from_binary(spec("BYTES"), shape, raw).tolist() == texts


def test_bytes_from_a_model_are_text() -> None:
    """Some graphs answer bytes; clients get text."""
    array = np.array([b"a", "b"], dtype=object)
    assert tensors.to_json(array) == ["a", "b"]
    assert tensors.to_binary(array) == b"\x01\0\0\0a\x01\0\0\0b"


def test_nested_and_flat_values_are_the_same() -> None:
    """The protocol allows either."""
    flat = tensors.from_json(spec(shape=(-1, 2)), (2, 2), [1, 2, 3, 4])
    nested = tensors.from_json(spec(shape=(-1, 2)), (2, 2), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(flat, nested)


def test_missing_values_are_nan_where_allowed() -> None:
    """Null is a missing number, or an empty text."""
    found = tensors.from_json(spec(nullable=True), (3,), [None, 1, 2.5])
    assert math.isnan(found[0])
    assert found[1:].tolist() == [1.0, 2.5]
    words = tensors.from_json(spec("BYTES", nullable=True), (2,), [None, "a"])
    assert words.tolist() == ["", "a"]
    raw = memoryview(np.array([np.nan] * 2000, dtype=np.float32).tobytes())
    assert np.isnan(tensors.from_binary(spec(nullable=True), (2000,), raw)).all()


def test_no_rows_make_an_empty_array() -> None:
    """Whether that is allowed is for the request to judge."""
    assert tensors.from_json(spec(), (0,), []).shape == (0,)


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "message"),
    [
        ("FP32", (1,), "1", "data is not a list"),
        ("FP32", (1,), None, "data is not a list"),
        ("FP32", (2,), [1], "do not fill the shape"),
        ("FP32", (1, 2), [[1], [2]], "do not fill the shape"),
        ("FP32", (2,), [1, [2]], "different lengths"),
        ("FP32", (1,), ["1"], "another type"),
        ("FP32", (1,), [True], "another type"),
        ("FP32", (1,), [None], "another type"),
        ("FP32", (1,), [{}], "another type"),
        ("FP32", (1,), [1e39], "not allowed"),
        ("FP32", (1,), [10**400], "another type"),
        ("INT8", (1,), [1.0], "another type"),
        ("INT8", (1,), [128], "out of range"),
        ("UINT8", (1,), [-1], "out of range"),
        ("INT64", (1,), [2**64], "another type"),
        ("BOOL", (1,), [1], "another type"),
        ("BYTES", (1,), [1], "another type"),
        ("BYTES", (1,), [None], "another type"),
        ("BYTES", (2,), ["a", ["b"]], "another type"),
        ("BYTES", (2, 2), [["a", "b"], ["c"]], "another type"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    datatype: str, shape: tuple[int, ...], data: Any, message: str
) -> None:
    """Each kind of misfit is told apart and names the input."""
    declared = spec(datatype, (-1,) * len(shape))
    with pytest.raises(RequestInvalid, match=f"input x: .*{message}"):
        tensors.from_json(declared, shape, data)


@pytest.mark.parametrize("data", [[None, "a"], [None, 10**400], [None, [1]]])
def test_missing_values_do_not_hide_wrong_ones(data: list[Any]) -> None:
    """Beside a null every other value is still judged."""
    with pytest.raises(RequestInvalid):
        tensors.from_json(spec(nullable=True), (len(data),), data)


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "message"),
    [
        ("FP32", (2,), b"\0\0\0\0", "another size"),
        ("FP32", (1,), np.float32(np.nan).tobytes(), "not allowed"),
        ("FP32", (2000,), np.full(2000, np.inf, np.float32).tobytes(), "not allowed"),
        ("BOOL", (1,), b"\2", "neither 0 nor 1"),
        ("BYTES", (1,), b"\1\0\0", "does not end"),
        ("BYTES", (1,), b"\xff\xff\xff\xff", "longer than its bytes"),
        ("BYTES", (1,), b"\1\0\0\0\xff", "not UTF-8"),
        ("BYTES", (2,), b"\1\0\0\0a", "another count"),
        ("BYTES", (1,), b"\1\0\0\0a\1\0\0\0b", "does not end"),
    ],
)
def test_bytes_that_do_not_fit_are_refused(
    datatype: str, shape: tuple[int, ...], raw: bytes, message: str
) -> None:
    """Lengths and contents are judged before a model sees them."""
    with pytest.raises(RequestInvalid, match=message):
        tensors.from_binary(spec(datatype), shape, memoryview(raw))


@given(st.binary(max_size=64), st.integers(0, 6), st.sampled_from([*_NUMERIC, "BYTES"]))
def test_any_bytes_give_an_array_or_a_refusal(raw: bytes, count: int, datatype: str) -> None:
    """Nothing else can come out of bytes from outside."""
    try:
        found = tensors.from_binary(spec(datatype), (count,), memoryview(raw))
    except RequestInvalid:
        return
    assert found.shape == (count,)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(_JSON, _JSON, st.sampled_from([*_NUMERIC, "BYTES"]), st.booleans())
def test_any_json_gives_an_array_or_a_refusal(
    shape: Any, data: Any, datatype: str, nullable: bool
) -> None:
    """Nothing else can come out of JSON from outside."""
    declared = spec(datatype, nullable=nullable)
    try:
        sizes = tensors.check_shape(declared, shape)
        found = tensors.from_json(declared, sizes, data)
    except RequestInvalid:
        return
    assert found.shape == sizes


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "not a short list"),
        ([1] * 20, "not a short list"),
        ([-1], "no size"),
        ([1.0], "no size"),
        ([True], "no size"),
        ([1, 2], "does not fit"),
        ([10**30, 1], "does not fit"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shape: Any, message: str) -> None:
    """A shape is judged before any memory is taken for it."""
    with pytest.raises(RequestInvalid, match=message):
        tensors.check_shape(spec(), shape)


def test_fixed_sizes_must_be_met() -> None:
    """Only -1 leaves a size free."""
    assert tensors.check_shape(spec(shape=(-1, 3)), [5, 3]) == (5, 3)
    with pytest.raises(RequestInvalid, match="does not fit"):
        tensors.check_shape(spec(shape=(-1, 3)), [5, 4])


def test_the_engine_says_what_it_supports() -> None:
    """numpy has no BF16."""
    assert tensors.supported("FP32")
    assert not tensors.supported("BF16")
