"""The verification stage as a task of a flow."""

from __future__ import annotations

from contracts.base.digest import Digest
from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from tasks import reuse
from tasks.engine import stage
from tasks.verify.options import VerifyOptions
from tasks.verify.verify import STAGE, verify
from tasks.workspace import Workspace

__all__ = ["VerifyOptions", "verify_package"]


@stage(STAGE)
def verify_package(
    workspace: Workspace,
    package: PackageRef,
    reference: Digest | None,
    holdout_version: str,
    options: VerifyOptions,
) -> Report:
    """Check golden answers, equivalence with the float model, and a short open-loop load."""
    inputs = {
        "package": package.to_dict(),
        "reference": reference,
        "holdout_version": holdout_version,
        "options": options.to_dict(),
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: verify(workspace, package, reference, holdout_version, options),
        areas=["tasks/verify", "tasks/sample.py", "tasks/child.py", "tasks/launcher.py"],
    )
