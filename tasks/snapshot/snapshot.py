"""Makes the bundle of a definition from named batches, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from contracts.base import clock, failpoint, provenance
from contracts.base.errors import DigestMismatch, InputError, RefusedError
from contracts.base.report import Report, conclude
from contracts.catalog import Catalog
from contracts.features import declaration, store
from contracts.features.definition import FeatureDefinition
from contracts.features.inputs import InputBatch, InputData, InputFile
from contracts.features.store import FeatureVersion
from contracts.sources import files as sources
from contracts.sources.interface import Batch
from contracts.terms import Contract
from tasks import reuse
from tasks.snapshot.window import PUBLISHED
from tasks.workspace import Workspace

STAGE = "snapshot"
_AREAS = ("tasks/snapshot",)


def snapshot(
    workspace: Workspace,
    definition_name: str,
    batches: Mapping[str, Sequence[str]],
    as_of: datetime,
    verdicts: Sequence[Report] | None = None,
) -> Report:
    """Freeze the features of named batches as a bundle, unless that has been done.

    Args:
        workspace: Where sources and bundles are.
        definition_name: Name of the feature definition.
        batches: Names of batches by source, for every source the definition reads.
        as_of: Logical time of the data; its UTC date is part of the version.
        verdicts: Reports of the validate stage. If given, every batch must have been accepted,
            and of a batch with rows in quarantine only the accepted rows are read. None reads
            batches as they were delivered.

    Returns:
        A report whose facts name the feature version, its root, rows and everything it was made of.

    Raises:
        InputError: If the sources given are not those of the definition, or a batch had not been
            delivered by ``as_of``.
        RefusedError: If a batch was not accepted.
        ContractInvalid: If a file has another schema than its contract promises.
        OverwriteRefused: If other content has been published under the same version.
        DigestMismatch: If the version was published before and has been damaged since.
        SourceUnavailable: If a batch is missing or cannot be read.
    """
    definition = declaration.load(workspace.root / PUBLISHED, definition_name)
    opened = _open(workspace, definition, batches, verdicts)
    _refuse_future(opened, as_of)
    data = {name: _input(workspace, definition, name, opened[name]) for name in opened}
    inputs = {
        "definition": definition.digest,
        "as_of": clock.to_text(as_of),
        "data": {
            name: [item.contract, item.schema_hash, [[b.name, b.digest] for b in item.ordered]]
            for name, item in data.items()
        },
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: _make(workspace, definition, data, opened, as_of),
        areas=_AREAS,
        exists=lambda report: _whole(workspace, report),
    )


def _open(
    workspace: Workspace,
    definition: FeatureDefinition,
    batches: Mapping[str, Sequence[str]],
    verdicts: Sequence[Report] | None,
) -> dict[str, list[Batch]]:
    expected = {item.source for item in definition.inputs}
    if set(batches) != expected:
        raise InputError(
            "sources do not fit the feature definition",
            expected=", ".join(sorted(expected)),
            found=", ".join(sorted(batches)),
            location=definition.name,
        )
    catalog = Catalog(workspace.root / PUBLISHED)
    return {
        item.name: [
            sources.open_batch(workspace.sources, catalog.load(item.contract), name)
            if verdicts is None
            else _accepted(workspace, catalog.load(item.contract), name, verdicts)
            for name in batches[item.source]
        ]
        for item in definition.inputs
    }


def _accepted(
    workspace: Workspace, contract: Contract, name: str, verdicts: Sequence[Report]
) -> Batch:
    """Return what the validate stage let through of a batch."""
    subject = f"{contract.identity}#{name}"
    found = [verdict for verdict in verdicts if verdict.subject == subject]
    accepted = found[-1].facts.get("accepted") if found else None
    if not found or found[-1].verdict != "pass" or accepted is None:
        raise RefusedError(
            "batch was not accepted",
            expected="a passed report of the validate stage",
            found=found[-1].verdict if found else "none",
            location=subject,
            remedy="Validate it, and have it delivered again if it fails.",
        )
    if accepted["folder"] is None:
        batch = sources.open_batch(workspace.sources, contract, name)
    else:
        batch = sources.read_folder(workspace.home / accepted["folder"], contract.name, name)
    if batch.digest != accepted["digest"]:
        raise DigestMismatch(
            "batch is not the one that was accepted",
            expected=accepted["digest"],
            found=batch.digest,
            location=subject,
            remedy="Validate it again.",
        )
    return batch


def _refuse_future(opened: Mapping[str, Sequence[Batch]], as_of: datetime) -> None:
    late = [
        f"{batch.source}#{batch.name}"
        for found in opened.values()
        for batch in found
        if batch.logical_time > as_of
    ]
    if late:
        raise InputError(
            "batches had not been delivered by the bundle's as-of",
            expected=f"logical times up to {clock.to_text(as_of)}",
            found=", ".join(late),
            remedy="Leave them out, or raise as-of.",
        )


def _input(
    workspace: Workspace, definition: FeatureDefinition, name: str, batches: Sequence[Batch]
) -> InputData:
    source = next(item for item in definition.inputs if item.name == name)
    contract = Catalog(workspace.root / PUBLISHED).load(source.contract)
    found = tuple(
        InputBatch(
            batch.name,
            batch.digest,
            tuple(InputFile(file.path, file.sha256) for file in batch.files),
        )
        for batch in batches
    )
    return InputData(contract.identity, contract.schema_hash, found)


def _make(
    workspace: Workspace,
    definition: FeatureDefinition,
    data: Mapping[str, InputData],
    opened: Mapping[str, Sequence[Batch]],
    as_of: datetime,
) -> Report:
    start = workspace.clock.monotonic()
    circumstances = provenance.collect(workspace.root, workspace.clock.now()).to_dict()
    lineage = {
        batch.source: {other.name: dict(other.lineage) for other in found}
        for found in opened.values()
        for batch in found[:1]
    }
    made = store.snapshot(
        definition,
        data,
        as_of=as_of,
        store=workspace.objects,
        provenance={**circumstances, "lineage": lineage},
        progress=workspace.progress,
    )
    failpoint.hit("snapshot.report.before")
    seconds = round(workspace.clock.monotonic() - start, 3)
    measurements = {"seconds": seconds, "published_before": made.unchanged}
    subject = f"{definition.name}@{made.pointer.version}"
    return conclude(STAGE, subject, [], facts=facts(made), measurements=measurements)


def facts(made: FeatureVersion) -> dict[str, Any]:
    """Return what a bundle is and was made of, as plain data."""
    manifest, pointer = made.manifest, made.pointer
    return {
        "definition": manifest.definition,
        "definition_digest": manifest.definition_digest,
        "feature_version": pointer.version,
        "root": pointer.root,
        "values": manifest.values,
        "as_of": clock.to_text(pointer.as_of),
        "rows": manifest.rows,
        "excluded_rows": manifest.excluded_rows,
        "features": [column.name for column in manifest.features],
        "label": manifest.label,
        "contracts": {item.contract: item.schema_hash for item in manifest.inputs},
        "batches": {
            item.contract.partition("@")[0]: dict(item.batches) for item in manifest.inputs
        },
        "archive": pointer.archive,
        "archive_size": pointer.size,
        "archive_sha256": pointer.sha256,
    }


def _whole(workspace: Workspace, report: Report) -> bool:
    found = workspace.objects.head(report.facts["archive"])
    return found is not None and found.etag == report.facts["archive_sha256"]
