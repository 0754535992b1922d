"""Verify a package's signature, in numbered steps; the first that fails is the error.

1. The layout shows the package, and its documents hash to its digest.
2. It has a signature.
3. The signature's manifest names this package as its subject.
4. The bundle is well formed, and its key is trusted.
5. The signature is over this payload.
6. The payload is a statement about this package and about its files.

One signature that passes all steps suffices; who needs certain facts asks for all that do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.base.digest import Digest
from contracts.base.errors import InputError, SignatureInvalid
from model_packages.oci import bundle as bundles
from model_packages.oci import image, referrers, statement
from model_packages.oci.bundle import Bundle
from model_packages.oci.descriptor import BUNDLE
from model_packages.oci.image import Image
from model_packages.oci.keys import PublicKey
from model_packages.oci.referrers import Referrer
from model_packages.oci.statement import ReleaseFacts, Statement
from model_packages.oci.store import LayoutStore


@dataclass(frozen=True)
class VerifiedSignature:
    """A signature that passed every step.

    Attributes:
        key_id: Id of the key that made it.
        subject: Digest of the package.
        name: Repository the package was signed for.
        facts: What it binds to the package.
        manifest: Digest of the referring manifest.
    """

    key_id: str
    subject: Digest
    name: str
    facts: ReleaseFacts
    manifest: Digest


def verify_signature(
    store: LayoutStore, digest: Digest, trusted: Iterable[PublicKey]
) -> VerifiedSignature:
    """Return the first signature of a package that a trusted key made.

    Args:
        store: The layout that shows the package.
        digest: Digest of the package.
        trusted: Keys that may sign.

    Raises:
        CaissonError: As ``verify_signatures``.
    """
    return verify_signatures(store, digest, trusted)[0]


def verify_signatures(
    store: LayoutStore, digest: Digest, trusted: Iterable[PublicKey]
) -> tuple[VerifiedSignature, ...]:
    """Return every signature of a package that a trusted key made, at least one.

    A package that is released again, with other facts, has one signature for each release.

    Args:
        store: The layout that shows the package.
        digest: Digest of the package.
        trusted: Keys that may sign.

    Raises:
        SignatureInvalid: With the step that failed; if there are several signatures, of the last.
        RegistryUnavailable: If the layout does not show the package.
        DigestMismatch: If a document was changed.
        InputError: If a document of the package is malformed.
    """
    keys = {key.key_id: key for key in trusted}
    package = image.read(store, digest)
    good: list[VerifiedSignature] = []
    trouble = SignatureInvalid(
        "package is not signed",
        expected="a signature bundle among its referrers",
        location=str(digest),
        remedy="Release it: the release signs what passed the gate.",
    )
    for referrer in referrers.listed(store, digest, BUNDLE):
        try:
            good.append(_verify(store, package, referrer, keys))
        except SignatureInvalid as err:
            trouble = err
    if not good:
        raise trouble
    return tuple(good)


def _verify(
    store: LayoutStore, package: Image, referrer: Referrer, keys: Mapping[str, PublicKey]
) -> VerifiedSignature:
    if referrer.subject != package.index.digest:
        raise _other_subject(package, referrer.subject)
    bundle = _read(store, referrer)
    key = keys.get(bundle.hint)
    if key is None:
        raise SignatureInvalid(
            "signed by a key that is not trusted",
            expected=" or ".join(sorted(keys)) or "a trusted key, but none is configured",
            found=bundle.hint[:100],
            location=str(package.index.digest),
            remedy="Release it with a trusted key, or add the key to the trust root.",
        )
    if not key.verify(bundle.signed, bundle.signature):
        raise SignatureInvalid(
            "signature does not fit what it signs",
            found="a changed payload, or a signature made with another key",
            location=str(package.index.digest),
            remedy="Release the package again; do not deploy this one.",
        )
    signed = _read_statement(bundle, package)
    if signed.subject != package.index.digest:
        raise _other_subject(package, signed.subject)
    if signed.facts.set_digest != package.record.set_digest:
        raise SignatureInvalid(
            "signed facts are about other files",
            expected=package.record.set_digest,
            found=signed.facts.set_digest,
            location=str(package.index.digest),
        )
    manifest = referrer.manifest.digest
    return VerifiedSignature(key.key_id, signed.subject, signed.name, signed.facts, manifest)


def _read(store: LayoutStore, referrer: Referrer) -> Bundle:
    try:
        return bundles.parse(store.read(referrer.payload, limit=bundles.LIMIT))
    except InputError as err:
        raise SignatureInvalid(
            f"signature cannot be read: {err}", location=referrer.manifest.digest
        ) from err


def _read_statement(bundle: Bundle, package: Image) -> Statement:
    if bundle.payload_type != statement.PAYLOAD:
        raise SignatureInvalid(
            "signature is over something else",
            expected=statement.PAYLOAD,
            found=bundle.payload_type[:100],
            location=str(package.index.digest),
        )
    try:
        return statement.parse(bundle.payload)
    except InputError as err:
        raise SignatureInvalid(
            f"signed statement cannot be read: {err}", location=str(package.index.digest)
        ) from err


def _other_subject(package: Image, found: Digest) -> SignatureInvalid:
    return SignatureInvalid(
        "signature belongs to another package",
        expected=package.index.digest,
        found=found,
        location=str(package.index.digest),
        remedy="Release this package, or name the one that was signed.",
    )
