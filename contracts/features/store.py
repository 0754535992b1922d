"""Makes feature bundles and publishes them: write, audit, publish.

The archive is uploaded, read back and verified cell by cell, and only then a pointer is created
that makes the version exist. An interrupted snapshot leaves nothing that a reader would trust, and
making the same bundle again finds the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.base import canonical, digest, failpoint
from contracts.base.errors import BundleInvalid, CaissonError, OverwriteRefused
from contracts.base.progress import Progress, Reporter, silent
from contracts.features import archive, build, bundle, pointer, reader
from contracts.features.bundle import BundleManifest
from contracts.features.definition import FeatureDefinition
from contracts.features.inputs import InputData, check, confirm
from contracts.features.join import join
from contracts.features.pointer import Pointer
from contracts.objects.interface import ObjectMissing, ObjectStore

_STEPS = 4


@dataclass(frozen=True)
class FeatureVersion:
    """A published bundle.

    Attributes:
        pointer: What publishes it.
        manifest: All that it says about itself.
        unchanged: Whether it was published before.
    """

    pointer: Pointer
    manifest: BundleManifest
    unchanged: bool


def snapshot(
    definition: FeatureDefinition,
    inputs: Mapping[str, InputData],
    *,
    as_of: datetime,
    store: ObjectStore,
    provenance: Mapping[str, Any],
    progress: Reporter = silent,
) -> FeatureVersion:
    """Compute the features of a definition, freeze them as a bundle and publish it.

    Args:
        definition: What to compute.
        inputs: The data of each input, by the input's name.
        as_of: Logical time of the data; its UTC date is part of the version.
        store: Where to publish.
        provenance: Circumstances, kept beside the bundle and never inside its root.
        progress: Told after each step.

    Raises:
        BundleInvalid: If an input is missing or does not fit the definition.
        ContractInvalid: If a file has another schema than its contract promises.
        OverwriteRefused: If other content has been published under the same version.
        DigestMismatch: If a file changed while it was read, or the version was published before
            and has been damaged since.
        SourceUnavailable: If the data cannot be read.
    """
    check(definition, inputs)
    joined = join(definition, {name: item.files for name, item in inputs.items()})
    confirm(inputs)
    progress(Progress("snapshot", 1, _STEPS, "steps"))
    part = build.encode(joined.table)
    manifest = build.describe(definition, inputs, joined, part, as_of=as_of)
    packed = archive.pack({bundle.MANIFEST: manifest.dumps(), build.PART: part})
    progress(Progress("snapshot", 2, _STEPS, "steps"))
    version = publish(store, manifest, packed, provenance)
    progress(Progress("snapshot", _STEPS, _STEPS, "steps"))
    return version


def publish(
    store: ObjectStore, manifest: BundleManifest, packed: bytes, provenance: Mapping[str, Any]
) -> FeatureVersion:
    """Upload an archive, verify what arrived, and only then make the version exist.

    Raises:
        OverwriteRefused: If other content has been published under the same version.
        DigestMismatch: If the version was published before and has been damaged since.
    """
    published = _published(store, manifest, packed)
    if published is not None:
        return FeatureVersion(published, manifest, unchanged=True)
    _upload(store, manifest, packed)
    key = pointer.archive_key(manifest.definition, manifest.version)
    info = store.head(key)
    if info is None:
        raise ObjectMissing("archive vanished while it was published", location=key)
    beside = f"{key.rpartition('/')[0]}/provenance.json"
    store.put(beside, canonical.dumps(provenance))
    made = Pointer(
        definition=manifest.definition,
        version=manifest.version,
        root=manifest.root,
        as_of=manifest.as_of,
        rows=manifest.rows,
        archive=key,
        size=info.size,
        sha256=info.etag,
    )
    failpoint.hit("features.publish.before")
    try:
        store.put(
            pointer.key_of(manifest.definition, manifest.version),
            made.dumps(),
            if_none_match=True,
        )
    except OverwriteRefused:  # somebody was faster; it is the same bundle, or refused below
        winner = _published(store, manifest, packed)
        assert winner is not None
        return FeatureVersion(winner, manifest, unchanged=True)
    failpoint.hit("features.publish.after")
    return FeatureVersion(made, manifest, unchanged=False)


def _published(store: ObjectStore, manifest: BundleManifest, packed: bytes) -> Pointer | None:
    """Return what publishes this bundle already, after verifying that it is whole."""
    try:
        found = pointer.read(store, manifest.definition, manifest.version)
    except ObjectMissing:
        return None
    if found.root != manifest.root:
        raise OverwriteRefused(
            f"feature version {manifest.version} is published with other content",
            expected=found.root,
            found=manifest.root,
            location=manifest.definition,
            remedy="A published version never changes; find out which of the two is wrong.",
        )
    if store.head(found.archive) is None and digest.of_bytes(packed) == found.sha256:
        store.put(found.archive, packed)
    reader.open_version(store, manifest.definition, manifest.version, root=manifest.root)
    return found


def _upload(store: ObjectStore, manifest: BundleManifest, packed: bytes) -> None:
    """Put the archive where readers will look, and verify what lies there afterwards."""
    key = pointer.archive_key(manifest.definition, manifest.version)
    failpoint.hit("features.upload.before")
    try:
        store.put(key, packed, if_none_match=True)
    except OverwriteRefused:
        # An interrupted snapshot left it. Unpublished, so it may go if it is not this bundle.
        if not _holds(store, key, manifest):
            store.put(key, packed)
    failpoint.hit("features.upload.after")
    if not _holds(store, key, manifest):
        raise BundleInvalid("uploaded archive does not hold the bundle", location=key)


def _holds(store: ObjectStore, key: str, manifest: BundleManifest) -> bool:
    try:
        found, _ = reader.verify(store.get(key, limit=archive.LIMIT), where=key)
    except CaissonError:
        return False
    return found.root == manifest.root
