"""Judges the two published bundles behind a model before it is released.

``review`` asks whether what the model learned from may be used: do the contracts of that time still
stand, and was the model judged on later data that it had not learned from? ``verify`` asks whether
the bundles are still what was published, cell by cell. Each fails for its own reason only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contracts.base.errors import BundleInvalid, ContractInvalid, InputError, IntegrityError
from contracts.base.report import Finding, Report, conclude
from contracts.catalog import Catalog
from contracts.features import pointer, reader
from contracts.features.bundle import BundleManifest
from contracts.objects.interface import ObjectMissing
from tasks.snapshot.window import PUBLISHED
from tasks.workspace import Workspace

REVIEW = "validate"
VERIFY = "snapshot"


def review(workspace: Workspace, definition: str, training: str, holdout: str) -> Report:
    """Judge whether the data a model learned from and was judged on may be used.

    Args:
        workspace: Where bundles are.
        definition: Name of the feature definition.
        training: Feature version the model learned from.
        holdout: Feature version it was judged on.

    Raises:
        ObjectMissing: If a version is not published.
        BundleInvalid: If a bundle's manifest cannot be read.
        DigestMismatch: If a bundle's manifest was changed.
    """
    learned, judged = (
        reader.read_manifest(workspace.objects, pointer.read(workspace.objects, definition, one))
        for one in (training, holdout)
    )
    findings = [
        *_contracts(workspace, learned),
        *_contracts(workspace, judged),
        *_pair(learned, judged),
    ]
    facts = {
        "definition": definition,
        "feature_version": training,
        "holdout_version": holdout,
        "contracts": {item.contract: item.schema_hash for item in learned.inputs},
        "batches": {item.contract.partition("@")[0]: dict(item.batches) for item in learned.inputs},
    }
    return conclude(REVIEW, f"{definition}@{training}", findings, facts=facts)


def verify(workspace: Workspace, definition: str, training: str, holdout: str) -> Report:
    """Verify every cell of the bundles a model learned from and was judged on.

    Args:
        workspace: Where bundles are.
        definition: Name of the feature definition.
        training: Feature version the model learned from.
        holdout: Feature version it was judged on.

    Raises:
        ObjectMissing: If a version is not published or its archive is gone.
    """
    start = workspace.clock.monotonic()
    findings: list[Finding] = []
    facts: dict[str, Any] = {"definition": definition}
    for role, version in (("training", training), ("holdout", holdout)):
        try:
            found = reader.open_version(workspace.objects, definition, version)
        except ObjectMissing:
            raise
        except (IntegrityError, BundleInvalid) as err:
            findings.append(_finding("bundle.damaged", definition, version, str(err), err.remedy))
        else:
            facts[role] = {"version": version, "root": found.root, "rows": found.manifest.rows}
    seconds = round(workspace.clock.monotonic() - start, 3)
    subject = f"{definition}@{training}"
    return conclude(VERIFY, subject, findings, facts=facts, measurements={"seconds": seconds})


def _contracts(workspace: Workspace, manifest: BundleManifest) -> Iterator[Finding]:
    catalog = Catalog(workspace.root / PUBLISHED)
    for item in manifest.inputs:
        try:
            contract = catalog.load(item.contract)
        except (InputError, ContractInvalid) as err:
            yield _finding(
                "bundle.contract-unknown",
                manifest.definition,
                f"{manifest.version}: {item.contract}",
                f"the bundle was made under a contract that cannot be read: {err}",
                "Publish the contract again, or make a new bundle.",
            )
            continue
        if contract.schema_hash != item.schema_hash:
            yield _finding(
                "bundle.contract-changed",
                manifest.definition,
                f"{manifest.version}: {item.contract}",
                f"expected schema {item.schema_hash}, the contract now says {contract.schema_hash}",
                "A published contract never changes; restore it, or make a new bundle.",
            )


def _pair(training: BundleManifest, holdout: BundleManifest) -> Iterator[Finding]:
    subject, location = training.definition, holdout.version
    if training.definition_digest != holdout.definition_digest:
        yield _finding(
            "bundle.definition-differs",
            subject,
            location,
            "the hold-out was computed by another definition than the training bundle",
            "Make both bundles with one definition.",
        )
    shared = set(training.spine.batches) & set(holdout.spine.batches)
    if shared:
        names = ", ".join(sorted(name for name, _ in shared))
        yield _finding(
            "bundle.holdout-overlaps",
            subject,
            location,
            f"batches are in training and hold-out: {names}",
            "Judge the model on batches it has not learned from.",
        )
    if holdout.as_of <= training.as_of:
        yield _finding(
            "bundle.holdout-earlier",
            subject,
            location,
            f"expected a hold-out from after {training.as_of:%Y-%m-%d}, "
            f"got {holdout.as_of:%Y-%m-%d}",
            "Judge the model on data from after what it learned from.",
        )


def _finding(rule: str, subject: str, location: str, message: str, remedy: str) -> Finding:
    return Finding(rule, subject, location, "high", message, remedy)
