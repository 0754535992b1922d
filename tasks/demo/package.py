"""Plants one changed byte in a built package; only the package stage reads all its bytes."""

from __future__ import annotations

from pathlib import Path

from contracts.base import files
from contracts.base.digest import Digest
from model_packages.oci import image
from model_packages.oci.store import LayoutStore

_LIMIT = 2**30


def changed_byte(layout: Path, digest: Digest) -> Path:
    """Flip one bit in the middle of a package's largest blob.

    Args:
        layout: The OCI layout that holds it.
        digest: The package.

    Returns:
        The changed blob; the file is a new one, so hard links to the old one keep the old bytes.
    """
    package = image.read(LayoutStore(layout), digest)
    largest = max(package.blobs, key=lambda blob: blob.size)
    path = layout / "blobs" / largest.digest.replace(":", "/")
    data = bytearray(files.read_bounded(path, _LIMIT))
    data[len(data) // 2] ^= 1
    path.unlink()
    files.write_atomic(path, bytes(data))
    return path
