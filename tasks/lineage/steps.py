"""Lineage as tasks of a flow: what a release logs, and views brought in line with the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.base.digest import Digest
from contracts.base.errors import InputError
from contracts.base.report import Report, conclude
from model_packages.oci.reference import PackageRef
from tasks.engine import stage
from tasks.ledger.store import Ledger
from tasks.lineage import bundles, openlineage
from tasks.lineage.record import describe
from tasks.lineage.store import Store
from tasks.workspace import Workspace

STAGE = "lineage"


@stage(STAGE)
def record_lineage(workspace: Workspace, package: PackageRef, reports: Sequence[Report]) -> Report:
    """Log a registered release in MLflow and as an OpenLineage event, and set its aliases."""
    ledger = Ledger(workspace.ledger_path, workspace.clock)
    candidates = ledger.records("candidate", package.digest)
    if not candidates:
        raise InputError(
            "package is not registered",
            found=str(package),
            remedy="Register it first: `caisson release`.",
        )
    candidate = candidates[-1]
    version = str(candidate.body["binding"]["feature_version"])
    release = describe(candidate, bundles.manifest_of(workspace.objects, version), reports)
    openlineage.emit(workspace.reports / "openlineage.jsonl", release)
    store = Store(workspace)
    logged = store.log(release)
    changed = _reconcile(ledger, store, release.model)
    facts = {**package.to_dict(), "model": release.model, "sources": len(release.sources)}
    measurements = {"run_id": logged["run_id"], "version": logged["version"], "aliases": changed}
    if logged["unchanged"] and not changed:
        measurements["unchanged"] = True
    return conclude(STAGE, str(package), [], facts=facts, measurements=measurements)


@stage("reconcile")
def reconcile_lineage(workspace: Workspace, model: str) -> Report:
    """Make MLflow's aliases of a model say what the ledger says; for after deploy and rollback."""
    ledger = Ledger(workspace.ledger_path, workspace.clock)
    changed = _reconcile(ledger, Store(workspace), model)
    measurements = {"aliases": changed} if changed else {"unchanged": True}
    return conclude("reconcile", model, [], measurements=measurements)


def _reconcile(ledger: Ledger, store: Store, model: str) -> int:
    ours = [record for record in ledger.records("candidate") if record.body["model"] == model]
    newest = Digest(ours[-1].subject) if ours else None
    pointers = [pointer for pointer in ledger.pointers() if pointer.model == model]
    return store.reconcile(model, newest, pointers)
