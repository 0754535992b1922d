"""Publishes a contract and says as a report what came of it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from contracts import publish, spec
from contracts.base import report
from contracts.base.errors import RefusedError
from contracts.base.report import Finding, Report
from contracts.catalog import Catalog
from contracts.reading import ContractProblems
from contracts.sources import files
from tasks.workspace import Workspace

STAGE = "publish-contract"


def publish_contract(
    workspace: Workspace,
    path: Path,
    published: Catalog,
    sample: str | None = None,
    as_of: datetime | None = None,
    *,
    dry_run: bool = False,
) -> Report:
    """Publish an owner's contract file.

    Args:
        workspace: The installation, for the sample batch.
        path: The file.
        published: The catalog.
        sample: Name of a batch that must keep the contract; None checks none.
        as_of: The moment of this run.
        dry_run: Check everything and write nothing.

    Returns:
        A report: pass with the facts of what was published, or fail with every reason. The facts
        ``contract``, ``digest`` and ``schema_hash`` are always there, empty if unreadable.
    """
    facts: dict[str, Any] = {"contract": path.name, "digest": "", "schema_hash": ""}
    try:
        contract = spec.load(path)
        facts["contract"], facts["digest"] = contract.identity, contract.digest
        facts["schema_hash"] = contract.schema_hash
        batch = files.open_batch(workspace.sources, contract, sample) if sample else None
        done = publish.publish(path, published, sample=batch, as_of=as_of, dry_run=dry_run)
    except ContractProblems as err:
        return report.conclude(STAGE, path.name, problem_findings(err, path), facts=facts)
    except RefusedError as err:
        return report.conclude(STAGE, path.name, [refusal_finding(err, path)], facts=facts)
    facts |= {**done.to_dict(), "dry_run": dry_run}
    return report.conclude(STAGE, done.contract.identity, [], facts=facts)


def problem_findings(err: ContractProblems, path: Path) -> list[Finding]:
    """Return a finding for each place where a file breaks the specification."""
    return [
        Finding(
            rule="contract.invalid",
            subject=path.name,
            location=problem.path,
            severity="high",
            message=f"expected {problem.expected}, got {problem.found}",
            remedy=problem.remedy or "Correct the field.",
        )
        for problem in err.problems
    ]


def refusal_finding(err: RefusedError, path: Path) -> Finding:
    """Return the finding of a publication that a rule forbids."""
    return Finding(
        rule=f"contract.{err.code}",
        subject=path.name,
        location=err.location,
        severity="high",
        message=f"{err.message}; expected {err.expected}, got {err.found}",
        remedy=err.remedy,
    )
