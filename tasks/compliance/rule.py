"""What a rule is, and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.errors import InputError
from contracts.base.report import Report, Severity
from model_packages.format.inventory import FileEntry
from model_packages.format.levels import Level
from model_packages.format.manifest import Manifest
from model_packages.oci.reference import PackageRef
from tasks.compliance.closure import Library
from tasks.compliance.requirements import Outcome
from tasks.policy import TargetPolicy

ContractColumns = Mapping[str, Mapping[str, str] | None]


@dataclass(frozen=True)
class Subject:
    """The package under audit and everything a rule may judge it by.

    Attributes:
        package: Which package it is.
        folder: The unpacked ``/model`` tree.
        files: Its files as they are on disk, sorted by path.
        manifest: Its manifest.
        reports: What the other stages said, by name.
        policy: Demands of the target.
        libraries: What the package runs on.
        columns: By contract the personal-data class of each column; None if it cannot be found.
    """

    package: PackageRef
    folder: Path
    files: tuple[FileEntry, ...]
    manifest: Manifest
    reports: Mapping[str, Report]
    policy: TargetPolicy
    libraries: tuple[Library, ...] = ()
    columns: ContractColumns = field(default_factory=dict)

    @property
    def graph(self) -> Path:
        """The model's graph."""
        return self.folder / "model.onnx"

    def text(self, path: str, *, limit: int = 4 * 2**20) -> str | None:
        """Return a file as text; None if it is larger than the limit or not UTF-8."""
        try:
            return files.read_bounded(self.folder / path, limit).decode("utf-8")
        except (InputError, UnicodeDecodeError):
            return None


@dataclass(frozen=True)
class Rule:
    """One rule of the audit.

    Attributes:
        id: Stable id; a finding carries it as ``compliance.<id>``.
        level: The level at which it begins to block.
        title: What it demands, in one line.
        severity: How bad a breach is.
        remedy: What to do about one.
        check: Judges a package.
    """

    id: str
    level: Level
    title: str
    severity: Severity
    remedy: str
    check: Callable[[Subject], Outcome]


def held(reason: str = "", **evidence: Any) -> Outcome:
    """Say that a rule holds."""
    return Outcome("pass", reason, evidence=evidence)


def broken(problems: list[tuple[str, str]], **evidence: Any) -> Outcome:
    """Say where a rule does not hold."""
    reason = "; ".join(f"{place}: {text}" for place, text in problems[:5])
    if len(problems) > 5:
        reason = f"{reason}; and {len(problems) - 5} more"
    return Outcome("fail", reason, tuple(problems), evidence)
