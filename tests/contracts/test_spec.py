"""Reading contract files: strict, bounded, and all problems at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import spec
from contracts.base.errors import CaissonError, ContractInvalid, InputError
from contracts.reading import ContractProblems
from tests.fakes import batches

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


def _problems(data: Any) -> dict[str, str]:
    with pytest.raises(ContractProblems) as caught:
        spec.parse(json.dumps(data).encode())
    return {problem.path: str(problem) for problem in caught.value.problems}


def test_contract_survives_a_round_trip() -> None:
    """What is written reads back equal, and writes the same bytes again."""
    contract = batches.make()
    again = spec.parse(spec.dumps(contract))
    assert again == contract
    assert spec.dumps(again) == spec.dumps(contract)
    assert again.digest == contract.digest


def test_identity_is_name_and_version() -> None:
    """A leading v, as in the source document's example, does not change the identity."""
    contract = batches.make(version="v2.3.1")
    assert (contract.name, contract.identity) == ("shop/orders", "shop/orders@2.3.1")


def test_columns_and_key_imply_rules() -> None:
    """Columns that may not be null, the key, and at least one row are rules by themselves."""
    names = [rule.id for rule in batches.make().all_rules]
    assert "column.id.not-null" in names
    assert "column.amount.not-null" not in names
    assert "key.unique" in names
    assert "rows.present" in names


def test_optional_parts_may_be_absent() -> None:
    """A contract without freshness, consumers, key and rules is one."""
    contract = batches.make(freshness=None, consumers=None, key=None, rules=None)
    assert contract.freshness is None
    assert contract.fuse.violations == 1
    assert spec.parse(spec.dumps(contract)) == contract


def test_nested_columns_are_read() -> None:
    """A list of structs keeps its members."""
    item = {
        "name": "item",
        "type": "struct",
        "children": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int32"}],
    }
    columns = [
        {
            "name": "lines",
            "type": "list",
            "nullable": True,
            "personal_data": "none",
            "description": "x",
            "unit": "piece",
            "children": [item],
        }
    ]
    contract = batches.make(columns=columns, key=None, rules=None, freshness=None)
    assert contract.columns[0].column.children[0].children[1].type == "int32"
    assert spec.parse(spec.dumps(contract)) == contract


def test_all_problems_are_told_at_once() -> None:
    """A file with many faults gets one error that names each field, what was expected and found."""
    data = batches.document(
        owner="Shop!",
        version="one",
        location="../etc",
        on_violation="SHRUG",
        retention_days=-1,
        lineage_anchor="somewhere",
        license="",
        surprise=1,
        key=["nothing"],
        schema_hash="sha256:" + "0" * 64,
    )
    found = _problems(data)
    assert set(found) == {
        "owner",
        "version",
        "location",
        "on_violation",
        "retention_days",
        "lineage_anchor",
        "license",
        "surprise",
        "key",
        "schema_hash",
    }
    assert "expected one of REJECT_AND_ALERT" in found["on_violation"]
    assert "got 'SHRUG'" in found["on_violation"]


def _rule(**fields: Any) -> dict[str, Any]:
    return batches.document(rules=[{"id": "r", **fields}])


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown kind": (_rule(kind="sql", columns=["id"]), "rules[0].kind"),
    "unknown field": (_rule(kind="not_null", columns=["id"], sql="x"), "rules[0].sql"),
    "unknown column": (_rule(kind="not_null", columns=["x"]), "rules[0].columns"),
    "no column": (_rule(kind="not_null"), "rules[0].columns"),
    "two columns": (_rule(kind="not_null", columns=["id", "amount"]), "rules[0].columns"),
    "columns twice": (_rule(kind="unique", columns=["id", "id"]), "rules[0].columns"),
    "columns not text": (_rule(kind="unique", columns=[1]), "rules[0].columns"),
    "columns no list": (_rule(kind="unique", columns="id"), "rules[0].columns"),
    "range of text": (_rule(kind="range", columns=["status"], minimum=1), "rules[0].columns"),
    "range without bound": (_rule(kind="range", columns=["id"]), "rules[0].minimum"),
    "range turned": (_rule(kind="range", columns=["id"], minimum=2, maximum=1), "rules[0].maximum"),
    "bound not a number": (_rule(kind="range", columns=["id"], minimum="1"), "rules[0].minimum"),
    "bound true": (_rule(kind="range", columns=["id"], minimum=True), "rules[0].minimum"),
    "bound inexact": (_rule(kind="range", columns=["id"], minimum=2**60), "rules[0].minimum"),
    "moment": (_rule(kind="range", columns=["placed"], minimum="soon"), "rules[0].minimum"),
    "moments turned": (
        _rule(kind="range", columns=["placed"], minimum="2026-02-01", maximum="2026-01-01"),
        "rules[0].maximum",
    ),
    "length of number": (_rule(kind="length", columns=["id"], minimum=1), "rules[0].columns"),
    "length negative": (_rule(kind="length", columns=["status"], minimum=-1), "rules[0].minimum"),
    "pattern of number": (_rule(kind="pattern", columns=["id"], pattern="x"), "rules[0].columns"),
    "pattern missing": (_rule(kind="pattern", columns=["status"]), "rules[0].pattern"),
    "pattern long": (
        _rule(kind="pattern", columns=["status"], pattern="a" * 501),
        "rules[0].pattern",
    ),
    "no values": (_rule(kind="allowed", columns=["status"], values=[]), "rules[0].values"),
    "wrong values": (_rule(kind="allowed", columns=["id"], values=["a"]), "rules[0].values"),
    "float for int": (_rule(kind="allowed", columns=["id"], values=[1.5]), "rules[0].values"),
    "values twice": (_rule(kind="allowed", columns=["id"], values=[1, 1]), "rules[0].values"),
    "values of moments": (
        _rule(kind="allowed", columns=["placed"], values=["x"]),
        "rules[0].values",
    ),
    "share": (_rule(kind="null_share", columns=["id"], maximum=2), "rules[0].maximum"),
    "severity": (_rule(kind="not_null", columns=["id"], severity="bad"), "rules[0].severity"),
    "built-in id": (
        batches.document(rules=[{"id": "key.unique", "kind": "not_null", "columns": ["id"]}]),
        "rules[0].id",
    ),
    "id twice": (
        batches.document(rules=[{"id": "r", "kind": "not_null", "columns": ["id"]}] * 2),
        "rules",
    ),
    "rules no list": (batches.document(rules={}), "rules"),
    "rules no objects": (batches.document(rules=[1]), "rules[0]"),
    "freshness of text": (
        batches.document(freshness={"column": "status", "sla_ms": 1}),
        "freshness.column",
    ),
    "freshness endless": (
        batches.document(freshness={"column": "placed", "sla_ms": 0}),
        "freshness.sla_ms",
    ),
    "fuse": (batches.document(fuse={"violations": 0}), "fuse.violations"),
    "consumer": (batches.document(consumers=[{"name": "/x", "contact": "y"}]), "consumers[0].name"),
    "key nullable": (batches.document(key=["amount"]), "key"),
    "no columns": (batches.document(columns=[], key=None, rules=None, freshness=None), "columns"),
    "format version": (batches.document(format_version=7), "format_version"),
    "text too long": (batches.document(description="x" * 5000), "description"),
    "flag": (
        batches.document(
            columns=[
                {
                    "name": "id",
                    "type": "int64",
                    "nullable": 1,
                    "personal_data": "none",
                    "description": "d",
                }
            ],
            rules=None,
            freshness=None,
        ),
        "columns[0].nullable",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_each_fault_is_found_where_it_is(name: str) -> None:
    """A single fault is reported under the path of its field."""
    data, path = BAD[name]
    assert path in _problems(data)


def _with_column(**fields: Any) -> dict[str, Any]:
    column = {"name": "n", "nullable": False, "personal_data": "none", "description": "d", **fields}
    others = [{**item, "description": "d"} for item in batches._COLUMNS]
    return batches.document(columns=[*others, column], schema_hash="sha256:" + "0" * 64)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": "money"}, "columns[5].type"),
        ({"type": "list", "children": [{"name": "x", "type": "int8"}]}, "columns[5].children"),
        ({"type": "map", "children": []}, "columns[5].children"),
        ({"type": "struct", "children": []}, "columns[5].children"),
        ({"type": "int8", "name": "ID"}, "columns"),
        ({"type": "int8", "name": "n" * 300}, "columns[5].name"),
        ({"type": "int8", "children": []}, "columns[5].children"),
        (
            {"type": "struct", "children": [{"name": "x", "type": "int8"}] * 2},
            "columns[5].children",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_malformed_columns_are_refused(fields: dict[str, Any], path: str) -> None:
    """A column must have a type of the table, fitting members and a name of its own."""
    assert path in _problems(_with_column(**fields))


def test_columns_nested_too_deep_are_refused() -> None:
    """Nesting is bounded."""
    inner: dict[str, Any] = {"name": "item", "type": "int8"}
    for _ in range(20):
        inner = {"name": "item", "type": "list", "children": [inner]}
    assert any("children" in path for path in _problems(_with_column(**inner)))


def test_wrong_hash_is_told_with_the_right_one() -> None:
    """Lint prints the hash that belongs there."""
    right = batches.document()["schema_hash"]
    found = _problems(batches.document(schema_hash="sha256:" + "0" * 64))
    assert right in found["schema_hash"]


def test_document_of_another_kind_is_refused() -> None:
    """A list is not a contract."""
    assert "document" in _problems([1])


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b'{"a":1,"a":2}', b"[" * 100_000, b"NaN", b" " * (2 << 20)],
    ids=["empty", "cut", "encoding", "twice", "deep", "nan", "large"],
)
def test_what_is_no_json_is_an_input_error(data: bytes) -> None:
    """Broken, huge, deep or repeated JSON is refused with one typed error."""
    with pytest.raises(InputError):
        spec.parse(data)


def test_missing_file_is_an_input_error(tmp_path: Path) -> None:
    """A path that leads nowhere is told as such."""
    with pytest.raises(InputError, match="missing"):
        spec.load(tmp_path / "none.contract.json")


@given(JSON)
@settings(max_examples=150, deadline=None)
def test_any_json_is_a_contract_or_a_typed_error(value: Any) -> None:
    """No document, however strange, makes the parser fail in another way."""
    text = json.dumps(value).encode()
    with pytest.raises((ContractInvalid, InputError)):
        spec.parse(text)


PATHS = (
    [(name,) for name in batches.document()]
    + [("columns", 0, name) for name in ("name", "type", "nullable", "personal_data")]
    + [
        ("rules", index, name)
        for index in range(3)
        for name in ("id", "kind", "columns", "minimum", "maximum", "values")
    ]
)


@given(st.sampled_from(PATHS), JSON)
@settings(max_examples=150, deadline=None)
def test_any_value_in_any_field_is_judged(path: tuple[Any, ...], value: Any) -> None:
    """One field replaced by anything gives a contract that round-trips, or a typed error."""
    data: Any = batches.document()
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        contract = spec.parse(json.dumps(data).encode())
    except CaissonError:
        return
    assert spec.parse(spec.dumps(contract)) == contract


@given(st.integers(0, 3000), st.integers(0, 255))
@settings(max_examples=100, deadline=None)
def test_one_changed_byte_never_crashes_the_parser(position: int, byte: int) -> None:
    """A damaged file reads, or is refused with a typed error."""
    data = bytearray(json.dumps(batches.document()).encode())
    data[position % len(data)] = byte
    try:
        spec.parse(bytes(data))
    except CaissonError:
        return
