"""Build a model package from its source tree, or say everything that is wrong with the source."""

from __future__ import annotations

import tempfile
from pathlib import Path

from contracts.base.digest import Digest
from contracts.base.progress import Progress
from contracts.base.report import Report, conclude
from contracts.objects import content
from model_packages.oci import build, carried, image
from model_packages.oci.reference import PackageRef, check_repository
from model_packages.oci.store import LayoutStore
from tasks.package.findings import describe, examine
from tasks.workspace import Workspace

STAGE = "package"
_STEPS = 3


def package(workspace: Workspace, source_tree: Digest, repository: str) -> Report:
    """Build the package of a source tree into the workspace's layout of a repository.

    Args:
        workspace: Where the source tree is stored and the package goes.
        source_tree: Digest of the stored source tree.
        repository: Name of the package.

    Returns:
        A report whose facts name the package; if it fails, its findings say why, and nothing is
        built.

    Raises:
        InputError: If the repository's name is malformed or the source tree is not stored.
        DigestMismatch: If the stored source tree was changed.
        UnavailableError: If the layout cannot be written.
    """
    check_repository(repository)
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="package-", dir=workspace.tmp) as folder:
        source = content.checkout_tree(workspace.objects, source_tree, Path(folder) / "source")
        _tell(workspace, 1)
        return _package(workspace, source, source_tree, repository)


def reference_of(report: Report) -> PackageRef:
    """Return the package that a passing report names.

    Raises:
        InputError: If the report names none.
    """
    facts = report.facts
    return PackageRef.from_dict(
        {
            "repository": facts.get("repository"),
            "digest": facts.get("package_digest"),
            "set_digest": facts.get("set_digest"),
        }
    )


def exists(workspace: Workspace, report: Report) -> bool:
    """Whether the package that a report names is there, whole and unchanged."""
    package_ref = reference_of(report)
    store = LayoutStore(workspace.packages(package_ref.repository))
    image.verify(store, package_ref.digest)
    return True


def _package(workspace: Workspace, source: Path, source_tree: Digest, repository: str) -> Report:
    examined = examine(source)
    facts = {"source_tree": source_tree, "repository": repository, **describe(examined)}
    _tell(workspace, 2)
    if any(finding.blocks for finding in examined.findings):
        return conclude(STAGE, repository, examined.findings, facts=facts)
    layout = workspace.packages(repository)
    code = carried.read_code(workspace.root)
    graph = examined.graph.to_dict() if examined.graph else {}
    built = build.build(examined.files, code, LayoutStore(layout), repository, graph=graph)
    _tell(workspace, 3)
    facts |= {
        "package_digest": built.digest,
        "runtime_version": code.set_digest,
        "layout": layout.relative_to(workspace.home).as_posix(),
    }
    return conclude(STAGE, f"{repository}@{built.digest}", examined.findings, facts=facts)


def _tell(workspace: Workspace, done: int) -> None:
    workspace.progress(Progress(STAGE, done, _STEPS, "steps"))
