"""The reading door: contracts, their differences and fuses, without Prefect or an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts import fuse, publish, show, spec
from contracts.base import report
from contracts.base.errors import RefusedError
from contracts.base.report import Report
from contracts.catalog import Catalog
from contracts.reading import ContractProblems
from contracts.terms import Contract
from tasks.alerts import wiring
from tasks.validate import publishing
from tasks.validate.validate import catalog
from tasks.workspace import Workspace

LINT = "lint-contract"


def lint(path: Path, published: Catalog) -> Report:
    """Say everything that is wrong with a contract file, without reading data.

    Args:
        path: The file.
        published: The catalog it would be published in.

    Returns:
        A report; facts hold identity, digest and schema hash if the file can be read.
    """
    try:
        contract = spec.load(path)
    except ContractProblems as err:
        return report.conclude(LINT, path.name, publishing.problem_findings(err, path))
    facts: dict[str, Any] = {
        "contract": contract.identity,
        "digest": contract.digest,
        "schema_hash": contract.schema_hash,
        "columns": len(contract.columns),
        "rules": len(contract.all_rules),
    }
    try:
        facts["published"], earlier = publish.check(contract, published)
    except RefusedError as err:
        finding = publishing.refusal_finding(err, path)
        return report.conclude(LINT, contract.identity, [finding], facts=facts)
    facts["compared"] = [item.identity for item in earlier]
    return report.conclude(LINT, contract.identity, [], facts=facts)


def contracts(workspace: Workspace) -> list[dict[str, str]]:
    """Return a row for each published source: its latest version and what it holds."""
    published = catalog(workspace)
    rows = []
    for name in published.names():
        latest = published.load(name)
        versions = ", ".join(map(str, published.versions(name)))
        rows.append(
            {
                "contract": name,
                "latest": str(latest.version),
                "versions": versions,
                "description": latest.description,
            }
        )
    return rows


def contract(workspace: Workspace, identity: str) -> dict[str, Any]:
    """Return a published contract: its terms, a row a column and a row a rule."""
    found = resolve(workspace, identity)
    return {
        "summary": show.summary(found),
        "columns": show.columns(found),
        "rules": show.rules(found),
    }


def diff(workspace: Workspace, old: str, new: str) -> dict[str, Any]:
    """Return what changed between two contracts, each named or given as a file."""
    return show.difference(resolve(workspace, old), resolve(workspace, new))


def resolve(workspace: Workspace, text: str) -> Contract:
    """Return the contract of a name such as ``nyc/flights@1.0.0``, or of a file."""
    if text.endswith(".json"):
        return spec.load(Path(text))
    return catalog(workspace).load(text)


def fuses(workspace: Workspace, identity: str) -> list[dict[str, Any]]:
    """Return the state of the fuse of every known consumer of a contract."""
    found = resolve(workspace, identity)
    return [
        {"contract": found.identity, "consumer": consumer, **state.to_dict()}
        for consumer, state in fuse.states(workspace.objects, found)
    ]


def incidents(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the alerts of all open incidents."""
    return wiring.outbox(workspace).incidents()
