"""Signing and verifying."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError, RegistryUnavailable, SignatureInvalid
from model_packages.oci import bundle, descriptor, keys, referrers, statement
from model_packages.oci.bundle import Bundle
from model_packages.oci.keys import PrivateKey, PublicKey
from model_packages.oci.sign import sign
from model_packages.oci.statement import PAYLOAD, ReleaseFacts, Statement
from model_packages.oci.verify import verify_signature, verify_signatures
from tests.fakes import packages
from tests.fakes.packages import BuiltPackage


@pytest.fixture
def key(tmp_path: Path) -> PrivateKey:
    return keys.load_or_create(tmp_path / "keys", "builder")


def attach(built: BuiltPackage, document: bytes) -> None:
    entry = built.store.find(built.reference.digest)
    referrers.attach(built.store, entry, document, descriptor.BUNDLE)


def attach_statement(
    built: BuiltPackage, key: PrivateKey, payload: bytes, kind: str = PAYLOAD
) -> None:
    signature = key.sign(bundle.encode(kind, payload))
    attach(built, Bundle(kind, payload, signature, key.public.key_id).dumps())


def test_a_signed_package_verifies(signed: tuple[BuiltPackage, PublicKey]) -> None:
    """The signature says who signed, and binds the facts."""
    built, key = signed
    verified = verify_signature(built.store, built.reference.digest, [key])
    assert verified.key_id == key.key_id
    assert verified.name == "tiny"
    assert verified.facts == packages.facts(built.reference)


def test_signing_again_changes_nothing(built: BuiltPackage, key: PrivateKey) -> None:
    """The same facts and key give the same bundle."""
    first = sign(built.store, built.reference, packages.facts(built.reference), key)
    before = built.store.entries()
    assert sign(built.store, built.reference, packages.facts(built.reference), key) == first
    assert built.store.entries() == before


def test_one_good_signature_suffices(
    signed: tuple[BuiltPackage, PublicKey], key: PrivateKey
) -> None:
    """Signatures of strangers beside it do no harm."""
    built, trusted = signed
    for number in range(4):
        facts = replace(packages.facts(built.reference), git_commit=str(number))
        sign(built.store, built.reference, facts, key)
    assert verify_signature(built.store, built.reference.digest, [trusted]).key_id == trusted.key_id


def test_every_trusted_signature_is_returned(
    signed: tuple[BuiltPackage, PublicKey], key: PrivateKey, tmp_path: Path
) -> None:
    """A package signed again with other facts has both, and none of a stranger's."""
    built, trusted = signed
    again = replace(packages.facts(built.reference), achieved_level="L2")
    sign(built.store, built.reference, again, key)
    stranger = keys.load_or_create(tmp_path / "keys", "stranger")
    sign(built.store, built.reference, packages.facts(built.reference), stranger)
    found = verify_signatures(built.store, built.reference.digest, [trusted, key.public])
    assert sorted(item.facts.achieved_level for item in found) == ["L1", "L2"]
    assert {item.key_id for item in found} == {trusted.key_id, key.public.key_id}


def test_an_unsigned_package_is_refused(built: BuiltPackage, key: PrivateKey) -> None:
    """Nothing to verify is its own error."""
    with pytest.raises(SignatureInvalid, match="package is not signed"):
        verify_signature(built.store, built.reference.digest, [key.public])


def test_a_note_is_no_signature(built: BuiltPackage, key: PrivateKey) -> None:
    """Other referrers do not count."""
    referrers.attach(built.store, built.store.find(built.reference.digest), b"x", "text/x-note")
    with pytest.raises(SignatureInvalid, match="package is not signed"):
        verify_signature(built.store, built.reference.digest, [key.public])


def test_a_key_that_is_not_trusted_is_refused(
    signed: tuple[BuiltPackage, PublicKey], key: PrivateKey
) -> None:
    """The wrong key and no key at all are named."""
    built, _ = signed
    with pytest.raises(SignatureInvalid, match="not trusted"):
        verify_signature(built.store, built.reference.digest, [key.public])
    with pytest.raises(SignatureInvalid, match="none is configured"):
        verify_signature(built.store, built.reference.digest, [])


def test_a_borrowed_hint_is_refused(built: BuiltPackage, key: PrivateKey, tmp_path: Path) -> None:
    """Naming a trusted key does not make one a signer."""
    stranger = keys.load_or_create(tmp_path / "keys", "stranger")
    payload = Statement("tiny", built.reference.digest, packages.facts(built.reference)).dumps()
    signature = stranger.sign(bundle.encode(PAYLOAD, payload))
    attach(built, Bundle(PAYLOAD, payload, signature, key.public.key_id).dumps())
    with pytest.raises(SignatureInvalid, match="does not fit what it signs"):
        verify_signature(built.store, built.reference.digest, [key.public])


@pytest.mark.parametrize("part", ["payload", "payload_type", "signature"])
def test_a_changed_bundle_is_refused(
    signed: tuple[BuiltPackage, PublicKey], tmp_path: Path, part: str
) -> None:
    """Payload, its type and the signature hang together."""
    built, key = signed
    genuine = bundle.parse(
        built.store.read(referrers.listed(built.store, built.reference.digest)[0].payload)
    )
    value = getattr(genuine, part)
    altered = value + (" " if isinstance(value, str) else b" ")
    other = packages.build(tmp_path / "other")
    attach(other, replace(genuine, **{part: altered}).dumps())
    assert other.reference == built.reference
    with pytest.raises(SignatureInvalid, match="does not fit what it signs"):
        verify_signature(other.store, other.reference.digest, [key])


def test_a_signature_of_another_package_is_refused(
    signed: tuple[BuiltPackage, PublicKey], tmp_path: Path
) -> None:
    """A genuine bundle moved to another package is noticed."""
    built, key = signed
    genuine = built.store.read(referrers.listed(built.store, built.reference.digest)[0].payload)
    other = packages.build(tmp_path / "other", packages.Options(weight=3.0))
    attach(other, genuine)
    with pytest.raises(SignatureInvalid, match="belongs to another package"):
        verify_signature(other.store, other.reference.digest, [key])


def test_a_referrer_of_another_subject_is_refused(
    signed: tuple[BuiltPackage, PublicKey], tmp_path: Path
) -> None:
    """A list that names a referrer of something else is noticed."""
    built, key = signed
    other = packages.build(tmp_path / "other", packages.Options(weight=3.0))
    (genuine,) = referrers.listed(built.store, built.reference.digest)
    for blob in (genuine.manifest, genuine.config, genuine.payload):
        other.store.put(built.store.read(blob), blob.media_type)
    digest_ = other.reference.digest
    other.store.update(
        lambda entries: referrers.united(other.store, entries, digest_, (genuine.manifest,))
    )
    with pytest.raises(SignatureInvalid, match="belongs to another package"):
        verify_signature(other.store, digest_, [key])


def plain(built: BuiltPackage, **fields: Any) -> bytes:
    facts = packages.facts(built.reference)
    data = json.loads(Statement("tiny", built.reference.digest, facts).dumps())
    return json.dumps({**data, **fields}).encode()


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (lambda built: b"[]", "not an in-toto statement"),
        (lambda built: b"{", "cannot be read"),
        (
            lambda built: plain(built, predicateType="https://slsa.dev/provenance/v1"),
            "another kind",
        ),
        (lambda built: plain(built, subject=[]), "exactly one package"),
        (lambda built: plain(built, subject=[{"name": "x", "digest": {}}]), "subject"),
        (lambda built: plain(built, predicate={}), "fields of the signed facts"),
        (
            lambda built: Statement(
                "tiny",
                built.reference.digest,
                replace(packages.facts(built.reference), set_digest=digest.of_bytes(b"")),
            ).dumps(),
            "about other files",
        ),
    ],
)
def test_a_signed_payload_that_says_something_else_is_refused(
    built: BuiltPackage, key: PrivateKey, payload: Callable[[BuiltPackage], bytes], words: str
) -> None:
    """A trusted key on something else is not a release."""
    attach_statement(built, key, payload(built))
    with pytest.raises(SignatureInvalid, match=words):
        verify_signature(built.store, built.reference.digest, [key.public])


def test_a_payload_of_another_type_is_refused(built: BuiltPackage, key: PrivateKey) -> None:
    """The type is signed, and must be that of a statement."""
    attach_statement(built, key, plain(built), "text/plain")
    with pytest.raises(SignatureInvalid, match="over something else"):
        verify_signature(built.store, built.reference.digest, [key.public])


def test_an_unreadable_bundle_is_refused(built: BuiltPackage, key: PrivateKey) -> None:
    """Garbage where a signature should be is its own error."""
    attach(built, b"garbage")
    with pytest.raises(SignatureInvalid, match="signature cannot be read"):
        verify_signature(built.store, built.reference.digest, [key.public])


def test_only_what_is_whole_is_signed(built: BuiltPackage, key: PrivateKey) -> None:
    """A damaged package, a missing one and facts about other files are not signed."""
    facts = packages.facts(built.reference)
    with pytest.raises(DigestMismatch, match="about other files"):
        sign(built.store, built.reference, replace(facts, set_digest=digest.of_bytes(b"")), key)
    absent = replace(built.reference, digest=digest.of_bytes(b""))
    with pytest.raises(RegistryUnavailable):
        sign(built.store, absent, facts, key)
    largest = max((built.layout / "blobs" / "sha256").iterdir(), key=lambda it: it.stat().st_size)
    largest.write_bytes(largest.read_bytes() + b"\0")
    with pytest.raises(DigestMismatch, match="blob was changed"):
        sign(built.store, built.reference, facts, key)
    assert referrers.listed(built.store, built.reference.digest) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"contract": 3},
        {"reports": []},
        {"reports": {"trust": "none"}},
        {"set_digest": "none"},
    ],
)
def test_malformed_facts_are_refused(fields: dict[str, Any]) -> None:
    """Facts that arrive are read strictly."""
    with pytest.raises(InputError):
        ReleaseFacts.from_dict({**ReleaseFacts(Digest(digest.of_bytes(b""))).to_dict(), **fields})


def test_a_statement_reads_back_equal(built: BuiltPackage) -> None:
    """What is signed is what is read."""
    written = Statement("tiny", built.reference.digest, packages.facts(built.reference))
    assert statement.parse(written.dumps()) == written
