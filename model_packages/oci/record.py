"""What the image's configuration says about the package inside it (SPEC.md, section 8).

The record lists every file with its digest, so a person or program can judge a package without
fetching weights. It is a field of the image configuration, which the package digest covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.base import canonical
from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from model_packages.format import inventory as inventories
from model_packages.format.inventory import FileEntry

FORMAT_VERSION = 0
FIELD = "dev.caisson.package"


@dataclass(frozen=True)
class PackageRecord:
    """The table of contents of a package.

    Attributes:
        name: The model's name.
        version: The model's version.
        set_digest: Digest of the files under ``/model``.
        files: Those files, sorted by path.
        runtime_digest: Digest of the code under ``/runtime``.
        runtime_files: That code, sorted by path.
        runtime_api: Which runtimes can load it.
        graph: Facts of the ONNX graph, as ``model_packages.graph`` gave them.
    """

    name: str
    version: str
    set_digest: Digest
    files: tuple[FileEntry, ...]
    runtime_digest: Digest
    runtime_files: tuple[FileEntry, ...]
    runtime_api: int
    graph: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "format_version": FORMAT_VERSION,
            "name": self.name,
            "version": self.version,
            "set_digest": self.set_digest,
            "files": [entry.to_dict() for entry in self.files],
            "runtime_digest": self.runtime_digest,
            "runtime_files": [entry.to_dict() for entry in self.runtime_files],
            "runtime_api": self.runtime_api,
            "graph": dict(self.graph),
        }

    def dumps(self) -> bytes:
        """Return the canonical bytes of the record, as they lie beside an unpacked package."""
        return canonical.dumps(self.to_dict()) + b"\n"

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "") -> PackageRecord:
        """Read plain data back.

        Raises:
            InputError: If it is malformed or its digests do not follow from its files.
        """
        known = {*cls.__dataclass_fields__, "format_version"}
        if not isinstance(data, Mapping) or set(data) != known:
            raise InputError("not a package record", location=where)
        if data["format_version"] != FORMAT_VERSION:
            raise InputError("unknown package format", expected="format_version 0", location=where)
        for name, kind in (
            ("name", str),
            ("version", str),
            ("runtime_api", int),
            ("graph", Mapping),
        ):
            if not isinstance(data[name], kind):
                raise InputError(f"{name} is malformed", location=where)
        return cls(
            name=data["name"],
            version=data["version"],
            set_digest=digests.parse(data["set_digest"], where=where),
            files=_entries(data["files"], data["set_digest"], where),
            runtime_digest=digests.parse(data["runtime_digest"], where=where),
            runtime_files=_entries(data["runtime_files"], data["runtime_digest"], where),
            runtime_api=data["runtime_api"],
            graph=dict(data["graph"]),
        )


def _entries(data: Any, promised: Digest, where: str) -> tuple[FileEntry, ...]:
    if not isinstance(data, list) or len(data) > inventories.MOST_FILES:
        raise InputError("not a list of files", location=where)
    entries = tuple(inventories.entry_from_dict(item, where=where) for item in data)
    paths = [entry.path for entry in entries]
    if paths != sorted(set(paths)):
        raise InputError("files repeat or are out of order", location=where)
    if inventories.set_digest(entries) != promised:
        raise InputError("digest does not follow from the files", location=where)
    return entries
