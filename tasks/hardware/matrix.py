"""The matrix device x check: what is known of each, and how it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["measured", "predicted", "not-run"]
Check = Literal["operators", "memory", "toolchain", "latency", "cold start"]

STATIC: tuple[Check, ...] = ("operators", "memory", "toolchain")
DYNAMIC: tuple[Check, ...] = ("latency", "cold start")
CHECKS = STATIC + DYNAMIC


@dataclass(frozen=True)
class Cell:
    """One check on one device.

    Attributes:
        device: Name of the profile.
        check: What was checked.
        status: How the answer is known.
        passed: The answer; None where nothing was run.
        reason: Why nothing was run, or what the answer rests on; without figures that vary.
        figures: Measured figures in words; they vary, so they never enter a digest.
    """

    device: str
    check: Check
    status: Status
    passed: bool | None
    reason: str
    figures: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what stays the same from run to run."""
        content = dict(vars(self))
        del content["figures"]
        return content


def not_run(device: str, reason: str, checks: Sequence[Check] = CHECKS) -> tuple[Cell, ...]:
    """Return cells that say why nothing was run."""
    return tuple(Cell(device, check, "not-run", None, reason) for check in checks)


def reaches(cells: Sequence[Cell], device: str, evidence: str) -> bool:
    """Whether a device has the evidence a policy demands, on every check.

    ``measured`` wants the dynamic checks run on the device; ``predicted`` is content with the
    static ones. Not run is neither.
    """
    mine = {cell.check: cell for cell in cells if cell.device == device}
    wanted = CHECKS if evidence == "measured" else STATIC
    if any(check not in mine or mine[check].status == "not-run" for check in wanted):
        return False
    dynamic = [mine[check] for check in DYNAMIC if check in mine]
    return evidence != "measured" or all(cell.status == "measured" for cell in dynamic)
