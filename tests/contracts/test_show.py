"""Contracts and changes as rows for people."""

from __future__ import annotations

from contracts import show
from tests.fakes import batches


def test_summary_is_in_words() -> None:
    """Terms read as sentences would say them."""
    summary = show.summary(batches.make())
    assert summary["freshness"] == "1 d by placed"
    assert summary["retention"] == "30 d"
    assert summary["personal_data"] == "customer"


def test_what_is_not_promised_is_said() -> None:
    """Absent freshness, limits and personal data are named as absent."""
    columns = [
        {
            "name": "n",
            "type": "int8",
            "nullable": True,
            "personal_data": "none",
            "description": "d",
        }
    ]
    contract = batches.make(
        freshness=None, retention_days=0, columns=columns, key=None, rules=None, consumers=None
    )
    summary = show.summary(contract)
    assert summary["freshness"] == "not promised"
    assert summary["retention"] == "without limit"
    assert summary["personal_data"] == "none"


def test_rules_say_what_they_promise() -> None:
    """Each rule is a short promise, the implied ones too."""
    rules = [
        *batches.document()["rules"],
        {"id": "n", "kind": "row_count", "maximum": 9},
        {"id": "p", "kind": "pattern", "columns": ["status"], "pattern": "[a-z]+"},
        {"id": "l", "kind": "length", "columns": ["status"], "minimum": 1, "maximum": 9},
        {"id": "u", "kind": "unique", "columns": ["id", "status"]},
        {
            "id": "v",
            "kind": "allowed",
            "columns": ["id"],
            "values": list(range(12)),
        },
    ]
    promises = {row["id"]: row["promise"] for row in show.rules(batches.make(rules=rules))}
    assert promises == {
        "column.id.not-null": "a value in every row",
        "column.customer.not-null": "a value in every row",
        "column.status.not-null": "a value in every row",
        "column.placed.not-null": "a value in every row",
        "key.unique": "each value once",
        "amount-range": "values at least 0",
        "status-known": "one of open, paid",
        "amount-known": "at most 50.00% null",
        "n": "at most 9 rows",
        "p": "values like [a-z]+",
        "l": "lengths from 1 to 9",
        "u": "each combination once",
        "v": "one of 0, 1, 2, 3, 4, 5, 6, 7 and 4 more",
    }


def test_difference_names_the_step() -> None:
    """A comparison says which version step it demands and why."""
    found = show.difference(batches.make(), batches.make(version="2.0.0", on_violation="WARN"))
    assert found == {
        "from": "shop/orders@1.0.0",
        "to": "shop/orders@2.0.0",
        "required_step": "major",
        "changes": [
            {
                "step": "major",
                "path": "on_violation",
                "message": "was REJECT_AND_ALERT, is WARN",
            }
        ],
    }
