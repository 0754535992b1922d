"""How much memory there is, how much is used, and whether a model fits before it is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from contracts.base.errors import OutOfMemory

MIB = 2**20
# A graph is held once by the file and once by its packed weights; measured 2.0 to 2.1.
_COPIES_OF_WEIGHTS = 2.2
_STATUS = Path("/proc/self/statm")
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Prediction:
    """Whether a model fits.

    Attributes:
        needed: Bytes it is expected to take.
        allowed: Bytes its settings allow.
        available: Bytes the machine or container has left.
    """

    needed: int
    allowed: int
    available: int


def resident() -> int:
    """Return the bytes of memory this process holds."""
    pages = int(_STATUS.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def available(*, meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int:
    """Return the bytes that can still be taken: of the machine, or of the container if less."""
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) * 1024
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    return free if limit is None or used is None else max(0, min(free, limit - used))


def predict(weights: int, declared_mb: int, allowed_mb: int, free: int) -> Prediction:
    """Predict the memory of a model and refuse one that cannot fit.

    Args:
        weights: Bytes of its weight files.
        declared_mb: What its manifest says it needs, in MiB; 0 if it says nothing.
        allowed_mb: What its settings allow, in MiB.
        free: What is available, in bytes.

    Raises:
        OutOfMemory: If it needs more than is allowed or available.
    """
    needed = max(int(weights * _COPIES_OF_WEIGHTS), declared_mb * MIB)
    prediction = Prediction(needed, allowed_mb * MIB, free)
    if needed > prediction.allowed:
        raise OutOfMemory(
            "model needs more memory than its settings allow",
            expected=f"at most {allowed_mb} MiB",
            found=f"{needed // MIB} MiB predicted",
            location="config.yaml memory_mb",
            remedy="Raise memory_mb, or make the model smaller.",
        )
    if needed > free:
        raise OutOfMemory(
            "model needs more memory than is left",
            expected=f"at most {free // MIB} MiB",
            found=f"{needed // MIB} MiB predicted",
            remedy="Unload another slot, or use a larger machine.",
        )
    return prediction


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such controller, or "max"
        return None
