"""Rows of a benchmark: a value, its limit, and whether it kept it; never kept if not run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Limit:
    """What is measured and what it may be.

    Attributes:
        name: What is measured.
        unit: Its unit.
        most: The largest value allowed; None if it is only reported.
    """

    name: str
    unit: str
    most: float | None


@dataclass(frozen=True)
class Row:
    """One line of the result.

    Attributes:
        name: What is measured.
        value: What was measured; None if it was not run.
        unit: Its unit.
        limit: The largest value allowed; None if it is only reported.
        ok: Whether the limit was kept; None if there is none or nothing was measured.
        reason: Why it was not run, or why it is not ok.
    """

    name: str
    value: float | None
    unit: str
    limit: float | None
    ok: bool | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def judge(limit: Limit, value: float | None, reason: str = "") -> Row:
    """Return the row of a limit; ``reason`` says why there is no value."""
    if value is None:
        assert reason, f"{limit.name}: not run, and nobody says why"
        return Row(limit.name, None, limit.unit, limit.most, None, f"not run: {reason}")
    value = round(value, 3)
    if limit.most is None:
        return Row(limit.name, value, limit.unit, None, None)
    kept = value <= limit.most
    return Row(limit.name, value, limit.unit, limit.most, kept, "" if kept else "over the limit")


def status(rows: list[Row]) -> int:
    """Return the exit status: 1 if a limit was passed, 2 if one could not be measured."""
    judged = [row for row in rows if row.limit is not None]
    if any(row.value is None for row in judged):
        return 2
    return 1 if any(row.ok is False for row in judged) else 0


def machine() -> Mapping[str, Any]:
    """Return on what the measuring was done, and how busy it was at the start."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def markdown(where: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return machine and rows as they stand in infra/BENCHMARKS.md."""
    load = ", ".join(f"{value:.1f}" for value in where["load"])
    lines = [
        f"{where['processor']}, {where['cores']} cores, {where['memory_gib']} GiB, "
        f"{where['system']}, Python {where['python']}; load average at the start {load}.",
        "",
        "| measured | value | limit | kept |",
        "|---|---|---|---|",
    ]
    for row in rows:
        value = row.reason if row.value is None else f"{row.value:.2f} {row.unit}"
        limit = "" if row.limit is None else f"{row.limit:g} {row.unit}"
        kept = {True: "yes", False: "**no**", None: ""}[row.ok]
        lines.append(f"| {row.name} | {value} | {limit} | {kept} |")
    return "\n".join(lines)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()
