"""Semantic versions (semver.org 2.0.0, without pre-release and build parts)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from contracts.base.errors import InputError

Bump = Literal["major", "minor", "patch", "none"]

_PATTERN = re.compile(r"v?(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


@dataclass(frozen=True, order=True)
class Version:
    """A version that can be compared."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """Return the version as ``1.2.3``."""
        return f"{self.major}.{self.minor}.{self.patch}"

    def bumped(self, bump: Bump) -> Version:
        """Return the next version for a kind of change."""
        if bump == "major":
            return Version(self.major + 1, 0, 0)
        if bump == "minor":
            return Version(self.major, self.minor + 1, 0)
        if bump == "patch":
            return Version(self.major, self.minor, self.patch + 1)
        return self


def parse(text: str, *, where: str = "") -> Version:
    """Read ``1.2.3`` or ``v1.2.3``.

    Raises:
        InputError: If the text is anything else.
    """
    match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(
            "not a semantic version",
            expected="three whole numbers such as 1.2.0",
            found=repr(text),
            location=where,
        )
    return Version(*(int(part) for part in match.groups()))
