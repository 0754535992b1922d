"""Publish a contract: lint, canonicalise, compare with every earlier version, register."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from contracts.base.report import Report
from flows import context
from flows.waves import aside
from tasks.validate.steps import publish


@flow(name="publish-contract", persist_result=False)
async def publish_contract(path: str, batch: str | None = None, as_of: str | None = None) -> Report:
    """Check a contract against every earlier version and publish it, never over another.

    Args:
        path: The owner's contract file.
        batch: Name of a delivered batch that must keep the promise; none if not given.
        as_of: Logical time; today if not given.
    """
    here = context.current(as_of)
    report = await aside(publish, here.workspace, Path(path), here.contracts, batch, here.as_of)
    if report.verdict == "pass":
        identity = str(report.facts["contract"])
        body = {name: report.facts[name] for name in ("contract", "digest", "schema_hash")}
        if not here.ledger.records("contract", identity):
            here.ledger.append("contract", identity, body)
    return report
