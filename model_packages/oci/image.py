"""The documents of a package: image index, manifest and configuration (SPEC.md, section 8).

Writing makes plain data from facts; reading takes a digest and returns what it leads to, verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from model_packages.format.manifest import Manifest
from model_packages.oci import descriptor as descriptors
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.record import FIELD, PackageRecord
from model_packages.oci.store import LayoutStore

CREATED = "1970-01-01T00:00:00Z"
PLATFORM = {"architecture": "amd64", "os": "linux"}
_PREFIX = "dev.caisson"
_USER = "65532:65532"
_MOST_LAYERS = 1000


@dataclass(frozen=True)
class Image:
    """What a package digest leads to.

    Attributes:
        index: The package's index.
        manifest: Its one image manifest.
        config: The image's configuration.
        layers: Its layers, each a raw tar.
        labels: Names and texts of the configuration.
        record: The table of contents.
    """

    index: Descriptor
    manifest: Descriptor
    config: Descriptor
    layers: tuple[Descriptor, ...]
    labels: Mapping[str, str]
    record: PackageRecord

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """Everything below the index, in the order in which it may become visible."""
        return (*self.layers, self.config, self.manifest)


def labels_of(manifest: Manifest, record: PackageRecord) -> dict[str, str]:
    """Return the labels of an image, which its index repeats as annotations."""
    feature_version = manifest.training.feature_version if manifest.training else ""
    labels = {
        "org.opencontainers.image.title": manifest.title,
        "org.opencontainers.image.description": manifest.description,
        "org.opencontainers.image.version": manifest.version,
        "org.opencontainers.image.authors": ", ".join(author.name for author in manifest.authors),
        "org.opencontainers.image.licenses": manifest.license,
        f"{_PREFIX}.base": "none",
        f"{_PREFIX}.compliance-level": manifest.compliance_level,
        f"{_PREFIX}.feature-version": feature_version,
        f"{_PREFIX}.format-version": str(manifest.format_version),
        f"{_PREFIX}.name": manifest.name,
        f"{_PREFIX}.runtime-api": str(record.runtime_api),
        f"{_PREFIX}.runtime-version": record.runtime_digest,
        f"{_PREFIX}.set-digest": record.set_digest,
    }
    return {name: text for name, text in labels.items() if text}


def write_config(
    labels: Mapping[str, str], layers: Sequence[Descriptor], record: PackageRecord
) -> dict[str, Any]:
    """Return an image configuration as image-spec JSON."""
    return {
        **PLATFORM,
        "created": CREATED,
        "config": {
            "User": _USER,
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONPATH=/runtime"],
            "Entrypoint": ["python3", "-m", "model_packages.runtime"],
            "WorkingDir": "/model",
            "Labels": dict(labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [
            {"created": CREATED, "created_by": f"caisson {layer.annotations[descriptors.ROLE]}"}
            for layer in layers
        ],
        FIELD: record.to_dict(),
    }


def write_manifest(
    config: Descriptor, layers: Sequence[Descriptor], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return an image manifest as image-spec JSON."""
    return {
        "schemaVersion": 2,
        "mediaType": descriptors.MANIFEST,
        "config": config.to_dict(),
        "layers": [layer.to_dict() for layer in layers],
        "annotations": dict(labels),
    }


def write_index(manifest: Descriptor, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a package's index as image-spec JSON."""
    return {
        "schemaVersion": 2,
        "mediaType": descriptors.INDEX,
        "artifactType": descriptors.PACKAGE,
        "manifests": [manifest.to_dict()],
        "annotations": dict(labels),
    }


def read(store: LayoutStore, digest: Digest) -> Image:
    """Return what a visible package digest leads to, without looking into its layers.

    Raises:
        RegistryUnavailable: If the layout does not show the package.
        DigestMismatch: If a document is missing or was changed.
        InputError: If a document is malformed or not one of a package.
    """
    index = store.find(digests.parse(digest, where=str(store.path)))
    manifest = _manifest_of(store, index)
    content = _document(store, manifest, descriptors.MANIFEST)
    where = str(store.blob(manifest.digest))
    config = descriptors.expect(
        descriptors.parse(content.get("config"), where=where), descriptors.CONFIG, where=where
    )
    layers = _layers(content.get("layers"), where)
    labels, record = _read_config(store, config, layers)
    return Image(index, manifest, config, layers, labels, record)


def verify(store: LayoutStore, digest: Digest) -> Image:
    """Return what a package digest leads to, after verifying every byte of it.

    Raises:
        RegistryUnavailable: If the layout does not show the package.
        DigestMismatch: If anything is missing or was changed.
        InputError: If a document is malformed or not one of a package.
    """
    image = read(store, digest)
    for layer in image.layers:
        store.verify(layer)
    return image


def _manifest_of(store: LayoutStore, index: Descriptor) -> Descriptor:
    content = _document(store, index, descriptors.INDEX)
    where = str(store.blob(index.digest))
    manifests = content.get("manifests")
    if content.get("artifactType") != descriptors.PACKAGE:
        raise InputError("not the index of a model package", location=where)
    if not isinstance(manifests, list) or len(manifests) != 1:
        raise InputError("expected exactly one image", location=where)
    manifest = descriptors.parse(manifests[0], where=where)
    return descriptors.expect(manifest, descriptors.MANIFEST, where=where)


def _document(store: LayoutStore, descriptor: Descriptor, media_type: str) -> Mapping[str, Any]:
    content = store.read_json(descriptor)
    fits = (
        isinstance(content, Mapping)
        and content.get("schemaVersion") == 2
        and content.get("mediaType") == media_type
    )
    if not fits:
        raise InputError(
            "unexpected document",
            expected=media_type,
            location=str(store.blob(descriptor.digest)),
        )
    return dict(content)


def _layers(data: Any, where: str) -> tuple[Descriptor, ...]:
    if not isinstance(data, list) or not 0 < len(data) <= _MOST_LAYERS:
        raise InputError("not a list of layers", location=where)
    layers = (descriptors.parse(item, where=where) for item in data)
    return tuple(descriptors.expect(layer, descriptors.LAYER, where=where) for layer in layers)


def _read_config(
    store: LayoutStore, config: Descriptor, layers: Sequence[Descriptor]
) -> tuple[Mapping[str, str], PackageRecord]:
    content = store.read_json(config)
    where = str(store.blob(config.digest))
    if not isinstance(content, Mapping):
        raise InputError("not an image configuration", location=where)
    rootfs, settings = content.get("rootfs"), content.get("config")
    wanted = {"type": "layers", "diff_ids": [layer.digest for layer in layers]}
    if rootfs != wanted:
        raise InputError("configuration and manifest name different layers", location=where)
    labels = settings.get("Labels") if isinstance(settings, Mapping) else None
    record = PackageRecord.from_dict(content.get(FIELD), where=where)
    return descriptors.texts(labels, where=where), record
