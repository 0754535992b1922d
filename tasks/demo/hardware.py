"""Plants a package that needs more memory than a device has; only the hardware stage can tell."""

from __future__ import annotations

import re
from pathlib import Path

from contracts.base import canonical, files


def oversized(source: Path, *, memory_mb: int) -> Path:
    """Let a package demand more memory than a device's profile has.

    Args:
        source: Folder of the package source; its manifest and settings are changed.
        memory_mb: What it shall demand, in MiB.

    Returns:
        The folder.
    """
    path = source / "manifest.json"
    manifest = files.read_json(path)
    manifest["hardware"] = {**manifest.get("hardware", {}), "memory_mb": memory_mb}
    manifest["hardware"].setdefault("devices", ["cpu"])
    files.write_atomic(path, canonical.dumps(manifest) + b"\n")
    settings = source / "config.yaml"
    text = files.read_bounded(settings, 2**16).decode()
    changed = re.sub(r"(?m)^memory_mb:.*$", f"memory_mb: {memory_mb}", text)
    files.write_atomic(settings, changed.encode())
    return source
