"""Canonical JSON: the vectors of RFC 8785, and laws for any value."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base import canonical
from contracts.base.errors import InputError

# RFC 8785, appendix B: bits of a double and its text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | texts | st.integers(-(2**53) + 1, 2**53 - 1)
scalars |= st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20
)


@pytest.mark.parametrize("bits", NUMBERS)
def test_numbers_of_the_rfc(bits: str) -> None:
    """Doubles are written as the RFC's table says."""
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical.dumps(value).decode() == NUMBERS[bits]


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_numbers_without_a_json_form_are_refused(bits: str) -> None:
    """NaN and the infinities are errors."""
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(InputError, match="no JSON form"):
        canonical.dumps({"a": [value]})


def test_sample_of_the_rfc() -> None:
    """The RFC's example object comes out byte for byte."""
    text = (
        r'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        r'"string": "\u20ac$\u000F\u000aA' + "'" + r'\u0042\u0022\u005c\\\"\/",'
        r'"literals": [null, true, false]}'
    )
    expected = (
        r'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$' + r"\u000f\nA'B\"\\\\\"/" + '"}'
    )
    assert canonical.dumps(canonical.loads(text)).decode() == expected


def test_names_are_sorted_by_utf16_units() -> None:
    """The order is that of UTF-16 code units, where an emoji comes before U+FB33."""
    names = ["€", "\r", "\ufb33", "1", "😀", "\u0080", "ö"]
    found = list(canonical.loads(canonical.dumps(dict.fromkeys(names, 0))))
    assert found == ["\r", "1", "\u0080", "ö", "€", "😀", "\ufb33"]


@given(values)
def test_what_is_written_reads_back(value: Any) -> None:
    """Writing, reading and writing again gives the same bytes, and an ordinary reader agrees."""
    data = canonical.dumps(value)
    again = canonical.loads(data)
    assert canonical.dumps(again) == data
    assert json.loads(data) == again


@given(st.dictionaries(texts, scalars, min_size=2))
def test_order_of_names_does_not_matter(value: dict[str, Any]) -> None:
    """Two equal mappings have one form, in whatever order they were filled."""
    turned = dict(reversed(value.items()))
    assert canonical.dumps(turned) == canonical.dumps(value)


@given(st.integers())
def test_integers_are_exact_or_refused(value: int) -> None:
    """An integer is written only if every reader of doubles gets the same digits back."""
    try:
        text = canonical.dumps(value).decode()
    except InputError:
        assert abs(value) > 2**53 - 1
    else:
        assert text == str(value)


@pytest.mark.parametrize(
    "value",
    [2**53 + 1, 10**400, {1: 2}, {"a": {2}}, object(), b"bytes", "\ud800", {"\udfff": 1}],
    ids=["inexact", "huge", "number as name", "set", "object", "bytes", "surrogate", "bad name"],
)
def test_values_without_a_form_are_refused(value: Any) -> None:
    """What JSON cannot carry exactly is an input error, never another exception."""
    with pytest.raises(InputError):
        canonical.dumps(value)


def test_deep_nesting_is_refused_both_ways() -> None:
    """Neither writing nor reading follows a value for ever."""
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InputError, match="nests deeper"):
        canonical.dumps(deep)
    with pytest.raises(InputError):
        canonical.loads("[" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        "NaN",
        "-Infinity",
        "1e400",
        "{",
        "",
        b"\xff\xfe",
        b"\xff\xfe1\x00",
        b"\xef\xbb\xbf1",
        "9" * 5000,
    ],
    ids=["twice", "NaN", "infinity", "overflow", "open", "empty", "bytes", "utf16", "mark", "long"],
)
def test_reading_is_strict(text: str | bytes) -> None:
    """Repeated names, values beyond doubles and bytes that are not UTF-8 are refused."""
    with pytest.raises(InputError):
        canonical.loads(text)


def test_reading_is_bounded() -> None:
    """A document over the limit is refused before it is read, and its place is named."""
    with pytest.raises(InputError, match=r"here\.json.*too large"):
        canonical.loads("[1, 2, 3]", limit=4, where="here.json")


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Arbitrary bytes never surface as another kind of error."""
    with contextlib.suppress(InputError):
        canonical.loads(data)
