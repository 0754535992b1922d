"""The package stage as a task of a flow."""

from __future__ import annotations

from contracts.base.digest import Digest
from contracts.base.report import Report
from tasks import reuse
from tasks.engine import stage
from tasks.package.package import STAGE, exists, package, reference_of
from tasks.workspace import Workspace

__all__ = ["build_package", "reference_of"]


@stage(STAGE)
def build_package(workspace: Workspace, source_tree: Digest, repository: str) -> Report:
    """Check a package's source and build it into an OCI layout."""
    return reuse.once(
        workspace,
        STAGE,
        {"source_tree": source_tree, "repository": repository},
        lambda: package(workspace, source_tree, repository),
        areas=["tasks/package"],
        exists=lambda report: exists(workspace, report),
    )
