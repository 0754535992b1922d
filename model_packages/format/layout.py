"""Which files the ``/model`` tree has, and which it may never have (SPEC.md, section 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contracts.base.errors import ManifestInvalid
from contracts.base.report import Finding
from model_packages.format import inventory as inventories
from model_packages.format.inventory import FileEntry, Inventory

MANIFEST = "manifest.json"
SETTINGS = "config.yaml"
GRAPH = "model.onnx"
WEIGHTS = "model.onnx.data"
HEALTH_CHECK = "health_check.py"
TRAINING = "train.py"
CASES = "test_cases"
DOCUMENTS = "docs"

Role = Literal["weights", "config", "documents"]

_REQUIRED = (MANIFEST, SETTINGS, GRAPH, HEALTH_CHECK)
_OPTIONAL = (WEIGHTS, TRAINING, "LICENSE", "LICENSE.txt", "NOTICE", "README.md")
_CASE_FILE = re.compile(r"test_cases/[^/]+\.json")
_DOCUMENT_FILE = re.compile(r"docs/.+\.(md|txt|json|ya?ml|html|svg|png|csv)")
_PICKLE_NAME = re.compile(r".*\.(pkl|pickle|pt2?|pth|joblib|ckpt|npy|npz|h5|dill)")
_EXECUTABLE_NAME = re.compile(r".*\.(so|dll|exe|sh|pyc|pyd|dylib)")
_SNIFFED = 8
_LARGEST_TEXT_FILE = 64 * 2**20
_LARGEST_FILE = 8 * 2**30 - 1  # what the size field of a tar header holds


@dataclass(frozen=True)
class PackageFiles:
    """A readable package tree."""

    inventory: Inventory

    @property
    def folder(self) -> Path:
        """The folder the files are in."""
        return self.inventory.root

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        """All files, sorted by path."""
        return self.inventory.entries


def role(path: str) -> Role:
    """Return which layer a file of the tree belongs to."""
    if path in (GRAPH, WEIGHTS):
        return "weights"
    if path in (MANIFEST, SETTINGS):
        return "config"
    return "documents"


def read_source(folder: Path) -> PackageFiles:
    """Read a package's source tree.

    Raises:
        ManifestInvalid: With everything that is missing or does not belong.
        InputError: If it is no folder or cannot be read.
    """
    files, findings = examine(folder)
    if findings:
        raise ManifestInvalid(
            "; ".join(f"{finding.location}: {finding.message}" for finding in findings),
            location=str(folder),
            remedy="model_packages/SPEC.md, section 1, lists what a package holds.",
        )
    return files


def examine(folder: Path) -> tuple[PackageFiles, list[Finding]]:
    """Read a package's source tree and say everything that is wrong with its files.

    Raises:
        InputError: If it is no folder or cannot be read.
    """
    inventory, strays = inventories.survey(folder)
    findings = [
        _finding("package.file-forbidden", stray.path, stray.reason, "Remove it.")
        for stray in strays
    ]
    findings += [
        _finding("package.file-missing", name, "required file is missing", "Add it.")
        for name in _REQUIRED
        if inventory.find(name) is None
    ]
    findings += [
        _finding("package.file-missing", prefix, "holds no file", "Add at least one.")
        for prefix in (CASES, DOCUMENTS)
        if not any(
            entry.path.startswith(f"{prefix}/") and _is_known(entry.path)
            for entry in inventory.entries
        )
    ]
    for entry in inventory.entries:
        findings += _judge(folder, entry)
    return PackageFiles(inventory), findings


def _judge(folder: Path, entry: FileEntry) -> list[Finding]:
    path = entry.path
    if _PICKLE_NAME.fullmatch(path) or _is_pickle(folder / path):
        return [
            _finding(
                "package.pickle",
                path,
                "may run code when it is loaded",
                "Deliver weights in model.onnx; keep checkpoints outside the package.",
            )
        ]
    if _EXECUTABLE_NAME.fullmatch(path):
        return [_finding("package.file-forbidden", path, "programs are not allowed", "Remove it.")]
    if not _is_known(path):
        return [
            _finding(
                "package.file-unknown",
                path,
                "has no place in a package",
                "Move explanations to docs/, or remove it.",
            )
        ]
    limit = _LARGEST_FILE if role(path) == "weights" else _LARGEST_TEXT_FILE
    if entry.size > limit:
        message = f"expected at most {limit} bytes, got {entry.size}"
        return [_finding("package.file-size", path, message, "Make the file smaller.")]
    return []


def _is_known(path: str) -> bool:
    return (
        path in _REQUIRED
        or path in _OPTIONAL
        or _CASE_FILE.fullmatch(path) is not None
        or _DOCUMENT_FILE.fullmatch(path) is not None
    )


def _is_pickle(path: Path) -> bool:
    """Whether a file starts like a pickle of protocol 2 to 5, or like a zip of pickles."""
    with path.open("rb") as stream:
        start = stream.read(_SNIFFED)
    return start[:4] == b"PK\x03\x04" or (
        start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05" and len(start) > 1
    )


def _finding(rule: str, location: str, message: str, remedy: str) -> Finding:
    return Finding(
        rule=rule,
        subject="package source",
        location=location,
        severity="high",
        message=message,
        remedy=remedy,
    )
