"""What a target serves, on disk, so that a restarted worker serves the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest as digests
from contracts.base import failpoint, files
from contracts.base.errors import InputError
from model_packages.runtime.load.model import PackageSource

FILE = "route.json"


@dataclass(frozen=True)
class Record:
    """The packages that matter to a target.

    Attributes:
        live: The package that serves.
        previous: The one before it, which ``restore`` returns to.
    """

    live: PackageSource | None = None
    previous: PackageSource | None = None

    def promoted(self, source: PackageSource) -> Record:
        """Return the record after a package went live."""
        if self.live is not None and self.live.package_digest == source.package_digest:
            return Record(source, self.previous)
        return Record(source, self.live)


def load(home: Path) -> Record:
    """Read the record; empty if there is none.

    Raises:
        InputError: If it is malformed.
    """
    path = home / FILE
    if not path.exists():
        return Record()
    data = files.read_json(path)
    if not isinstance(data, dict) or data.get("format_version") != 0:
        raise InputError("not a route record", expected="format_version 0", location=str(path))
    return Record(
        _source(home, data.get("live"), str(path)), _source(home, data.get("previous"), str(path))
    )


def save(home: Path, record: Record) -> None:
    """Write the record, atomically."""
    failpoint.hit("runtime.route.before")
    files.write_json(
        home / FILE,
        {
            "format_version": 0,
            "live": _plain(home, record.live),
            "previous": _plain(home, record.previous),
        },
    )
    failpoint.hit("runtime.route.after")


def inside(home: Path, folder: Path) -> Path:
    """Return a package folder if it lies in the target's home.

    Raises:
        InputError: If it lies elsewhere or is no folder.
    """
    resolved = (home / folder).resolve()
    if not resolved.is_relative_to(home.resolve()) or not resolved.is_dir():
        raise InputError(
            "package folder is not in the target's home",
            expected=f"a folder under {home}",
            found=str(folder),
            remedy="Unpack the package into the target first.",
        )
    return resolved


def _plain(home: Path, source: PackageSource | None) -> dict[str, str] | None:
    if source is None:
        return None
    return {
        "folder": str(source.folder.resolve().relative_to(home.resolve())),
        "package_digest": source.package_digest,
        "set_digest": source.set_digest,
    }


def _source(home: Path, data: Any, where: str) -> PackageSource | None:
    if data is None:
        return None
    if not isinstance(data, Mapping) or not isinstance(data.get("folder"), str):
        raise InputError("not a package", found=repr(data)[:100], location=where)
    return PackageSource(
        folder=home / data["folder"],
        package_digest=digests.parse(data.get("package_digest", ""), where=where),
        set_digest=digests.parse(data.get("set_digest", ""), where=where),
    )
