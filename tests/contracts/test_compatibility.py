"""Which change demands which version step, from the view of those who read the data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import compatibility, schema
from contracts.schema import Column
from tests.fakes import batches

Edit = Callable[[dict[str, Any]], Any]


def _base() -> dict[str, Any]:
    data = batches.document()
    data["columns"].append(
        {
            "name": "lines",
            "type": "list",
            "nullable": True,
            "personal_data": "none",
            "description": "d",
            "unit": "piece",
            "children": [
                {"name": "item", "type": "struct", "children": [{"name": "sku", "type": "string"}]}
            ],
        }
    )
    data["rules"] = [
        {"id": "range", "kind": "range", "columns": ["amount"], "minimum": 0, "maximum": 100},
        {"id": "enum", "kind": "allowed", "columns": ["status"], "values": ["open", "paid"]},
        {"id": "length", "kind": "length", "columns": ["customer"], "maximum": 100},
        {"id": "pattern", "kind": "pattern", "columns": ["customer"], "pattern": "c.*"},
        {"id": "since", "kind": "range", "columns": ["placed"], "minimum": "2026-01-01"},
        {"id": "unique", "kind": "unique", "columns": ["customer"]},
    ]
    return data


def _set(path: str, value: Any) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = data
        for step in steps:
            place = place[step]
        place[last] = value

    return edit


def _drop(path: str) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = data
        for step in steps:
            place = place[step]
        del place[last]

    return edit


def _add(path: str, value: Any) -> Edit:
    return lambda data: data[path].append(value)


_COLUMN = {
    "name": "note",
    "type": "string",
    "nullable": True,
    "personal_data": "none",
    "description": "d",
}
_RULE = {"id": "new", "kind": "not_null", "columns": ["amount"]}

MUTATIONS: dict[str, tuple[Edit, str]] = {
    "drop column": (_drop("columns.5"), "major"),
    "rename column": (_set("columns.5.name", "items"), "major"),
    "int to string": (_set("columns.0.type", "string"), "major"),
    "int to wider int": (_set("columns.0.type", "int32"), "major"),
    "float to decimal": (_set("columns.2.type", "decimal(10,2)"), "major"),
    "required off": (_set("columns.1.nullable", True), "major"),
    "required on": (_set("columns.5.nullable", False), "minor"),
    "length up": (_set("rules.2.maximum", 1000), "major"),
    "length down": (_set("rules.2.maximum", 10), "minor"),
    "enum add": (_set("rules.1.values", ["open", "paid", "lost"]), "major"),
    "enum remove": (_set("rules.1.values", ["open"]), "minor"),
    "range wider": (_set("rules.0.minimum", -1), "major"),
    "range narrower": (_set("rules.0.minimum", 1), "minor"),
    "bound gone": (_drop("rules.0.maximum"), "major"),
    "moment earlier": (_set("rules.4.minimum", "2025-01-01"), "major"),
    "moment later": (_set("rules.4.minimum", "2026-02-01"), "minor"),
    "nested drop": (_set("columns.5.children.0.children.0.name", "code"), "major"),
    "nested type": (_set("columns.5.children.0.children.0.type", "int32"), "major"),
    "freshness looser": (_set("freshness.sla_ms", 172_800_000), "major"),
    "freshness tighter": (_set("freshness.sla_ms", 3_600_000), "minor"),
    "freshness removed": (_drop("freshness"), "major"),
    "freshness by another clock": (_set("freshness.clock", "ingest"), "major"),
    "freshness further ahead": (_set("freshness.ahead_ms", 7_200_000), "major"),
    "zone changed": (_set("columns.4.type", "timestamp(us)"), "major"),
    "add nullable column": (_add("columns", _COLUMN), "minor"),
    "description": (_set("columns.0.description", "Another."), "patch"),
    "unit": (_set("columns.5.unit", "dozen"), "major"),
    "unit told": (_set("columns.2.unit", "EUR"), "minor"),
    "order of columns": (lambda data: data["columns"].reverse(), "none"),
    "pattern": (_set("rules.3.pattern", "d.*"), "major"),
    "rule gone": (_drop("rules.5"), "major"),
    "rule new": (_add("rules", _RULE), "minor"),
    "rule under an old name": (_set("rules.5.columns", ["status"]), "major"),
    "rule no longer blocks": (_set("rules.0.severity", "low"), "major"),
    "rule graver": (_set("rules.0.severity", "critical"), "patch"),
    "key gone": (_drop("key"), "major"),
    "key other": (_set("key", ["customer"]), "major"),
    "more personal": (_set("columns.0.personal_data", "personal"), "major"),
    "less personal": (_set("columns.1.personal_data", "pseudonymous"), "minor"),
    "policy weaker": (_set("on_violation", "WARN"), "major"),
    "license": (_set("license", "CC-BY-4.0"), "major"),
    "purpose": (_set("purpose", "Something else."), "major"),
    "location": (_set("location", "shop/other"), "minor"),
    "anchor": (_set("lineage_anchor", "git_commit:shop/export@9"), "minor"),
    "contact": (_set("contact", "new@example.org"), "patch"),
    "consumers": (_drop("consumers"), "patch"),
    "source": (_set("source", "returns"), "major"),
}


def _made(edit: Edit | None = None, version: str = "1.0.0") -> Any:
    data = _base()
    if edit:
        edit(data)
    data["version"] = version
    data["schema_hash"] = batches.hash_of(data["columns"])
    return batches.make(**{"freshness": None, "key": None, "consumers": None, **data})


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_mutation_demands_its_step(name: str) -> None:
    """Each kind of change is graded as a careful reviewer would."""
    edit, step = MUTATIONS[name]
    changes = compatibility.compare(_made(), _made(edit))
    assert compatibility.required(changes) == step, changes


@pytest.mark.parametrize("name", ["freshness removed", "key gone"])
def test_promising_again_is_a_minor_step(name: str) -> None:
    """What is a break when taken away is an offer when given."""
    changes = compatibility.compare(_made(MUTATIONS[name][0]), _made())
    assert compatibility.required(changes) == "minor"


@pytest.mark.parametrize("name", ["policy weaker", "rule no longer blocks"])
def test_stricter_again_is_a_minor_step(name: str) -> None:
    """Enforcing more is announced, not broken."""
    changes = compatibility.compare(_made(MUTATIONS[name][0]), _made())
    assert compatibility.required(changes) == "minor"


@pytest.mark.parametrize(
    ("mutation", "version", "allowed"),
    [
        ("drop column", "1.1.0", False),
        ("drop column", "2.0.0", True),
        ("rule new", "1.0.1", False),
        ("rule new", "1.1.0", True),
        ("contact", "1.0.1", True),
        ("order of columns", "1.0.1", True),
        ("contact", "1.0.0", False),
        ("contact", "0.9.0", False),
    ],
)
def test_step_must_be_large_enough(mutation: str, version: str, allowed: bool) -> None:
    """A version step is allowed if it is at least what the change demands."""
    new = _made(MUTATIONS[mutation][0], version)
    assert compatibility.allowed(_made(), new) is allowed


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(MUTATIONS)), st.sampled_from(sorted(MUTATIONS)))
def test_grave_change_is_not_hidden_by_another(first: str, second: str) -> None:
    """Two changes together demand at least what each demands, unless they undo each other."""
    data = copy.deepcopy(_base())
    try:
        MUTATIONS[first][0](data)
        MUTATIONS[second][0](data)
        data["schema_hash"] = batches.hash_of(data["columns"])
        both = batches.make(**{"freshness": None, "key": None, "consumers": None, **data})
    except Exception:  # the two edits do not fit together
        return
    order = ["none", "patch", "minor", "major"]
    found = compatibility.required(compatibility.compare(_made(), both))
    alone = compatibility.required(compatibility.compare(_made(), _made(MUTATIONS[second][0])))
    assert order.index(found) >= order.index(alone) or first == second or "order" in first


def test_nothing_changed_is_no_change() -> None:
    """A contract compared with itself has no changes."""
    assert compatibility.compare(_made(), _made()) == ()


def test_members_are_spelled_in_messages() -> None:
    """A nested change is readable."""
    column = Column("a", "struct", (Column("c", "int8"), Column("b", "string")))
    assert schema.spelled(column) == "struct<b: string, c: int8>"
