"""Pushes a built and signed package to the registry, by digest; pushing again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.base import failpoint, files
from contracts.base.errors import IntegrityError, RegistryUnavailable
from contracts.base.report import Report, conclude
from model_packages.oci import image, referrers
from model_packages.oci import push as transport
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from tasks.ledger.store import Ledger
from tasks.release.journal import Journal, lock_path, settle
from tasks.workspace import Workspace

STAGE = "push"


def push(workspace: Workspace, ref: PackageRef) -> Report:
    """Copy a package and what refers to it from where it was built to the registry.

    Args:
        workspace: The layouts, and the ledger for the journal.
        ref: The package.

    Returns:
        pass, with where it is; ``measurements`` holds ``unchanged: true`` if it was there already.

    Raises:
        RegistryUnavailable: If the package was never built here.
        DigestMismatch: If its bytes were changed; the registry shows nothing new.
        UnavailableError: If the registry cannot be written.
    """
    source = LayoutStore(workspace.packages(ref.repository))
    target = LayoutStore(workspace.registry(ref.repository))
    with files.locked(lock_path(workspace.locks, ref)):
        ledger = Ledger(workspace.ledger_path, workspace.clock)
        settle(ledger, str(ref))
        if _complete(source, target, ref):
            return _report(workspace, ref, {"unchanged": True})
        journal = Journal.begin(ledger, "release", str(ref), ref.to_dict())
        failpoint.hit("release.push.before")
        with journal.effect("push"):
            result = transport.push(source, target, ref.digest, progress=workspace.progress)
            failpoint.hit("release.push.inside")
        failpoint.hit("release.push.after")
        journal.close("done")
    measured = {"blobs_sent": result.sent, "bytes_sent": result.bytes_sent}
    return _report(workspace, ref, measured)


def _complete(source: LayoutStore, target: LayoutStore, ref: PackageRef) -> bool:
    """Whether the registry has the package with every referrer, all of it unchanged."""
    try:
        wanted = {item.manifest.digest for item in referrers.listed(source, ref.digest)}
        found = {item.manifest.digest for item in referrers.listed(target, ref.digest)}
        package = image.read(target, ref.digest)
        blobs = [*package.blobs, package.index]
        return wanted <= found and all(target.holds(blob.digest) for blob in blobs)
    except (IntegrityError, RegistryUnavailable):
        return False


def _report(workspace: Workspace, ref: PackageRef, measurements: Mapping[str, object]) -> Report:
    where = workspace.registry(ref.repository).relative_to(workspace.home).as_posix()
    facts = {**ref.to_dict(), "registry": where}
    return conclude(STAGE, str(ref), [], facts=facts, measurements=measurements)
