"""Lists and shows feature versions, without Prefect, DuckDB or pyarrow."""

from __future__ import annotations

from typing import Any

from contracts.base import canonical, clock, digest
from contracts.features import archive, declaration, pointer, reader
from contracts.features.pointer import Pointer
from tasks.snapshot.window import PUBLISHED
from tasks.workspace import Workspace

_LIMIT = 2**20


def definitions(workspace: Workspace) -> list[str]:
    """Return the names of all published feature definitions."""
    return declaration.names(workspace.root / PUBLISHED)


def versions(workspace: Workspace, definition: str = "") -> list[dict[str, Any]]:
    """Return the published versions of one definition, or of all, oldest first."""
    return [_row(item) for item in pointer.published(workspace.objects, definition)]


def version(workspace: Workspace, definition: str, feature_version: str) -> dict[str, Any]:
    """Return what a version holds and what it was made of.

    The archive's digest and the root are verified; cells are hashed again by those who read them.

    Raises:
        ObjectMissing: If the version is not published.
        DigestMismatch: If the archive was changed.
    """
    store = workspace.objects
    found = pointer.read(store, definition, feature_version)
    data = store.get(found.archive, limit=archive.LIMIT)
    digest.require(data, found.sha256, where=found.archive)
    manifest = reader.read_manifest(store, found)
    beside = f"{found.archive.rpartition('/')[0]}/provenance.json"
    provenance = store.get(beside, limit=_LIMIT) if store.head(beside) else b"{}"
    return {
        **_row(found),
        "values": manifest.values,
        "definition_digest": manifest.definition_digest,
        "excluded_rows": manifest.excluded_rows,
        "columns": [
            {"name": item.name, "type": item.type, "role": item.role, "kind": item.kind}
            for item in manifest.columns
        ],
        "inputs": [
            {
                "contract": item.contract,
                "schema_hash": item.schema_hash,
                "batches": dict(item.batches),
            }
            for item in manifest.inputs
        ],
        "provenance": canonical.loads(provenance, where=beside),
    }


def _row(item: Pointer) -> dict[str, Any]:
    return {
        "definition": item.definition,
        "version": item.version,
        "as_of": clock.to_text(item.as_of),
        "rows": item.rows,
        "root": item.root,
        "archive": item.archive,
        "size": item.size,
    }
