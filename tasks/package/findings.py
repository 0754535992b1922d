"""Everything that is wrong with a package's source, found in one go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from contracts.base.errors import CaissonError, InputError
from contracts.base.report import Finding
from model_packages.format import cases, layout, manifest, settings
from model_packages.format.cases import Case
from model_packages.format.layout import PackageFiles
from model_packages.format.manifest import Manifest
from model_packages.format.settings import Settings
from model_packages.graph import facts as graphs
from model_packages.graph import match
from model_packages.graph.facts import GraphFacts

_Part = TypeVar("_Part")
_SUBJECT = "package source"


@dataclass
class Examined:
    """What could be read of a source, and what is wrong with it."""

    files: PackageFiles
    findings: list[Finding] = field(default_factory=list)
    manifest: Manifest | None = None
    settings: Settings | None = None
    graph: GraphFacts | None = None
    cases: tuple[Case, ...] = ()

    def note(self, rule: str, location: str, message: str, remedy: str) -> None:
        """Add a finding that blocks."""
        self.findings.append(Finding(rule, _SUBJECT, location, "high", message, remedy))


def examine(folder: Path) -> Examined:
    """Check a source tree in every way that needs no run of the model.

    Raises:
        InputError: If the folder cannot be read at all.
    """
    files, findings = layout.examine(folder)
    examined = Examined(files, findings)
    examined.manifest = _part(examined, layout.MANIFEST, manifest.load)
    examined.settings = _part(examined, layout.SETTINGS, settings.load)
    examined.graph = _part(examined, layout.GRAPH, graphs.facts)
    examined.cases = _part(examined, layout.CASES, cases.load) or ()
    if examined.manifest is not None:
        _compare(examined, examined.manifest)
    return examined


def _part(examined: Examined, name: str, load: Callable[[Path], _Part]) -> _Part | None:
    """Load one part; its error becomes a finding, unless its absence is one already."""
    path = examined.files.folder / name
    if any(finding.location == name for finding in examined.findings):
        return None
    try:
        return load(path)
    except InputError as err:
        rule = f"package.{path.stem.replace('_', '-')}-invalid"
        examined.note(rule, name, _sentence(err, path), err.remedy or f"Correct {name}.")
        return None


def _compare(examined: Examined, declared: Manifest) -> None:
    """Compare parts that were read with what the manifest declares."""
    if examined.graph is not None:
        for location, message in match.mismatches(declared, examined.graph):
            remedy = "Correct the manifest, or export the model again."
            examined.note("package.interface", location, message, remedy)
    for message in cases.mismatches(declared, examined.cases):
        remedy = "Make the golden cases again from the manifest."
        examined.note("package.case-mismatch", layout.CASES, message, remedy)
    limits = examined.settings
    if limits is not None and limits.memory_mb < declared.hardware.memory_mb:
        message = (
            f"expected memory_mb of at least {declared.hardware.memory_mb} as the manifest "
            f"demands, got {limits.memory_mb}"
        )
        examined.note("package.memory", layout.SETTINGS, message, "Raise memory_mb.")


def _sentence(err: CaissonError, path: Path) -> str:
    """Say what an error says without the place of a passing folder."""
    parts = [err.message]
    if err.expected:
        parts.append(f"expected {err.expected}")
    if err.found:
        parts.append(f"got {err.found}")
    return ", ".join(parts).replace(f"{path.parent}/", "").replace(str(path.parent), "")


def describe(examined: Examined) -> dict[str, Any]:
    """Return the facts of a source that could be read."""
    facts: dict[str, Any] = {
        "set_digest": examined.files.inventory.set_digest,
        "files": [entry.to_dict() for entry in examined.files.entries],
        "cases": [case.name for case in examined.cases],
    }
    for name in ("manifest", "settings", "graph"):
        part = getattr(examined, name)
        if part is not None:
            facts[name] = part.to_dict()
    return facts
