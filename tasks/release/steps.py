"""The release steps as tasks of a flow; the only file here that knows Prefect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from tasks.engine import stage
from tasks.ledger.record import Pointer
from tasks.policy import TargetPolicy
from tasks.release import deploy, push, recover, register, reverify, rollback, sign
from tasks.release.binding import Origin
from tasks.release.deploy import DeployOptions
from tasks.release.rollback import RollbackOptions
from tasks.release.targets.interface import Target
from tasks.release.targets.table import open_target
from tasks.workspace import Workspace

__all__ = [
    "DeployOptions",
    "Origin",
    "RollbackOptions",
    "deploy_package",
    "open_target",
    "push_package",
    "register_candidate",
    "reverify_release",
    "rollback_target",
    "sign_package",
]


@stage(sign.STAGE)
def sign_package(
    workspace: Workspace, ref: PackageRef, origin: Origin, reports: Sequence[Report]
) -> Report:
    """End what was left half done, then sign origin and reports with the builder's key."""
    stories = recover.recover(workspace, lambda name: open_target(workspace, name))
    report = sign.sign(workspace, ref, origin, reports)
    if not stories:
        return report
    return replace(report, measurements={**report.measurements, "recovered": stories})


@stage(push.STAGE)
def push_package(workspace: Workspace, ref: PackageRef) -> Report:
    """Copy a signed package to the registry, by digest."""
    return push.push(workspace, ref)


@stage(register.STAGE)
def register_candidate(
    workspace: Workspace,
    ref: PackageRef,
    signed: Mapping[str, Any],
    reports: Sequence[Report],
    *,
    by: str = "",
) -> Report:
    """Write the candidate record of a pushed package; ``signed`` are the facts of the signing."""
    bound = ReleaseFacts.from_dict(signed["binding"])
    return register.register(workspace, ref, bound, reports, signature=signed["signature"], by=by)


@stage(deploy.STAGE)
def deploy_package(
    workspace: Workspace,
    ref: PackageRef,
    target: Target,
    policy: TargetPolicy,
    options: DeployOptions | None = None,
) -> Report:
    """Bring a registered release live in a target, or leave the target as it was."""
    return deploy.deploy(workspace, ref, target, policy, options)


@stage(rollback.STAGE)
def rollback_target(
    workspace: Workspace, model: str, target: Target, options: RollbackOptions | None = None
) -> Report:
    """Make the release before the live one live again, from bytes the target kept."""
    return rollback.rollback(workspace, model, target, options)


@stage(reverify.STAGE)
def reverify_release(
    workspace: Workspace, pointer: Pointer, policy: TargetPolicy, as_of: datetime
) -> Report:
    """Judge a live release again, as of today."""
    return reverify.reverify(workspace, pointer, policy, as_of)
