"""Documents that refer to a package: signatures and attestations (image-spec 1.1, referrers).

A layout has no referrers API, so the fallback tag of the distribution specification is used: the
entry ``sha256-<hex>`` is an image index of all manifests whose subject is that digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base import failpoint
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from model_packages.oci import descriptor as descriptors
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.store import Entries, LayoutStore

_NOTHING = b"{}"


@dataclass(frozen=True)
class Referrer:
    """A manifest that refers to a package.

    Attributes:
        manifest: The manifest.
        subject: Digest of what it says it refers to.
        config: Its configuration, which is empty.
        payload: Its one layer: the document itself.
    """

    manifest: Descriptor
    subject: Digest
    config: Descriptor
    payload: Descriptor


def tag_of(subject: Digest) -> str:
    """Return the fallback tag of a digest."""
    return subject.replace(":", "-", 1)


def attach(
    store: LayoutStore,
    subject: Descriptor,
    document: bytes,
    media_type: str,
    *,
    annotations: Mapping[str, str] | None = None,
) -> Descriptor:
    """Store a document that refers to a package; attaching it again changes nothing.

    Args:
        store: The layout that shows the package.
        subject: The package's index.
        document: The document.
        media_type: Its kind, which is also the artifact type.
        annotations: Annotations of the manifest.

    Returns:
        The referring manifest.
    """
    payload = store.put(document, media_type)
    config = store.put(_NOTHING, descriptors.EMPTY)
    content: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": descriptors.MANIFEST,
        "artifactType": media_type,
        "config": config.to_dict(),
        "layers": [payload.to_dict()],
        "subject": Descriptor(subject.media_type, subject.digest, subject.size).to_dict(),
    }
    if annotations:
        content["annotations"] = dict(annotations)
    manifest = store.put_json(
        content, descriptors.MANIFEST, artifact_type=media_type, annotations=annotations or {}
    )
    failpoint.hit("referrers.attach.before")
    store.update(lambda entries: united(store, entries, subject.digest, (manifest,)))
    failpoint.hit("referrers.attach.after")
    return manifest


def united(
    store: LayoutStore, entries: Entries, subject: Digest, manifests: Sequence[Descriptor]
) -> Entries:
    """Return a layout's entries with manifests among the referrers of a digest.

    Call it inside :meth:`LayoutStore.update`, so that no referrer of another writer is lost.
    """
    tag = tag_of(subject)
    present = _named(store, entries, tag)
    known = {manifest.digest: manifest for manifest in (*present, *manifests)}
    if not manifests or len(known) == len(present):
        return entries
    index = store.put_json(
        {
            "schemaVersion": 2,
            "mediaType": descriptors.INDEX,
            "manifests": [known[digest].to_dict() for digest in sorted(known)],
        },
        descriptors.INDEX,
    )
    return (*(entry for entry in entries if entry.tag != tag), index.tagged(tag))


def listed(store: LayoutStore, subject: Digest, artifact_type: str = "") -> tuple[Referrer, ...]:
    """Return the documents that refer to a digest, sorted by digest.

    Raises:
        DigestMismatch: If a list or manifest was changed.
        InputError: If one is malformed.
    """
    manifests = _named(store, store.entries(), tag_of(subject))
    return tuple(
        _read(store, manifest)
        for manifest in manifests
        if artifact_type in ("", manifest.artifact_type)
    )


def _named(store: LayoutStore, entries: Entries, tag: str) -> tuple[Descriptor, ...]:
    entry = next((entry for entry in entries if entry.tag == tag), None)
    if entry is None:
        return ()
    where = str(store.blob(entry.digest))
    content = store.read_json(descriptors.expect(entry, descriptors.INDEX, where=where))
    manifests = content.get("manifests") if isinstance(content, Mapping) else None
    if not isinstance(manifests, list):
        raise InputError("not a list of referrers", location=where)
    return tuple(descriptors.parse(item, where=where) for item in manifests)


def _read(store: LayoutStore, manifest: Descriptor) -> Referrer:
    where = str(store.blob(manifest.digest))
    content = store.read_json(descriptors.expect(manifest, descriptors.MANIFEST, where=where))
    layers = content.get("layers") if isinstance(content, Mapping) else None
    if not isinstance(layers, list) or len(layers) != 1:
        raise InputError("a referrer has exactly one layer", location=where)
    if content.get("artifactType") != manifest.artifact_type:
        raise InputError("artifact type differs from the list of referrers", location=where)
    return Referrer(
        manifest=manifest,
        subject=descriptors.parse(content.get("subject"), where=where).digest,
        config=descriptors.parse(content.get("config"), where=where),
        payload=descriptors.parse(layers[0], where=where),
    )
