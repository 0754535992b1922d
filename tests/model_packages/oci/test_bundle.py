"""Signature bundles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError
from model_packages.oci import bundle
from model_packages.oci.bundle import Bundle
from model_packages.oci.statement import PAYLOAD

BUNDLE = Bundle(PAYLOAD, b'{"a":1}', b"\x30\x01", "ab" * 32)


def test_the_encoding_is_that_of_the_dsse_specification() -> None:
    """The test vector of DSSE's protocol.md."""
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert bundle.encode("http://example.com/HelloWorld", b"hello world") == expected


def test_a_bundle_has_the_fields_of_version_0_3() -> None:
    """Other verifiers find what they look for."""
    plain = json.loads(BUNDLE.dumps())
    assert plain["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert plain["verificationMaterial"] == {"publicKey": {"hint": "ab" * 32}, "tlogEntries": []}
    assert plain["dsseEnvelope"]["payloadType"] == "application/vnd.in-toto+json"


@given(st.binary(max_size=50), st.binary(max_size=50), st.text(max_size=5))
def test_a_bundle_reads_back_equal(payload: bytes, signature: bytes, hint: str) -> None:
    """What is written is what was read."""
    written = Bundle(PAYLOAD, payload, signature, hint)
    try:
        data = written.dumps()
    except InputError:
        return
    assert bundle.parse(data) == written


def changed(*path: str, value: Any) -> bytes:
    plain = json.loads(BUNDLE.dumps())
    inner = plain
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(plain).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        changed("mediaType", value="application/vnd.dev.sigstore.bundle.v0.1+json"),
        changed("dsseEnvelope", value=None),
        changed("dsseEnvelope", "signatures", value=[]),
        changed("dsseEnvelope", "signatures", value=[{"sig": ""}] * 2),
        changed("dsseEnvelope", "payload", value="not base64!"),
        changed("dsseEnvelope", "payload", value=7),
        changed("dsseEnvelope", "payloadType", value=7),
        changed("verificationMaterial", value={}),
        changed("verificationMaterial", "publicKey", value={"hint": 7}),
    ],
)
def test_malformed_bundles_are_refused(data: bytes) -> None:
    """A bundle is read strictly."""
    with pytest.raises(InputError):
        bundle.parse(data)
