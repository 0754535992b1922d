"""Packages that were changed by someone who can also make all digests fit again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from contracts.base.digest import Digest
from model_packages.oci import descriptor as descriptors
from model_packages.oci import image
from model_packages.oci.store import LayoutStore

Change = Callable[[dict[str, Any]], object]


def unchanged(document: dict[str, Any]) -> None:
    """Leave a document as it is."""


def forge(
    store: LayoutStore,
    digest: Digest,
    *,
    layers: Callable[[list[bytes]], list[bytes]] | None = None,
    config: Change = unchanged,
    manifest: Change = unchanged,
    index: Change = unchanged,
) -> Digest:
    """Publish an altered copy of a package beside it, with all digests made to fit.

    Args:
        store: The layout.
        digest: The genuine package.
        layers: Takes the bytes of all layers and returns others.
        config: Changes the image configuration in place.
        manifest: Changes the manifest in place, after its descriptors were made to fit.
        index: Changes the index in place, likewise.

    Returns:
        The digest of the forged package.
    """
    package = image.read(store, digest)
    documents = [
        copy.deepcopy(store.read_json(item))
        for item in (package.config, package.manifest, package.index)
    ]
    if layers is not None:
        forged = layers([store.read(layer, limit=2**30) for layer in package.layers])
        described = [store.put(data, descriptors.LAYER).to_dict() for data in forged]
        documents[1]["layers"] = described
        documents[0]["rootfs"]["diff_ids"] = [item["digest"] for item in described]
    config(documents[0])
    documents[1]["config"] = store.put(_dump(documents[0]), descriptors.CONFIG).to_dict()
    manifest(documents[1])
    documents[2]["manifests"] = [store.put(_dump(documents[1]), descriptors.MANIFEST).to_dict()]
    index(documents[2])
    entry = store.put(_dump(documents[2]), descriptors.INDEX)
    store.update(lambda entries: (*entries, entry))
    return entry.digest


def _dump(document: Any) -> bytes:
    return json.dumps(document).encode()
