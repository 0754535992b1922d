"""Signing keys: EC P-256 in PEM files that only their owner can read. Door of ``cryptography``."""

# ruff: noqa: PLC0415 - door of cryptography, opened only when called

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.base import failpoint, files
from contracts.base.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

_LIMIT = 64 * 2**10


@dataclass(frozen=True)
class PublicKey:
    """A key that can check signatures.

    Attributes:
        pem: Its SubjectPublicKeyInfo in PEM.
    """

    pem: bytes

    @property
    def key_id(self) -> str:
        """Hexadecimal sha256 of the PEM; the hint in bundles, as model-signing writes it."""
        return hashlib.sha256(self.pem).hexdigest()

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether a signature over data was made with this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = serialization.load_pem_public_key(self.pem)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        try:
            key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class PrivateKey:
    """A key that can sign; it never shows itself."""

    _key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"PrivateKey({self.public.key_id})"

    @property
    def public(self) -> PublicKey:
        """The key that checks its signatures."""
        from cryptography.hazmat.primitives import serialization

        return PublicKey(
            self._key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def sign(self, data: bytes) -> bytes:
        """Sign data; the same data gives the same signature (RFC 6979)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        return self._key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def load_or_create(folder: Path, name: str) -> PrivateKey:
    """Return the private key ``<name>.pem``; make it, and ``<name>.pub`` beside it, if missing.

    Raises:
        InputError: If it is no P-256 key or others can read it.
        UnavailableError: If the folder cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    path = folder / f"{name}.pem"
    with files.locked(folder / f".{name}.lock"):
        if not path.exists():
            key = PrivateKey(ec.generate_private_key(ec.SECP256R1()))
            failpoint.hit("keys.create.before")
            files.write_atomic(path, _pem(key), mode=0o600)
            failpoint.hit("keys.create.after")
        key = load(path)
        public = folder / f"{name}.pub"
        if not public.is_file() or public.read_bytes() != key.public.pem:
            files.write_atomic(public, key.public.pem)
    return key


def load(path: Path) -> PrivateKey:
    """Return the private key in a file.

    Raises:
        InputError: If it is missing, no P-256 key, or others than its owner can read it.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    data = files.read_bounded(path, _LIMIT)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(
            "private key can be read by others",
            expected="mode 0600",
            found=f"mode {stat.S_IMODE(path.stat().st_mode):04o}",
            location=str(path),
            remedy="Make a new key, as this one may be known, or run chmod 600 on it.",
        )
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError) as err:
        raise InputError("not a private key in PEM", location=str(path)) from err
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InputError("not an EC P-256 key", location=str(path))
    return PrivateKey(key)


def load_public(path: Path) -> PublicKey:
    """Return the public key in a file.

    Raises:
        InputError: If it is missing or no P-256 key.
    """
    return parse_public(files.read_bounded(path, _LIMIT), where=str(path))


def parse_public(pem: bytes, *, where: str = "") -> PublicKey:
    """Return a public key from PEM.

    Raises:
        InputError: If it is no P-256 key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError) as err:
        raise InputError("not a public key in PEM", location=where) from err
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InputError("not an EC P-256 key", location=where)
    return PublicKey(
        key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _pem(key: PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key._key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
