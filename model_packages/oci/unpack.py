"""From a layout to files: all of a package or nothing, every byte verified."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest as digests
from contracts.base import failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError, IntegrityError
from model_packages.format import cases, inventory, layout, manifest, settings
from model_packages.format.cases import Case
from model_packages.format.inventory import FileEntry
from model_packages.format.manifest import Manifest
from model_packages.format.settings import Settings
from model_packages.oci import build, image, tarlayer
from model_packages.oci.image import Image
from model_packages.oci.record import PackageRecord
from model_packages.oci.store import LayoutStore

RECORD = "package.json"
_RECORD_LIMIT = 16 * 2**20


@dataclass(frozen=True)
class PackageTree:
    """An unpacked package.

    Attributes:
        digest: Digest of the package.
        root: Folder with ``model/``, ``runtime/`` and ``package.json``.
        record: Its table of contents.
        manifest: Its manifest.
        settings: Its settings.
        labels: Labels of its image.
    """

    digest: Digest
    root: Path
    record: PackageRecord
    manifest: Manifest
    settings: Settings
    labels: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """The ``/model`` tree."""
        return self.root / build.MODEL

    @property
    def runtime(self) -> Path:
        """The code it was built with; a folder for the module search path."""
        return self.root / build.RUNTIME

    @property
    def set_digest(self) -> Digest:
        """Digest of the files under ``/model``."""
        return self.record.set_digest

    @property
    def graph(self) -> Mapping[str, Any]:
        """Facts of the graph, as they were established at build."""
        return self.record.graph

    def cases(self) -> tuple[Case, ...]:
        """Read the golden cases."""
        return cases.load(self.folder / layout.CASES)


def unpack(store: LayoutStore, digest: Digest, target: Path) -> Path:
    """Write a package's files into a new folder, which appears whole or not at all.

    Args:
        store: Where the package is.
        digest: Which package.
        target: The new folder; one that holds exactly this package already is left as it is.

    Returns:
        The folder, with ``model/``, ``runtime/`` and ``package.json``.

    Raises:
        RegistryUnavailable: If the package is not there.
        DigestMismatch: If anything was changed, in the layout or in an existing target.
        InputError: If the package is malformed; nothing is written.
    """
    package = image.read(store, digest)
    _unpack(store, package, target)
    _verify(package.record, target)
    return target


def open_package(layout_path: Path, digest: Digest, cache: Path) -> PackageTree:
    """Return an unpacked package whose files were verified just now.

    It is unpacked into the cache once; damage to what was unpacked is repaired.

    Args:
        layout_path: The OCI layout.
        digest: Which package.
        cache: Folder with one folder a package.

    Raises:
        RegistryUnavailable: If the package is not there.
        DigestMismatch: If anything was changed in the layout.
        InputError: If the package is malformed.
    """
    store = LayoutStore(layout_path)
    package = image.read(store, digest)
    name = digests.parse(digest).removeprefix("sha256:")
    root = cache / name
    with files.locked(cache / f".{name}.lock"):
        if not _is_whole(package.record, root):
            _discard(root)
            _unpack(store, package, root)
            _verify(package.record, root)
    return PackageTree(
        digest=digest,
        root=root,
        record=package.record,
        manifest=manifest.load(root / build.MODEL / layout.MANIFEST),
        settings=settings.load(root / build.MODEL / layout.SETTINGS),
        labels=package.labels,
    )


def _unpack(store: LayoutStore, package: Image, target: Path) -> None:
    if target.exists():
        return
    with files.staging(target) as aside:
        entries: list[FileEntry] = []
        for layer in package.layers:
            with store.opened(layer) as stream:
                entries += tarlayer.extract(stream, aside, where=layer.digest)
        _compare(package.record, entries, str(store.path))
        files.write_atomic(aside / RECORD, package.record.dumps())
        failpoint.hit("package.unpack.before")
    failpoint.hit("package.unpack.after")


def _compare(record: PackageRecord, entries: list[FileEntry], where: str) -> None:
    """Refuse layers that hold other files than the record says."""
    wanted = _placed(record.files, build.MODEL) + _placed(record.runtime_files, build.RUNTIME)
    if sorted(entries) != sorted(wanted):
        paths = sorted({entry.path for entry in set(entries) ^ set(wanted)})
        raise InputError(
            "layers and record of the package disagree",
            found=", ".join(paths[:10]) or "a file twice",
            location=where,
        )


def _placed(entries: tuple[FileEntry, ...], folder: str) -> list[FileEntry]:
    return [FileEntry(f"{folder}/{item.path}", item.size, item.sha256) for item in entries]


def _verify(record: PackageRecord, root: Path) -> None:
    names = sorted(path.name for path in root.iterdir())
    if names != sorted((build.MODEL, build.RUNTIME, RECORD)):
        raise DigestMismatch("unpacked package has other parts", location=str(root))
    inventory.verify(root / build.MODEL, record.files)
    inventory.verify(root / build.RUNTIME, record.runtime_files)
    content = files.read_bounded(root / RECORD, _RECORD_LIMIT)
    digests.require(content, digests.of_bytes(record.dumps()), where=str(root / RECORD))


def _is_whole(record: PackageRecord, root: Path) -> bool:
    if not root.is_dir():
        return False
    try:
        _verify(record, root)
    except (IntegrityError, InputError):
        return False
    return True


def _discard(root: Path) -> None:
    """Take a damaged folder out of the way first, so that nobody opens half of it."""
    if root.exists() or root.is_symlink():
        aside = root.with_name(f".{root.name}.{secrets.token_hex(6)}.part")
        root.rename(aside)
        if aside.is_symlink() or not aside.is_dir():
            aside.unlink()
        else:
            shutil.rmtree(aside, ignore_errors=True)
