"""What each compliance level demands, as data, and whether it is met.

A requirement's evidence is a rule of this area (``rule:<id>``), the verdict of another stage
(``stage:<name>``), or nothing yet (``none:<why>``). Not evaluated is never a pass: from L2 on it
counts as a fail, at L1 it is reported and open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contracts.base import files
from contracts.base.errors import InputError
from contracts.base.report import Report
from model_packages.format.levels import LEVELS, Level, up_to

Status = Literal["pass", "fail", "waived", "not-evaluated", "not-applicable"]

TABLE = Path(__file__).with_name("requirements.json")
_FIELDS = {"id", "level", "title", "evidence", "remedy"}
_VERDICTS: Mapping[str, Status] = {"pass": "pass", "fail": "fail", "skip": "not-evaluated"}


@dataclass(frozen=True)
class Outcome:
    """What a rule says about a package.

    Attributes:
        status: Whether the rule holds.
        reason: Figures, or why it was not evaluated or does not apply.
        problems: Where it does not hold, and how: (location, message).
        evidence: Plain data that proves it.
    """

    status: Status
    reason: str = ""
    problems: tuple[tuple[str, str], ...] = ()
    evidence: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Requirement:
    """One line of the level table.

    Attributes:
        id: Stable id, such as ``LIC-1``.
        level: The level that brings it in.
        title: What it demands.
        evidence: Where its status comes from.
        remedy: What to do if it is not met.
    """

    id: str
    level: Level
    title: str
    evidence: str
    remedy: str


@dataclass(frozen=True)
class Standing:
    """A requirement and whether it is met.

    Attributes:
        requirement: The requirement.
        status: Its status.
        reason: Why.
    """

    requirement: Requirement
    status: Status
    reason: str

    @property
    def met(self) -> bool:
        """Whether it holds a package back from its level."""
        if self.status == "not-evaluated":
            return self.requirement.level == "L1"
        return self.status != "fail"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self.requirement), "status": self.status, "reason": self.reason}


def load(path: Path = TABLE) -> tuple[Requirement, ...]:
    """Read the level table.

    Raises:
        InputError: If it is malformed or repeats an id.
    """
    data = files.read_json(path)
    rows = data.get("requirements") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(r, dict) and set(r) == _FIELDS for r in rows
    ):
        raise InputError("level table is malformed", location=str(path))
    table = tuple(Requirement(**row) for row in rows)
    ids = [item.id for item in table]
    kinds = {item.evidence.partition(":")[0] for item in table}
    if len(set(ids)) != len(ids) or not kinds <= {"rule", "stage", "none"}:
        raise InputError("level table repeats an id or has unknown evidence", location=str(path))
    if any(item.level not in LEVELS for item in table):
        raise InputError("level table names an unknown level", location=str(path))
    return table


def stand(
    table: Sequence[Requirement],
    outcomes: Mapping[str, Outcome],
    reports: Mapping[str, Report],
) -> tuple[Standing, ...]:
    """Return the status of every requirement.

    Args:
        table: The level table.
        outcomes: What the rules of this area say, by id.
        reports: What the other stages say, by name.
    """
    return tuple(Standing(item, *_status(item, outcomes, reports)) for item in table)


def achieved(standings: Sequence[Standing]) -> Level | None:
    """Return the highest level of which, and of all below, every requirement is met."""
    best: Level | None = None
    for level in LEVELS:
        mine = [item for item in standings if item.requirement.level == level]
        if not mine or not all(item.met for item in mine):
            break
        best = level
    return best


def lacking(standings: Sequence[Standing], level: Level) -> tuple[Standing, ...]:
    """Return what keeps a package from a level."""
    levels = up_to(level)
    return tuple(item for item in standings if item.requirement.level in levels and not item.met)


def _status(
    item: Requirement, outcomes: Mapping[str, Outcome], reports: Mapping[str, Report]
) -> tuple[Status, str]:
    kind, _, name = item.evidence.partition(":")
    if kind == "rule":
        outcome = outcomes[name]
        return outcome.status, outcome.reason
    if kind == "stage":
        report = reports.get(name)
        if report is None:
            return "not-evaluated", f"the {name} stage did not run"
        reason = report.reason or f"{name} report {report.digest}"
        return _VERDICTS[report.verdict], reason
    return "not-evaluated", name
