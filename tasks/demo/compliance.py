"""Plants a package without a licence; only the compliance stage can tell."""

from __future__ import annotations

from pathlib import Path

from contracts.base import canonical, files


def unlicensed(source: Path) -> Path:
    """Take the licence out of a package's manifest.

    Args:
        source: Folder of the package source; its manifest is changed.

    Returns:
        The folder.
    """
    path = source / "manifest.json"
    manifest = files.read_json(path)
    manifest.pop("license", None)
    files.write_atomic(path, canonical.dumps(manifest) + b"\n")
    return source
