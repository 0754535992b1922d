"""Compliance levels: L1 basically usable, L2 production ready, L3 financial grade.

A manifest *claims* a level; the audit says which one is *achieved*. What each level demands is
the rule table of ``tasks/compliance``.
"""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["L1", "L2", "L3"]

LEVELS: tuple[Level, ...] = get_args(Level)
MEANING: dict[Level, str] = {
    "L1": "basically usable",
    "L2": "production ready",
    "L3": "financial grade",
}


def meets(achieved: Level | None, required: Level) -> bool:
    """Whether an achieved level is at least the required one; None is below all."""
    return achieved is not None and LEVELS.index(achieved) >= LEVELS.index(required)


def up_to(level: Level) -> tuple[Level, ...]:
    """Return the levels whose demands a level includes, lowest first."""
    return LEVELS[: LEVELS.index(level) + 1]
