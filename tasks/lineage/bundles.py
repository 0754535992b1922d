"""Finds published feature bundles and reads what they say about themselves, without their data."""

from __future__ import annotations

import io
import tarfile

from contracts.base.errors import BundleInvalid
from contracts.features import archive, bundle, pointer
from contracts.features.bundle import BundleManifest
from contracts.features.pointer import Pointer
from contracts.objects.interface import ObjectStore


def find(store: ObjectStore, version: str) -> Pointer | None:
    """Return what publishes a feature version, of whichever definition, or None.

    Raises:
        BundleInvalid: If the pointer is malformed.
    """
    for key in store.keys(f"{pointer.PREFIX}/"):
        if key.endswith(f"/{version}.json"):
            name = key.removeprefix(f"{pointer.PREFIX}/").rpartition("/")[0]
            return pointer.read(store, name, version)
    return None


def manifest(store: ObjectStore, found: Pointer) -> BundleManifest:
    """Return the manifest of a bundle; its root is computed again, its cells are not.

    Raises:
        ObjectMissing: If the archive is gone.
        BundleInvalid: If there is no manifest at its head.
        DigestMismatch: If the manifest was changed.
    """
    data = store.get(found.archive, limit=archive.LIMIT)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|gz") as tar:
            head = tar.next()
            stream = tar.extractfile(head) if head is not None else None
            named = head is not None and head.name == bundle.MANIFEST
            content = stream.read() if stream is not None and named else b""
    except (tarfile.TarError, OSError, EOFError) as err:
        raise BundleInvalid(f"not a bundle: {err}", location=found.archive) from err
    if not content:
        raise BundleInvalid("archive does not begin with manifest.json", location=found.archive)
    return bundle.parse(content, where=f"{found.archive}: {bundle.MANIFEST}")


def manifest_of(store: ObjectStore, version: str) -> BundleManifest | None:
    """Return the manifest of a feature version, or None if it is not on this machine."""
    found = find(store, version)
    return manifest(store, found) if found is not None else None
