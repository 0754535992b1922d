"""Gathers what the audit judges: the unpacked tree, its contracts, the libraries it runs on."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.base.errors import InputError
from contracts.base.report import Report
from contracts.catalog import Catalog
from model_packages.format import inventory
from model_packages.format.manifest import Manifest
from model_packages.oci.reference import PackageRef
from model_packages.oci.unpack import open_package
from tasks.compliance import closure
from tasks.compliance.rule import Subject
from tasks.policy import TargetPolicy
from tasks.workspace import Workspace


def collect(
    workspace: Workspace, package: PackageRef, reports: Sequence[Report], policy: TargetPolicy
) -> Subject:
    """Open a package and gather everything a rule may look at.

    Raises:
        DigestMismatch: If the package was changed since it was built.
        RegistryUnavailable: If it is not there.
    """
    cache = workspace.objects_path / "unpacked"
    tree = open_package(workspace.packages(package.repository), package.digest, cache)
    found, _ = inventory.survey(tree.folder)
    catalog = Catalog(workspace.root / "contracts" / "published")
    return Subject(
        package=package,
        folder=tree.folder,
        files=found.entries,
        manifest=tree.manifest,
        reports={report.stage: report for report in reports},
        policy=policy,
        libraries=closure.closure(closure.ROOTS, policy.licences),
        columns=columns(tree.manifest, catalog),
    )


def columns(manifest: Manifest, catalog: Catalog) -> dict[str, dict[str, str] | None]:
    """Return the personal-data class of every column of the contracts a manifest names."""
    found: dict[str, dict[str, str] | None] = {}
    for source in manifest.data:
        if not source.contract:
            continue
        try:
            contract = catalog.load(source.contract)
        except InputError:
            found[source.contract] = None
        else:
            found[source.contract] = {item.name: item.personal_data for item in contract.columns}
    return found
