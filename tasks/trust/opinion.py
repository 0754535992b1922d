"""A second opinion from alibi-detect, in its own environment, where it may and can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.base.errors import CaissonError
from contracts.base.progress import Reporter
from tasks import child
from tasks.trust import environment

_SCRIPT = Path(__file__).with_name("outliers.py")
_AGREE = 0.05  # p-values: ours is the limit law, theirs exact for small samples
_WALL_S = 90.0


def ask(
    python: Path | None,
    halves: list[str],
    alarms: Mapping[str, Any],
    *,
    folder: Path,
    licence_decision: str,
    level: float,
    progress: Reporter,
) -> dict[str, Any]:
    """Ask alibi-detect about the first split, and compare with our own detector.

    Args:
        python: Interpreter of its environment; None if it is not installed.
        halves: The two halves, as files.
        alarms: What our detector found, as plain data.
        folder: An existing folder for its request and answer.
        licence_decision: Why it may run; empty if nobody decided so.
        level: Level before correction for the number of columns.
        progress: Who hears of its progress.

    Returns:
        ``status`` ``asked`` with what it said, or ``skipped`` with the ``reason``. A failure of
        the other library is a skip with its words, never a verdict on the package.
    """
    if not licence_decision:
        return _skipped("no licence decision allows alibi-detect here; our detector ran alone")
    if python is None:
        return _skipped(f"environment missing; build it with python -m {environment.__name__}")
    if not alarms["inputs"]:
        return _skipped("the model takes no numbers")
    request = {"reference": halves[0], "test": halves[1], "level": level}
    try:
        answer = child.run(
            [str(python), "-I", str(_SCRIPT)],
            request,
            folder=folder,
            limits=child.Limits(wall_s=_WALL_S, memory_bytes=4 * 2**30),
            progress=progress,
            environment={"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except CaissonError as err:
        return _skipped(f"alibi-detect could not be asked: {err.message[:300]}")
    theirs = dict(zip(alarms["inputs"], answer["p_values"], strict=True))
    gap = max(abs(alarms["p_values"][name] - value) for name, value in theirs.items())
    return {
        "status": "asked",
        "reason": "",
        "detector": f"alibi-detect {answer['version']} KSDrift",
        "licence_decision": licence_decision,
        "is_drift": answer["is_drift"],
        "level": answer["level"],
        "p_values": {name: round(value, 6) for name, value in theirs.items()},
        "largest_gap": round(gap, 6),
        "agrees": gap <= _AGREE,
    }


def _skipped(reason: str) -> dict[str, Any]:
    return {"status": "skipped", "reason": reason}
