"""Canonical JSON after RFC 8785: one value, one sequence of bytes, on every host.

Reading is strict: duplicate names, NaN and infinities are refused, and so is input over a limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base.errors import InputError

# Integers beyond this cannot be read back exactly by every JSON reader (RFC 8785, section 3.1).
_EXACT_INTEGER = 2**53 - 1
# From here on doubles are written with an exponent (RFC 8785, section 3.2.2.3).
_LARGEST_INTEGER = 10**21
_MAXIMUM_DEPTH = 64


def dumps(value: Any) -> bytes:
    """Return the canonical JSON bytes of plain data.

    Args:
        value: Mappings with string names, sequences, strings, numbers, booleans and None.

    Returns:
        UTF-8 bytes without white space, names sorted by UTF-16 code units.

    Raises:
        InputError: If the value holds something JSON cannot carry exactly.
    """
    parts: list[str] = []
    _write(value, parts, "$", 0)
    try:
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError as err:
        raise InputError("text holds a lone surrogate, which UTF-8 cannot carry") from err


def loads(data: bytes | str, *, limit: int = 64 * 2**20, where: str = "") -> Any:
    """Read JSON strictly.

    Args:
        data: The JSON text.
        limit: Largest size accepted, in bytes.
        where: What is being read, for messages.

    Returns:
        Plain data.

    Raises:
        InputError: If the text is too large, not JSON, repeats a name or holds NaN or infinity.
    """
    if len(data) > limit:
        raise InputError(
            "document is too large",
            expected=f"at most {limit} bytes",
            found=f"{len(data)} bytes",
            location=where,
        )
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError) as err:
        raise InputError(f"not readable as JSON: {err}", location=where) from err


def _write(value: Any, parts: list[str], path: str, depth: int) -> None:
    if depth > _MAXIMUM_DEPTH:
        raise InputError(f"value nests deeper than {_MAXIMUM_DEPTH} levels", location=path)
    if isinstance(value, Mapping):
        _write_mapping(value, parts, path, depth)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        parts.append("[")
        for index, item in enumerate(value):
            if index:
                parts.append(",")
            _write(item, parts, f"{path}[{index}]", depth + 1)
        parts.append("]")
    else:
        parts.append(_scalar(value, path))


def _write_mapping(value: Mapping[Any, Any], parts: list[str], path: str, depth: int) -> None:
    for name in value:
        if not isinstance(name, str):
            raise InputError("names must be text", found=repr(name), location=path)
    parts.append("{")
    for index, name in enumerate(sorted(value, key=_utf16)):
        if index:
            parts.append(",")
        parts.append(json.dumps(name, ensure_ascii=False))
        parts.append(":")
        _write(value[name], parts, f"{path}.{name}", depth + 1)
    parts.append("}")


def _scalar(value: Any, path: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return _integer(int(value), path)
    if isinstance(value, float):
        return _number(float(value), path)
    raise InputError(f"{type(value).__name__} has no canonical JSON form", location=path)


def _integer(value: int, path: str) -> str:
    """Format an integer that a reader of doubles reads back as the same digits."""
    text = str(value) if abs(value) < _LARGEST_INTEGER else ""
    if abs(value) > _EXACT_INTEGER and (not text or _number(float(value), path) != text):
        raise InputError(
            "integer is not exact in JSON", found=f"{value.bit_length()} bits", location=path
        )
    return text


def _number(value: float, path: str) -> str:
    """Format a double as ECMAScript does (RFC 8785, section 3.2.2.3)."""
    if not math.isfinite(value):
        raise InputError(f"{value} has no JSON form", location=path)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, exponent = _shortest(abs(value))
    count = len(digits)
    if count <= exponent <= 21:
        return sign + digits + "0" * (exponent - count)
    if 0 < exponent <= 21:
        return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
    if -6 < exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{mantissa}e{exponent - 1:+d}"


def _shortest(value: float) -> tuple[str, int]:
    """Return the shortest digits that read back as ``value``, and the place of the point."""
    mantissa, _, power = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = whole + fraction
    exponent = len(whole) + int(power or 0)
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    return stripped.rstrip("0"), exponent


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"names given twice: {', '.join(repeated)}")
    return result


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
