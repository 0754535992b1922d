"""Tensors between the Open Inference Protocol and numpy: JSON values and the binary form.

Everything here judges values from outside: what does not fit is a RequestInvalid that names the
tensor, and never an exception of numpy.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from contracts.base.errors import RequestInvalid
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.interface import Array

_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype(object),
}
_MAXIMUM_RANK = 16
_FEW = 1024
_LENGTH = struct.Struct("<I")


def supported(datatype: str) -> bool:
    """Whether the engine can carry a datatype."""
    return datatype in _DTYPES


def dtype_of(datatype: str) -> np.dtype[Any]:
    """Return the numpy type of a supported datatype."""
    return _DTYPES[datatype]


def check_shape(spec: TensorSpec, shape: Any) -> tuple[int, ...]:
    """Return the shape a request declares, if it fits the model's.

    Raises:
        RequestInvalid: If it is not a list of sizes or does not fit.
    """
    if type(shape) is list and len(shape) == 1 == len(spec.shape) and spec.shape[0] == -1:
        rows = shape[0]  # a column: by far the most frequent case, judged with the fewest steps
        if type(rows) is int and rows >= 0:
            return (rows,)
    if not isinstance(shape, list) or len(shape) > _MAXIMUM_RANK:
        raise _invalid(spec, "shape is not a short list", expected="a list of sizes", found=shape)
    if not all(type(size) is int and size >= 0 for size in shape):
        raise _invalid(spec, "shape holds something that is no size", found=shape)
    fits = len(shape) == len(spec.shape) and all(
        wanted in (-1, size) for size, wanted in zip(shape, spec.shape, strict=True)
    )
    if not fits:
        raise _invalid(spec, "shape does not fit", expected=str(list(spec.shape)), found=shape)
    return tuple(shape)


def from_json(spec: TensorSpec, shape: tuple[int, ...], data: Any) -> Array:
    """Return the array that JSON values describe, flat or nested.

    Args:
        spec: What the model declares.
        shape: The request's shape, already checked.
        data: The values; null is a missing value where the model allows one.

    Raises:
        RequestInvalid: If the values have another count, type or range.
    """
    if not isinstance(data, list):
        raise _invalid(spec, "data is not a list", found=data)
    array = _text(spec, data) if spec.datatype == "BYTES" else _numbers(spec, data)
    return _reshape(spec, array, shape)


def from_binary(spec: TensorSpec, shape: tuple[int, ...], data: memoryview) -> Array:
    """Return the array that raw little-endian bytes describe.

    Raises:
        RequestInvalid: If the bytes have another length, or hold what the model forbids.
    """
    if spec.datatype == "BYTES":
        return _reshape(spec, np.array(_unpack(spec, data, math.prod(shape)), dtype=object), shape)
    dtype = _DTYPES[spec.datatype]
    wanted = math.prod(shape) * dtype.itemsize
    if len(data) != wanted:
        raise _invalid(
            spec, "binary data has another size", expected=f"{wanted} bytes", found=len(data)
        )
    if dtype.kind == "b":
        return _booleans(spec, np.frombuffer(data, dtype=np.uint8)).reshape(shape)
    array = np.frombuffer(data, dtype=dtype).reshape(shape)
    return _finite(spec, array) if dtype.kind == "f" else array


def to_json(array: Array) -> Any:
    """Return an output as what orjson writes; NaN and infinities become null there."""
    if array.dtype.kind in "OSU":
        return [_as_text(item) for item in array.ravel()]
    flat = np.ascontiguousarray(array).ravel()
    return flat.tolist() if flat.dtype == np.float16 or flat.size <= 16 else flat


def to_binary(array: Array) -> bytes:
    """Return an output as raw little-endian bytes."""
    if array.dtype.kind in "OSU":
        parts = [_as_text(item).encode("utf-8", "surrogateescape") for item in array.ravel()]
        return b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _numbers(spec: TensorSpec, data: list[Any]) -> Array:
    try:
        array = np.array(data)
    except (ValueError, OverflowError) as err:
        raise _invalid(spec, "nested lists have different lengths", found=data) from err
    dtype = _DTYPES[spec.datatype]
    if array.dtype.kind == "O" and dtype.kind == "f" and spec.nullable:
        array = _with_missing(spec, array)
    elif array.dtype.kind == "f" and spec.datatype == "UINT64":
        array = _exact(data)  # numpy takes whole numbers beyond INT64 for doubles if mixed
    if array.size == 0:
        return np.empty(array.shape, dtype=dtype)
    if dtype.kind == "b":
        if array.dtype.kind != "b":
            raise _invalid(spec, "values have another type", expected="true or false", found=data)
        return array
    kinds = "iuf" if dtype.kind == "f" else "iu"
    if array.dtype.kind not in kinds:
        expected = "numbers" if dtype.kind == "f" else "whole numbers"
        raise _invalid(spec, "values have another type", expected=expected, found=data)
    return _cast(spec, array, dtype)


def _with_missing(spec: TensorSpec, array: Array) -> Array:
    flat = [math.nan if item is None else item for item in array.ravel()]
    if not all(type(item) in (int, float) for item in flat):
        raise _invalid(spec, "values have another type", expected="numbers or null", found=flat)
    try:
        return np.array(flat, dtype=np.float64).reshape(array.shape)
    except OverflowError as err:
        raise _invalid(spec, "a number is out of range", found=flat) from err


def _exact(data: list[Any]) -> Array:
    array = np.array(data, dtype=object)
    whole = all(type(item) is int and 0 <= item < 2**64 for item in array.flat)
    return array.astype(np.uint64) if whole else array


def _cast(spec: TensorSpec, array: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return _finite(spec, array.astype(dtype))
    limits = np.iinfo(dtype)
    if int(array.min()) < limits.min or int(array.max()) > limits.max:
        raise _invalid(
            spec,
            "a number is out of range",
            expected=f"{limits.min} to {limits.max}",
            found=f"{int(array.min())} to {int(array.max())}",
        )
    return array.astype(dtype)


def _finite(spec: TensorSpec, array: Array) -> Array:
    good = np.isfinite(array)
    if spec.nullable:
        good |= np.isnan(array)
    if not _all(good):
        expected = "finite numbers or NaN" if spec.nullable else "finite numbers"
        raise _invalid(spec, "a number is not allowed", expected=expected, found="NaN or infinity")
    return array


def _all(mask: Array) -> bool:
    """Whether every flag is set; for few of them a search in their bytes is faster."""
    return b"\0" not in mask.tobytes() if mask.size <= _FEW else bool(mask.all())


def _booleans(spec: TensorSpec, array: Array) -> Array:
    if (array > 1).any():
        raise _invalid(spec, "a boolean is neither 0 nor 1", expected="bytes 0 or 1")
    return array.astype(np.bool_)


def _text(spec: TensorSpec, data: list[Any]) -> Array:
    try:
        array = np.array(data, dtype=object)
    except ValueError as err:
        raise _invalid(spec, "nested lists have different lengths", found=data) from err
    for index, item in enumerate(array.flat):
        if item is None and spec.nullable:
            array.flat[index] = ""
        elif type(item) is not str:
            raise _invalid(spec, "values have another type", expected="text", found=item)
    return array


def _unpack(spec: TensorSpec, data: memoryview, count: int) -> list[str]:
    texts: list[str] = []
    offset = 0
    while offset < len(data):
        if len(texts) == count or offset + 4 > len(data):
            raise _invalid(spec, "binary text does not end with its last element")
        (length,) = _LENGTH.unpack_from(data, offset)
        offset += 4
        if offset + length > len(data):
            raise _invalid(spec, "binary text is longer than its bytes", found=length)
        try:
            texts.append(str(data[offset : offset + length], "utf-8"))
        except UnicodeDecodeError as err:
            raise _invalid(spec, "binary text is not UTF-8", found=err.reason) from err
        offset += length
    if len(texts) != count:
        raise _invalid(
            spec, "values have another count", expected=f"{count} values", found=len(texts)
        )
    return texts


def _reshape(spec: TensorSpec, array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape == shape:
        return array
    nested: Sequence[int] = array.shape
    if len(nested) == 1 and array.size == math.prod(shape):
        return array.reshape(shape)
    raise _invalid(
        spec, "values do not fill the shape", expected=str(list(shape)), found=list(nested)
    )


def _as_text(item: Any) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def _invalid(
    spec: TensorSpec, message: str, *, expected: str = "", found: Any = ""
) -> RequestInvalid:
    text = found if isinstance(found, str) else repr(found)
    return RequestInvalid(
        message,
        expected=expected or (f"{spec.datatype} {list(spec.shape)}" if found != "" else ""),
        found=text if len(text) <= 80 else f"{text[:77]}...",
        location=f"input {spec.name}",
    )
