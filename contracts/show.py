"""Describes contracts and changes as plain rows, for tables and pages. Reads no data."""

from __future__ import annotations

from typing import Any

from contracts import checks, schema
from contracts.compatibility import Change, compare, required
from contracts.rules import Rule
from contracts.terms import Contract


def summary(contract: Contract) -> dict[str, Any]:
    """Return the terms of a contract, one entry a line."""
    promise = contract.freshness
    fresh = f"{checks.spoken(promise.sla_ms)} by {promise.column}" if promise else "not promised"
    return {
        "contract": contract.identity,
        "description": contract.description,
        "contact": contract.contact,
        "digest": contract.digest,
        "schema_hash": contract.schema_hash,
        "key": ", ".join(contract.key),
        "freshness": fresh,
        "on_violation": contract.on_violation,
        "lineage_anchor": contract.lineage_anchor,
        "license": contract.license,
        "purpose": contract.purpose,
        "retention": f"{contract.retention_days} d" if contract.retention_days else "without limit",
        "consumers": ", ".join(consumer.name for consumer in contract.consumers),
        "personal_data": ", ".join(sorted(contract.personal())) or "none",
    }


def columns(contract: Contract) -> list[dict[str, Any]]:
    """Return a row for each column."""
    return [
        {
            "name": item.name,
            "type": schema.spelled(item.column),
            "nullable": item.nullable,
            "unit": item.unit,
            "personal_data": item.personal_data,
            "description": item.description,
        }
        for item in contract.columns
    ]


def rules(contract: Contract) -> list[dict[str, Any]]:
    """Return a row for each rule, those that columns and key imply among them."""
    return [
        {
            "id": rule.id,
            "columns": ", ".join(rule.columns),
            "promise": promise(rule),
            "severity": rule.severity,
            "description": rule.description,
        }
        for rule in contract.all_rules
    ]


def promise(rule: Rule) -> str:
    """Return what a rule promises, in a few words."""
    return checks.promise(rule)


def difference(old: Contract, new: Contract) -> dict[str, Any]:
    """Return what changed between two contracts and the version step it demands."""
    changes = compare(old, new)
    return {
        "from": old.identity,
        "to": new.identity,
        "required_step": required(changes),
        "changes": [change_row(change) for change in changes],
    }


def change_row(change: Change) -> dict[str, str]:
    """Return a change as a row."""
    return {"step": change.bump, "path": change.path, "message": change.message}
