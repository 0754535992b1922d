"""From a package's files to an OCI image layout, one digest for one content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base import failpoint
from model_packages.format import layout as layouts
from model_packages.format import manifest as manifests
from model_packages.format.inventory import FileEntry, Inventory
from model_packages.format.layout import PackageFiles
from model_packages.format.manifest import Manifest
from model_packages.oci import descriptor as descriptors
from model_packages.oci import image, tarlayer
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.record import PackageRecord
from model_packages.oci.reference import PackageRef, check_repository
from model_packages.oci.store import Entries, LayoutStore
from model_packages.oci.tarlayer import Member

MODEL = "model"
RUNTIME = "runtime"


def build(
    source: PackageFiles,
    code: Inventory,
    store: LayoutStore,
    repository: str,
    *,
    graph: Mapping[str, Any] | None = None,
) -> PackageRef:
    """Build a package into a layout; building the same content again changes nothing.

    Args:
        source: The package's files.
        code: The code that travels with it.
        store: Where to.
        repository: Name it is referred to by; not part of any digest.
        graph: Facts of its graph, kept in the record.

    Returns:
        The package.

    Raises:
        ManifestInvalid: If its manifest is malformed.
        DigestMismatch: If a file changed while it was packed.
        UnavailableError: If the layout cannot be written.
    """
    check_repository(repository)
    manifest = manifests.load(source.folder / layouts.MANIFEST)
    record = _record(source, code, manifest, graph or {})
    store.create()
    layers = _layers(source, code, store)
    labels = image.labels_of(manifest, record)
    config = store.put_json(image.write_config(labels, layers, record), descriptors.CONFIG)
    document = store.put_json(
        image.write_manifest(config, layers, labels),
        descriptors.MANIFEST,
        platform=image.PLATFORM,
    )
    index = store.put_json(
        image.write_index(document, labels),
        descriptors.INDEX,
        artifact_type=descriptors.PACKAGE,
    )
    failpoint.hit("package.publish.before")
    store.update(lambda entries: with_package(entries, index, manifest.version))
    failpoint.hit("package.publish.after")
    return PackageRef(repository, index.digest, record.set_digest)


def with_package(entries: Entries, index: Descriptor, version: str) -> Entries:
    """Return a layout's entries with a package among them, under a tag that never moves."""
    if any(entry.digest == index.digest for entry in entries):
        return entries
    name = index.digest.removeprefix("sha256:")[:12]
    return (*entries, index.tagged(f"{version}-{name}"))


def _record(
    source: PackageFiles, code: Inventory, manifest: Manifest, graph: Mapping[str, Any]
) -> PackageRecord:
    return PackageRecord(
        name=manifest.name,
        version=manifest.version,
        set_digest=source.inventory.set_digest,
        files=source.entries,
        runtime_digest=code.set_digest,
        runtime_files=code.entries,
        runtime_api=manifest.runtime_api,
        graph=graph,
    )


def _layers(source: PackageFiles, code: Inventory, store: LayoutStore) -> list[Descriptor]:
    """Write the layers: what changes seldom comes first, and every weight file alone."""
    layers = [_layer(store, "runtime", _members(code, code.entries, RUNTIME))]
    for role in ("weights", "documents", "config"):
        entries = [entry for entry in source.entries if layouts.role(entry.path) == role]
        groups = [[entry] for entry in entries] if role == "weights" else [entries]
        layers += [
            _layer(store, role, _members(source.inventory, group, MODEL)) for group in groups
        ]
    return layers


def _members(inventory: Inventory, entries: Sequence[FileEntry], folder: str) -> list[Member]:
    return [
        Member(entry, inventory.root / entry.path, f"{folder}/{entry.path}") for entry in entries
    ]


def _layer(store: LayoutStore, role: str, members: Sequence[Member]) -> Descriptor:
    with store.writer() as writer:
        tarlayer.pack(members, writer.write)
    return writer.described(descriptors.LAYER, annotations={descriptors.ROLE: role})
