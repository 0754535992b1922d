"""The compliance stage as a task of a flow."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.base.report import Report
from contracts.objects import content
from model_packages.oci.reference import PackageRef
from tasks import reuse
from tasks.compliance import closure, requirements
from tasks.compliance.audit import STAGE
from tasks.compliance.audit import audit as judge
from tasks.compliance.collect import collect
from tasks.compliance.rules import rules
from tasks.engine import stage
from tasks.policy import TargetPolicy
from tasks.workspace import Workspace

__all__ = ["audit"]


@stage(STAGE)
def audit(
    workspace: Workspace, package: PackageRef, reports: Sequence[Report], policy: TargetPolicy
) -> Report:
    """Audit a package, reading what the other stages said of it."""
    tools = closure.tools(policy.licences, workspace.environments)
    inputs = {
        "package": package.to_dict(),
        "policy": policy.digest,
        "reports": {report.stage: report.digest for report in reports},
        "libraries": [
            item.to_dict() for item in closure.closure(closure.ROOTS, policy.licences) + tools
        ],
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: _audit(workspace, package, reports, policy, tools),
        areas=[
            "tasks/compliance",
            "tasks/pages/sarif.py",
            "tasks/policy.py",
            "contracts/published",
        ],
        exists=lambda report: _stored(workspace, report),
    )


def _audit(
    workspace: Workspace,
    package: PackageRef,
    reports: Sequence[Report],
    policy: TargetPolicy,
    tools: Sequence[closure.Library],
) -> Report:
    subject = collect(workspace, package, reports, policy)
    result = judge(subject, rules(), requirements.load(), tools)
    for data in result.documents.values():
        content.put_bytes(workspace.objects, data)
    return result.report


def _stored(workspace: Workspace, report: Report) -> bool:
    documents = report.facts.get("documents", {})
    return all(content.has(workspace.objects, name) for name in documents.values())
