"""The validate stage and the publication of contracts, as tasks of a flow."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from contracts.base.report import Report
from contracts.catalog import Catalog
from tasks.engine import stage
from tasks.validate import publishing, validate
from tasks.validate.validate import delivered
from tasks.workspace import Workspace

__all__ = ["delivered", "publish", "validate_batch"]


@stage(validate.STAGE)
def validate_batch(
    workspace: Workspace,
    contract_name: str,
    batch_name: str,
    as_of: datetime | None = None,
    consumer: str = "local",
) -> Report:
    """Judge a batch against its contract and do what the contract says."""
    return validate.validate(workspace, contract_name, batch_name, as_of, consumer)


@stage(publishing.STAGE)
def publish(
    workspace: Workspace,
    path: Path,
    published: Path,
    sample: str | None = None,
    as_of: datetime | None = None,
) -> Report:
    """Lint, compare and publish an owner's contract file, never over another."""
    return publishing.publish_contract(workspace, path, Catalog(published), sample, as_of)
