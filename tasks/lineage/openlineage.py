"""OpenLineage events of a release, appended to a file that any collector can read.

One event a release: its inputs are the batches, the bundle and the contract, its output the
package. The run id follows from the ledger record, so logging a release again adds nothing.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from contracts.base import canonical, failpoint, files
from contracts.base.errors import UnavailableError
from tasks.lineage.record import Release, Source

_PRODUCER = "https://caisson.dev/lineage"
_RUN_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSION_SCHEMA = "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json"
_NAMESPACE = "caisson"


def event(release: Release) -> dict[str, Any]:
    """Return the event that says a release was made."""
    return {
        "eventType": "COMPLETE",
        "eventTime": release.at,
        "producer": _PRODUCER,
        "schemaURL": _RUN_SCHEMA,
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, release.ledger_digest))},
        "job": {"namespace": _NAMESPACE, "name": f"release.{release.model}"},
        "inputs": [_dataset(source) for source in release.sources],
        "outputs": [
            {
                "namespace": _NAMESPACE,
                "name": f"package/{release.model}",
                "facets": _facets(release.package_digest),
            }
        ],
    }


def emit(path: Path, release: Release) -> bool:
    """Append the event of a release to a file unless it is there; return whether it was added.

    Raises:
        UnavailableError: If the file cannot be written.
    """
    content = event(release)
    line = canonical.dumps(content) + b"\n"
    with files.locked(path.with_name(f".{path.name}.lock")):
        try:
            written = path.read_bytes() if path.exists() else b""
            if _has(written, content["run"]["runId"]):
                return False
            failpoint.hit("lineage.event.before")
            # A line that a killed writer left unfinished is ended, not continued.
            torn = b"" if not written or written.endswith(b"\n") else b"\n"
            with path.open("ab") as stream:
                stream.write(torn + line)
            failpoint.hit("lineage.event.after")
        except OSError as err:
            raise UnavailableError(
                f"lineage events cannot be written: {err.strerror}", location=str(path)
            ) from err
    return True


def _has(written: bytes, run_id: str) -> bool:
    lines = written.split(b"\n")[:-1]
    return any(f'"runId":"{run_id}"'.encode() in line and line.endswith(b"}") for line in lines)


def _dataset(source: Source) -> dict[str, Any]:
    return {
        "namespace": _NAMESPACE,
        "name": source.name,
        "facets": _facets(source.digest),
        "inputFacets": {},
    }


def _facets(version: str) -> dict[str, Any]:
    return {
        "version": {
            "_producer": _PRODUCER,
            "_schemaURL": _VERSION_SCHEMA,
            "datasetVersion": version,
        }
    }
