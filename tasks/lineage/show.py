"""Lineage both ways, read from the ledger, the reports, the bundles and the targets' logs.

``why`` goes back: from a served answer's request id, or any digest, to the data. ``impact`` goes
forward: from a contract, bundle, batch, commit or package to what runs. Neither needs Prefect or
MLflow. What a node names is looked up again; a node whose thing is gone says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from contracts.base import clock
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, InputError
from contracts.features.bundle import BundleManifest, is_version
from model_packages.runtime.record import decisions
from model_packages.runtime.record.decisions import Decision
from tasks import reuse
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger
from tasks.lineage import bundles
from tasks.lineage.tree import Node
from tasks.workspace import Workspace

_SHORTEST = 8


def why(workspace: Workspace, subject: str) -> Node:
    """Return where something came from.

    Args:
        workspace: Ledger, reports, bundles and targets.
        subject: A request id, a digest (or its first digits) of a package, package set, report or
            ledger record, or a feature version.

    Raises:
        InputError: If nothing of that name is known.
    """
    house = _House(workspace)
    if is_version(subject):
        return house.bundle(subject)
    record = house.candidate_of(subject)
    if record is not None:
        return house.package(record)
    for target, decision in house.decisions(subject):
        return house.answer(target, decision)
    raise _unknown(subject)


def impact(workspace: Workspace, subject: str) -> Node:
    """Return what came of something.

    Args:
        workspace: Ledger, bundles and targets.
        subject: A contract (``owner/source`` or with ``@version``), a feature version, a digest of
            a bundle, batch, schema or package, or a commit.

    Raises:
        InputError: If nothing on record came of it.
    """
    house = _House(workspace)
    found = [
        (record, how) for record in house.candidates if (how := house.touches(record, subject))
    ]
    if not found:
        raise _unknown(subject)
    packages = tuple(house.deployed(record) for record, _ in found)
    return Node(found[0][1], subject, children=packages)


class _House:
    """Everything the walk reads, each thing once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._ledger = Ledger(workspace.ledger_path, workspace.clock)
        self.candidates = self._ledger.records("candidate")
        self._manifests: dict[str, tuple[BundleManifest | None, str]] = {}

    def candidate_of(self, subject: str) -> Record | None:
        """Return the newest candidate that a digest, or its first digits, belongs to."""
        for record in reversed(self.candidates):
            own = [record.subject, record.digest, str(record.body["set_digest"])]
            if any(_matches(item, subject) for item in [*own, *_bound(record)["reports"].values()]):
                return record
        return None

    def decisions(self, request_id: str) -> Iterator[tuple[str, Decision]]:
        """Yield who answered a request, by target."""
        if not self._workspace.targets.is_dir():
            return
        for folder in sorted(self._workspace.targets.iterdir()):
            found = decisions.find(folder / "decisions.log", request_id)
            if found is not None:
                yield folder.name, found

    def answer(self, target: str, decision: Decision) -> Node:
        """Describe a served answer."""
        at = clock.to_text(datetime.fromtimestamp(decision.time_ms / 1000, tz=UTC))
        facts = {
            "target": target,
            "at": at,
            "status": decision.status,
            "slot": decision.slot,
            "canary": decision.canary,
        }
        record = self.candidate_of(decision.package_digest) if decision.package_digest else None
        if record is not None:
            children: tuple[Node, ...] = (self.package(record),)
        elif decision.package_digest:
            missing = "no candidate of the ledger has this digest"
            children = (Node("package", "unknown", decision.package_digest, missing=missing),)
        else:
            children = ()
        return Node("answer", decision.request_id, "", facts, children=children)

    def package(self, record: Record) -> Node:
        """Describe a package and what it was made from."""
        bound = _bound(record)
        reports = tuple(
            self._report(stage, Digest(value)) for stage, value in sorted(bound["reports"].items())
        )
        children = (
            self._entry(record),
            *reports,
            self.bundle(bound["feature_version"]),
            Node("commit", bound["git_commit"]),
        )
        return self._package(record, children)

    def deployed(self, record: Record) -> Node:
        """Describe a package and where it runs, or ran."""
        model = record.body["model"]
        children = []
        for pointer in self._ledger.pointers():
            if pointer.model != model:
                continue
            role = {pointer.digest: "live", pointer.previous: "previous"}.get(
                Digest(record.subject)
            )
            if role:
                facts = {"role": role, "record": pointer.number}
                children.append(Node("deployment", f"{model} in {pointer.target}", "", facts))
        return self._package(record, tuple(children))

    def bundle(self, version: str) -> Node:
        """Describe a feature version and the data it was computed from."""
        manifest, missing = self._manifest(version)
        if manifest is None:
            return Node("bundle", version, missing=missing)
        facts = {
            "definition": manifest.definition,
            "as_of": clock.to_text(manifest.as_of),
            "rows": manifest.rows,
            "excluded_rows": manifest.excluded_rows,
        }
        children = tuple(
            Node(
                "contract",
                item.contract,
                "",
                {"schema_hash": item.schema_hash},
                children=tuple(Node("batch", name, value) for name, value in item.batches),
            )
            for item in manifest.inputs
        )
        return Node("bundle", version, manifest.root, facts, children=children)

    def touches(self, record: Record, subject: str) -> str:
        """Return as what a subject went into a package; empty if it did not."""
        bound = _bound(record)
        if _matches(record.subject, subject) or _matches(str(record.body["set_digest"]), subject):
            return "package"
        if len(subject) >= _SHORTEST and bound["git_commit"].startswith(subject):
            return "commit"
        if bound["feature_version"] == subject:
            return "bundle"
        if _is_contract(bound["contract"], subject):
            return "contract"
        manifest, _ = self._manifest(bound["feature_version"])
        return _within(manifest, subject) if manifest else ""

    def _manifest(self, version: str) -> tuple[BundleManifest | None, str]:
        """Return a bundle's manifest, or why there is none."""
        if version not in self._manifests:
            try:
                found = bundles.manifest_of(self._workspace.objects, version)
                self._manifests[version] = (found, "" if found else "not published on this machine")
            except CaissonError as err:
                self._manifests[version] = (None, str(err))
        return self._manifests[version]

    def _package(self, record: Record, children: tuple[Node, ...]) -> Node:
        bound = _bound(record)
        facts = {
            "model": record.body["model"],
            "set_digest": record.body["set_digest"],
            "achieved_level": bound["achieved_level"],
            "contract": bound["contract"],
            "schema_hash": bound["schema_hash"],
            "feature_version": bound["feature_version"],
        }
        return Node(
            "package",
            str(record.body["model"]),
            record.subject,
            facts,
            self._absent(record),
            children,
        )

    def _absent(self, record: Record) -> str:
        """Return why a package's index is not in the registry; empty if it is."""
        layout = self._workspace.registry(str(record.body["model"]))
        blob = layout / "blobs" / "sha256" / record.subject.removeprefix("sha256:")
        return "" if blob.is_file() else "not in this home folder's registry"

    def _entry(self, record: Record) -> Node:
        facts = {"at": record.at, "kind": record.kind, "signature": record.body.get("signature")}
        return Node("record", f"ledger {record.number}", record.digest, facts)

    def _report(self, stage: str, value: Digest) -> Node:
        report = reuse.find(self._workspace, value)
        if report is None:
            return Node("report", stage, value, missing="not among this home folder's reports")
        return Node("report", stage, value, {"verdict": report.verdict, "subject": report.subject})


def _bound(record: Record) -> dict[str, Any]:
    return dict(record.body["binding"])


def _matches(value: str, subject: str) -> bool:
    digits = subject.removeprefix("sha256:")
    return len(digits) >= _SHORTEST and value.removeprefix("sha256:").startswith(digits)


def _is_contract(identity: str, subject: str) -> bool:
    return subject in (identity, identity.partition("@")[0])


def _within(manifest: BundleManifest, subject: str) -> str:
    """Return as what a subject went into a bundle; empty if it did not."""
    if _matches(manifest.root, subject):
        return "bundle"
    for item in manifest.inputs:
        if _is_contract(item.contract, subject) or _matches(item.schema_hash, subject):
            return "contract"
        named = {f"{item.contract}#{name}" for name, _ in item.batches}
        if subject in named or any(_matches(value, subject) for _, value in item.batches):
            return "batch"
    return ""


def _unknown(subject: str) -> InputError:
    return InputError(
        "nothing on record has to do with it",
        expected="a request id, a digest of at least 8 digits, a feature version or a contract",
        found=repr(subject)[:100],
        remedy="`caisson status` lists packages; answers carry the header caisson-request-id.",
    )
