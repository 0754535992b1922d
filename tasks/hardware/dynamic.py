"""The dynamic stage: runs a package on the device this machine is, in a process of its own."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_packages.format.settings import Settings
from tasks import child
from tasks.hardware import probe as probe_program
from tasks.hardware.matrix import Cell
from tasks.hardware.profiles import Profile
from tasks.workspace import Workspace

_MACHINES = {"x86_64": "cpu-x86-64", "amd64": "cpu-x86-64"}


@dataclass(frozen=True)
class ProbeOptions:
    """How long and with what the dynamic stage measures.

    Attributes:
        seconds: Seconds for each batch size.
        wall_s: Seconds until the process is ended.
        memory_mb: Memory of the process beside what the package declares.
        backend: Runtime backend to open the graph with.
    """

    seconds: float = 0.4
    wall_s: float = 120.0
    memory_mb: int = 2048
    backend: str = "onnx"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for the key of a re-run."""
        return dict(vars(self))


def here() -> str:
    """Return the profile this machine's processor belongs to; empty if there is none."""
    return _MACHINES.get(platform.machine().lower(), "")


def identity() -> str:
    """Return what this machine is, so that another machine measures again."""
    return f"{platform.machine()} {probe_program.processor()}"


def probe(
    workspace: Workspace, folder: Path, settings: Settings, options: ProbeOptions
) -> dict[str, Any]:
    """Measure a package on this machine.

    Args:
        workspace: Where the process works.
        folder: The ``/model`` tree.
        settings: The package's limits.
        options: How to measure.

    Returns:
        The figures of ``probe.py``.

    Raises:
        RuntimeFault: If the model cannot be opened or run, or the process hits a limit.
    """
    request = {
        "folder": str(folder),
        "batch_sizes": batch_sizes(settings.max_batch_size),
        "seconds": options.seconds,
        "backend": options.backend,
    }
    limits = child.Limits(
        wall_s=options.wall_s,
        cpu_s=int(options.wall_s * max(1, settings.threads)),
        memory_bytes=(settings.memory_mb + options.memory_mb) * 2**20,
    )
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workspace.tmp, prefix="hardware-") as place:
        return child.run(
            [sys.executable, "-m", "tasks.hardware.probe"],
            request,
            folder=Path(place),
            limits=limits,
            progress=workspace.progress,
            environment={"PYTHONPATH": str(workspace.root), "PYTHONDONTWRITEBYTECODE": "1"},
        )


def batch_sizes(largest: int) -> list[int]:
    """Return 1, the largest batch, and powers of eight between."""
    sizes = {1, largest}
    size = 8
    while size < largest:
        sizes.add(size)
        size *= 8
    return sorted(sizes)


def cells(profile: Profile, figures: Mapping[str, Any], settings: Settings) -> tuple[Cell, ...]:
    """Turn figures into measured cells; only whether they hold is part of the verdict."""
    curve = figures["curve"]
    slowest = max(point["p99_ms"] for point in curve)
    points = ", ".join(f"{point['p50_ms']:.2g} ms at {point['batch']}" for point in curve)
    memory = figures["memory_mb"]
    return (
        Cell(
            profile.name,
            "operators",
            "measured",
            True,
            f"loads and runs on {profile.providers[0]}",
            f"opened in {figures['open_s']:.2f} s on {figures['cpu']}",
        ),
        Cell(
            profile.name,
            "memory",
            "measured",
            memory <= profile.usable_mb,
            f"within {profile.usable_mb:,} MB usable",
            f"{memory:.1f} MB beside the library",
        ),
        Cell(
            profile.name,
            "latency",
            "measured",
            slowest <= settings.timeout_ms,
            f"99th percentile of every batch size within timeout_ms {settings.timeout_ms:,}",
            f"median {points}",
        ),
        Cell(
            profile.name,
            "cold start",
            "measured",
            True,
            "library, graph and first answer",
            f"{figures['cold_start_s']:.2f} s",
        ),
    )
