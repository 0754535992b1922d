"""Sigstore bundles v0.3 around DSSE envelopes, with a public key's hint (SPEC.md, section 10)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.base import canonical
from contracts.base.errors import InputError
from model_packages.oci.descriptor import BUNDLE

LIMIT = 4 * 2**20


@dataclass(frozen=True)
class Bundle:
    """One signed payload.

    Attributes:
        payload_type: Media type of the payload.
        payload: The signed bytes.
        signature: The signature over their pre-authentication encoding.
        hint: Id of the key.
    """

    payload_type: str
    payload: bytes
    signature: bytes
    hint: str

    @property
    def signed(self) -> bytes:
        """The bytes the signature is over."""
        return encode(self.payload_type, self.payload)

    def dumps(self) -> bytes:
        """Return the bundle as canonical JSON."""
        return canonical.dumps(
            {
                "mediaType": BUNDLE,
                "verificationMaterial": {"publicKey": {"hint": self.hint}, "tlogEntries": []},
                "dsseEnvelope": {
                    "payload": _encode(self.payload),
                    "payloadType": self.payload_type,
                    "signatures": [{"sig": _encode(self.signature), "keyid": ""}],
                },
            }
        )


def encode(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding of DSSE v1."""
    kind = payload_type.encode()
    return b" ".join(
        (b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload)
    )


def parse(data: bytes) -> Bundle:
    """Read a bundle.

    Raises:
        InputError: If it is malformed, or signed by anything but one named key.
    """
    content = canonical.loads(data, limit=LIMIT, where="signature bundle")
    if _at(content, "mediaType") != BUNDLE:
        raise InputError("not a signature bundle", expected=BUNDLE)
    envelope = _at(content, "dsseEnvelope")
    hint = _at(_at(_at(content, "verificationMaterial"), "publicKey"), "hint")
    signatures = _at(envelope, "signatures")
    payload_type = _at(envelope, "payloadType")
    if not isinstance(signatures, list) or len(signatures) != 1:
        raise InputError("signature bundle has not exactly one signature")
    if not isinstance(hint, str) or not isinstance(payload_type, str):
        raise InputError("signature bundle is malformed")
    return Bundle(
        payload_type=payload_type,
        payload=_decode(_at(envelope, "payload")),
        signature=_decode(_at(signatures[0], "sig")),
        hint=hint,
    )


def _at(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping) or name not in value:
        raise InputError("signature bundle is malformed", expected=f"a field {name}")
    return value[name]


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as err:
        raise InputError("signature bundle is malformed", expected="base64") from err
