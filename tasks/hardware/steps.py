"""The hardware stage as a task of a flow."""

from __future__ import annotations

from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from model_packages.oci.unpack import open_package
from tasks import reuse
from tasks.engine import stage
from tasks.hardware import dynamic, graph, kernels, profiles
from tasks.hardware.assess import STAGE, Package, assess
from tasks.hardware.dynamic import ProbeOptions
from tasks.policy import TargetPolicy
from tasks.workspace import Workspace

__all__ = ["ProbeOptions", "test_hardware"]

_DATA = "infra/hardware"


@stage(STAGE)
def test_hardware(
    workspace: Workspace,
    package: PackageRef,
    policy: TargetPolicy,
    options: ProbeOptions = ProbeOptions(),  # noqa: B008, PT028 - frozen, so one default serves all calls; this is a stage, not a test
) -> Report:
    """Judge a package against every device the policy names."""
    inputs = {
        "package": package.to_dict(),
        "policy": policy.digest,
        "options": options.to_dict(),
        "device": dynamic.identity(),
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: _assess(workspace, package, policy, options),
        areas=["tasks/hardware", "tasks/child.py", "tasks/launcher.py", "tasks/policy.py", _DATA],
    )


def _assess(
    workspace: Workspace, package: PackageRef, policy: TargetPolicy, options: ProbeOptions
) -> Report:
    cache = workspace.objects_path / "unpacked"
    tree = open_package(workspace.packages(package.repository), package.digest, cache)
    folder = workspace.root / _DATA
    subject = Package(
        subject=str(package),
        manifest=tree.manifest,
        settings=tree.settings,
        graph=graph.read(tree.folder / "model.onnx"),
    )
    return assess(
        subject,
        policy,
        profiles.load_all(folder),
        kernels.load(folder / "kernels.json"),
        lambda: dynamic.probe(workspace, tree.folder, tree.settings, options),
    )
