"""Documents that refer to a package."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from contracts.base.errors import DigestMismatch, InputError
from model_packages.oci import descriptor as descriptors
from model_packages.oci import referrers
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.referrers import attach, listed, tag_of
from tests.fakes.packages import BuiltPackage


@pytest.fixture
def subject(built: BuiltPackage) -> Descriptor:
    return built.store.find(built.reference.digest)


def test_a_referrer_is_found_by_its_subject(built: BuiltPackage, subject: Descriptor) -> None:
    """It names its subject, and the fallback tag names it."""
    manifest = attach(built.store, subject, b"{}", "text/x-note", annotations={"a": "b"})
    (found,) = listed(built.store, subject.digest)
    assert found.manifest == manifest
    assert found.subject == subject.digest
    assert built.store.read(found.payload) == b"{}"
    entry = built.store.tagged(tag_of(subject.digest))
    assert entry is not None
    assert entry.tag == f"sha256-{subject.digest[7:]}"
    assert listed(built.store, subject.digest, "text/x-other") == ()


def test_attaching_again_changes_nothing(built: BuiltPackage, subject: Descriptor) -> None:
    """The same document refers once."""
    first = attach(built.store, subject, b"x", "text/x-note")
    before = built.store.entries()
    assert attach(built.store, subject, b"x", "text/x-note") == first
    assert built.store.entries() == before


def test_concurrent_referrers_are_united(built: BuiltPackage, subject: Descriptor) -> None:
    """The read-modify-write of the fallback tag loses nothing."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: attach(built.store, subject, b"%d" % n, "text/x-n"), range(16)))
    assert len(listed(built.store, subject.digest)) == 16


def forged(built: BuiltPackage, subject: Descriptor, change: dict[str, Any]) -> None:
    """List a referrer whose manifest was altered."""
    manifest = attach(built.store, subject, b"x", "text/x-note")
    content = {**json.loads(built.store.read(manifest)), **change}
    altered = built.store.put_json(content, descriptors.MANIFEST, artifact_type="text/x-note")
    index = built.store.put_json(
        {"schemaVersion": 2, "mediaType": descriptors.INDEX, "manifests": [altered.to_dict()]},
        descriptors.INDEX,
    )
    built.store.update(lambda entries: (entries[0], index.tagged(tag_of(subject.digest))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": []}, "exactly one layer"),
        ({"layers": None}, "exactly one layer"),
        ({"artifactType": "text/x-other"}, "artifact type differs"),
        ({"subject": None}, "not a descriptor"),
    ],
)
def test_malformed_referrers_are_refused(
    built: BuiltPackage, subject: Descriptor, change: dict[str, Any], words: str
) -> None:
    """A referrer is read strictly."""
    forged(built, subject, change)
    with pytest.raises(InputError, match=words):
        listed(built.store, subject.digest)


def test_a_fallback_tag_that_is_no_list_is_refused(
    built: BuiltPackage, subject: Descriptor
) -> None:
    """A moved tag is a typed error."""
    tag = referrers.tag_of(subject.digest)
    index = built.store.put(b"[]", descriptors.INDEX).tagged(tag)
    built.store.update(lambda entries: (*entries, index))
    with pytest.raises(InputError, match="not a list of referrers"):
        listed(built.store, subject.digest)


def test_a_changed_list_is_refused(built: BuiltPackage, subject: Descriptor) -> None:
    """The list of referrers is verified like everything else."""
    attach(built.store, subject, b"x", "text/x-note")
    entry = built.store.tagged(tag_of(subject.digest))
    assert entry is not None
    path = built.store.blob(entry.digest)
    path.write_bytes(path.read_bytes().replace(b"x-note", b"x-nota"))
    with pytest.raises(DigestMismatch):
        listed(built.store, subject.digest)
