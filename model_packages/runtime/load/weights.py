"""Stage 2: are the weight files there, readable, and mapped without a copy?"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

from contracts.base.errors import InputError
from model_packages.format import layout


def survey(folder: Path) -> tuple[int, dict[str, Any]]:
    """Map the graph and its external weight data, and return their bytes together.

    Raises:
        InputError: If the graph is missing, empty or unreadable.
    """
    sizes = {}
    for name in (layout.GRAPH, layout.WEIGHTS):
        path = folder / name
        if name == layout.GRAPH or path.exists():
            sizes[name] = _mapped_bytes(path)
    total = sum(sizes.values())
    return total, {"files": sizes, "bytes": total, "external": layout.WEIGHTS in sizes}


def _mapped_bytes(path: Path) -> int:
    try:
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return len(data)
    except (OSError, ValueError) as err:  # mmap refuses an empty file with ValueError
        raise InputError(
            f"weight file cannot be mapped: {err}",
            location=str(path),
            remedy="Fetch the package again from the registry.",
        ) from err
