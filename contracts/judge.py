"""Judges a batch against its contract: metadata first, then one pass over the data.

The tiers end early: data whose own schema is not the promised one, or that is stale by its own
footer, is refused before any of it is read. A rule that did not run is listed as not evaluated
and never counts as kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from contracts import checks, schema
from contracts.base import clock, report
from contracts.base.report import Finding, Report
from contracts.checks import Broken
from contracts.engine import footer, scan
from contracts.engine.footer import Footer
from contracts.sources import files
from contracts.sources.interface import Batch
from contracts.terms import Contract

STAGE = "validate"


def judge(contract: Contract, batch: Batch, as_of: datetime | None = None) -> Report:
    """Hold a batch against its contract.

    Args:
        contract: What is promised.
        batch: What was delivered.
        as_of: The moment of this run; the batch must not be for a later one. Freshness is always
            judged as of the batch's own logical time, so that a backfill gives the same answer.

    Returns:
        A report of stage ``validate``. It fails on any finding from ``medium`` up; what that
        means for the batch is decided by ``enforcement.decide``.

    Raises:
        SourceUnavailable: If the data cannot be read.
        DigestMismatch: If a file changed while it was read.
        ContractInvalid: If the engine does not accept a pattern of the contract.
    """
    subject = f"{contract.identity}#{batch.name}"
    column = contract.freshness.column if contract.freshness else ""
    footers = footer.read(batch.paths, column)
    found = metadata_findings(contract, batch, footers, as_of or batch.logical_time)
    facts = _facts(contract, batch, footers)
    if any(finding.blocks for finding in found):
        # (1) metadata alone decides: nothing of the data is read
        facts["not_evaluated"] = sorted(rule.id for rule in contract.all_rules)
        return report.conclude(STAGE, subject, found, facts=facts)
    # (2) one pass for every rule, (3) a second look at those that fail
    result = scan.run(contract, batch.paths)
    files.verify(batch)
    facts |= {"rows": result.rows, "rules_evaluated": len(contract.all_rules)}
    facts["newest"] = clock.to_text(result.newest) if result.newest else None
    found += checks.freshness_findings(contract, result.newest, batch.logical_time, subject)
    found += [
        checks.rule_finding(broken, result.rows, subject, contract) for broken in result.broken
    ]
    facts["broken_rules"] = [broken.rule.id for broken in _blocking(result.broken)]
    return report.conclude(STAGE, subject, _once(found), facts=facts)


def metadata_findings(
    contract: Contract, batch: Batch, footers: Iterable[Footer], as_of: datetime
) -> list[Finding]:
    """Judge what batch description and footers say, without reading data."""
    subject = f"{contract.identity}#{batch.name}"
    footers = tuple(footers)
    found = checks.time_findings(batch.logical_time, as_of, subject)
    found += checks.lineage_findings(contract, batch.lineage, subject)
    for item in footers:
        found += checks.schema_findings(contract, item.columns, subject, item.path.name)
    found = _once(found)
    rows = sum(item.rows for item in footers)
    for rule in contract.all_rules:
        if rule.kind == "row_count" and not checks.row_count_holds(rule, rows):
            found.append(checks.rule_finding(Broken(rule, rows), rows, subject, contract))
    newest = [item.newest for item in footers if item.newest]
    if contract.freshness and len(newest) == len(footers):
        found += checks.freshness_findings(contract, max(newest), batch.logical_time, subject)
    return found


def _facts(contract: Contract, batch: Batch, footers: Iterable[Footer]) -> dict[str, Any]:
    footers = tuple(footers)
    hashes = sorted({schema.schema_hash(item.columns) for item in footers})
    return {
        "contract": contract.identity,
        "contract_digest": contract.digest,
        "source": contract.name,
        "batch": batch.name,
        "batch_digest": batch.digest,
        "schema_hash": hashes[0] if len(hashes) == 1 else hashes,
        "logical_time": clock.to_text(batch.logical_time),
        "rows": sum(item.rows for item in footers),
        "files": len(batch.files),
        "bytes": batch.size,
        "lineage": dict(batch.lineage),
        "lineage_anchor": contract.lineage_anchor,
        "on_violation": contract.on_violation,
        "rules_evaluated": 0,
        "not_evaluated": [],
        "broken_rules": [],
    }


def _blocking(broken: Iterable[Broken]) -> list[Broken]:
    return [item for item in broken if item.rule.severity not in ("low", "info")]


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the first finding of each rule and place: files of a batch fail alike."""
    unique: dict[str, Finding] = {}
    for finding in findings:
        unique.setdefault(finding.fingerprint, finding)
    return list(unique.values())
