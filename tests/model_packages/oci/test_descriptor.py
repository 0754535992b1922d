"""OCI descriptors."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import InputError
from model_packages.oci import descriptor
from model_packages.oci.descriptor import Descriptor

PLAIN: dict[str, Any] = {
    "mediaType": descriptor.INDEX,
    "digest": digest.of_bytes(b""),
    "size": 0,
    "artifactType": descriptor.PACKAGE,
    "platform": {"os": "linux", "architecture": "amd64"},
    "annotations": {"a": "b"},
}


def test_a_descriptor_reads_back_equal() -> None:
    """What is written is what was read."""
    assert descriptor.parse(PLAIN).to_dict() == PLAIN


def test_foreign_fields_are_ignored() -> None:
    """Other tools may write more than we know."""
    foreign = {**PLAIN, "urls": ["x"], "platform": {"os": "linux", "os.features": ["x"]}}
    assert descriptor.parse(foreign).platform == {"os": "linux"}


@pytest.mark.parametrize(
    "fields",
    [
        {"mediaType": "nothing"},
        {"mediaType": None},
        {"digest": "sha256:" + "A" * 64},
        {"size": -1},
        {"size": True},
        {"size": 2**60},
        {"artifactType": 3},
        {"annotations": {"a": 1}},
        {"annotations": []},
    ],
)
def test_malformed_descriptors_are_refused(fields: dict[str, Any]) -> None:
    """Every field we use is checked."""
    with pytest.raises(InputError):
        descriptor.parse({**PLAIN, **fields})
    with pytest.raises(InputError, match="not a descriptor"):
        descriptor.parse([])


def test_another_media_type_is_refused() -> None:
    """A manifest where an index should be is not read as one."""
    entry = Descriptor(descriptor.MANIFEST, digest.of_bytes(b""), 0)
    assert descriptor.expect(entry, descriptor.MANIFEST) is entry
    with pytest.raises(InputError, match="unexpected media type"):
        descriptor.expect(entry, descriptor.INDEX)
