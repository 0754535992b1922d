"""Sign a package: a statement over its digest, in a bundle, as its referrer."""

from __future__ import annotations

from contracts.base.errors import DigestMismatch
from model_packages.oci import image, referrers
from model_packages.oci.bundle import Bundle, encode
from model_packages.oci.descriptor import BUNDLE, Descriptor
from model_packages.oci.keys import PrivateKey
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import PAYLOAD, PREDICATE, ReleaseFacts, Statement
from model_packages.oci.store import LayoutStore


def sign(
    store: LayoutStore, package: PackageRef, facts: ReleaseFacts, key: PrivateKey
) -> Descriptor:
    """Sign a package in a layout; signing the same facts again changes nothing.

    Args:
        store: The layout that shows the package.
        package: Which package.
        facts: What the signature binds to it.
        key: The signing key.

    Returns:
        The referring manifest.

    Raises:
        RegistryUnavailable: If the package is not there.
        DigestMismatch: If the package was changed, or its files are not the ones of the facts.
    """
    content = image.verify(store, package.digest)
    for digest in (package.set_digest, facts.set_digest):
        if digest != content.record.set_digest:
            raise DigestMismatch(
                "facts are about other files",
                expected=content.record.set_digest,
                found=digest,
                location=str(package),
            )
    payload = Statement(package.repository, package.digest, facts).dumps()
    bundle = Bundle(PAYLOAD, payload, key.sign(encode(PAYLOAD, payload)), key.public.key_id)
    return referrers.attach(
        store,
        content.index,
        bundle.dumps(),
        BUNDLE,
        annotations={"dev.sigstore.bundle.predicateType": PREDICATE},
    )
