"""Which code of the checkout travels inside a package: contracts and model_packages as shipped."""

from __future__ import annotations

from pathlib import Path

from contracts.base import digest as digests
from contracts.base.errors import InputError
from model_packages.format import inventory as inventories
from model_packages.format.inventory import FileEntry, Inventory

AREAS = ("contracts", "model_packages")
_LEFT_OUT = frozenset({"published", "__pycache__"})
_SUFFIXES = frozenset({".py", ".json", ".html", ".typed"})


def read_code(root: Path) -> Inventory:
    """List and hash the code that travels.

    Args:
        root: The checkout, or an installation of its folders.

    Raises:
        InputError: If a folder is missing or holds a link among its code.
    """
    entries: list[FileEntry] = []
    for area in AREAS:
        if not (root / area).is_dir():
            raise InputError(
                "code of the runtime is missing",
                location=str(root / area),
                remedy="Run from a complete checkout.",
            )
        entries += _collect(root, root / area)
    return Inventory(root, tuple(sorted(entries)))


def _collect(root: Path, folder: Path) -> list[FileEntry]:
    entries: list[FileEntry] = []
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.startswith("."):
            continue
        if path.is_symlink():
            raise InputError("links cannot travel in a package", location=str(path))
        if path.is_dir():
            entries += _collect(root, path)
        elif path.suffix in _SUFFIXES:
            name = inventories.check_path(path.relative_to(root).as_posix(), where=str(path))
            entries.append(FileEntry(name, path.stat().st_size, digests.of_file(path)))
    return entries
