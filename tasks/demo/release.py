"""Plants a package without a signature in the registry; only the deployment can tell."""

from __future__ import annotations

from model_packages.oci import push, referrers
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from tasks.workspace import Workspace


def unsigned(workspace: Workspace, ref: PackageRef) -> PackageRef:
    """Push a built package and take its signatures out of the registry.

    Args:
        workspace: The layouts; the registry is changed, what was built is not.
        ref: A package that was built here.

    Returns:
        The package; its bytes, and so its digest, are the same.
    """
    registry = LayoutStore(workspace.registry(ref.repository))
    push.push(LayoutStore(workspace.packages(ref.repository)), registry, ref.digest)
    tag = referrers.tag_of(ref.digest)
    registry.update(lambda entries: tuple(entry for entry in entries if entry.tag != tag))
    return ref
