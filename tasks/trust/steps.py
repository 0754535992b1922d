"""The trust stage as a task of a flow."""

from __future__ import annotations

from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from tasks import reuse
from tasks.engine import stage
from tasks.trust import environment
from tasks.trust.assess import AREAS, STAGE, assess
from tasks.trust.options import TrustOptions
from tasks.workspace import Workspace

__all__ = ["TrustOptions", "assess_trust"]


@stage(STAGE)
def assess_trust(
    workspace: Workspace,
    package: PackageRef,
    holdout_version: str,
    definition: str,
    options: TrustOptions,
) -> Report:
    """Measure how far the package's answers can be trusted."""
    folder = environment.locate(workspace.root, workspace.environments)
    inputs = {
        "package": package.to_dict(),
        "holdout_version": holdout_version,
        "definition": definition,
        "options": options.to_dict(),
        "environment": folder.name if environment.python_of(folder) else "missing",
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: assess(workspace, package, holdout_version, definition, options),
        areas=AREAS,
    )
