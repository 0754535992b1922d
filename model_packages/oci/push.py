"""Move a package with its referrers from one layout to another, by digest.

Blobs first, documents after them, and ``index.json`` last and once: whoever sees the package sees
all of it, its signature too. What is there already is verified and not sent again.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.base import failpoint
from contracts.base.digest import Digest
from contracts.base.progress import Progress, Reporter, silent
from model_packages.oci import build, image, referrers
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.store import Entries, LayoutStore

_CHUNK = 1 << 20


@dataclass(frozen=True)
class PushResult:
    """What a push did.

    Attributes:
        digest: Digest of the package.
        sent: Blobs that were written.
        present: Blobs that were there already.
        bytes_sent: Bytes that were written.
        changed: Whether the target shows anything it did not show before.
    """

    digest: Digest
    sent: int
    present: int
    bytes_sent: int
    changed: bool


def push(
    source: LayoutStore, target: LayoutStore, digest: Digest, *, progress: Reporter = silent
) -> PushResult:
    """Copy a package and its referrers; pushing again changes nothing.

    Args:
        source: The layout that shows the package.
        target: Where to; it is made if it is not there.
        digest: Digest of the package's index.
        progress: Who hears of progress, in bytes.

    Raises:
        RegistryUnavailable: If the source does not show the package.
        DigestMismatch: If a blob that the target lacks is missing or changed in the source; the
            target then shows nothing new.
        UnavailableError: If the target cannot be written.
    """
    package = image.read(source, digest)
    found = referrers.listed(source, digest)
    target.create()
    blobs = [*package.blobs, package.index]
    for referrer in found:
        blobs += [referrer.config, referrer.payload, referrer.manifest]
    sent = _copy_all(source, target, blobs, progress)
    failpoint.hit("push.publish.before")
    manifests = tuple(referrer.manifest for referrer in found)

    def publish(entries: Entries) -> Entries:
        shown = build.with_package(entries, package.index, package.record.version)
        return referrers.united(target, shown, digest, manifests)

    changed = target.update(publish)
    failpoint.hit("push.publish.after")
    return PushResult(
        digest=digest,
        sent=len(sent),
        present=len({blob.digest for blob in blobs}) - len(sent),
        bytes_sent=sum(blob.size for blob in sent),
        changed=changed,
    )


def _copy_all(
    source: LayoutStore, target: LayoutStore, blobs: list[Descriptor], progress: Reporter
) -> list[Descriptor]:
    distinct = {blob.digest: blob for blob in blobs}.values()
    total = sum(blob.size for blob in distinct)
    done = 0
    sent: list[Descriptor] = []
    for blob in distinct:
        if not target.holds(blob.digest):
            failpoint.hit("push.blob.before")
            _copy(source, target, blob)
            failpoint.hit("push.blob.after")
            sent.append(blob)
        done += blob.size
        progress(Progress("push", done, total, "bytes"))
    return sent


def _copy(source: LayoutStore, target: LayoutStore, blob: Descriptor) -> None:
    with target.writer(blob.digest) as writer, source.opened(blob) as stream:
        while chunk := stream.read(_CHUNK):
            writer.write(chunk)
