"""Signing keys."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from contracts.base.errors import InputError, UnavailableError
from model_packages.oci import keys


def test_a_key_is_made_on_demand_and_kept(tmp_path: Path) -> None:
    """The second call returns the same key, which only its owner can read."""
    first = keys.load_or_create(tmp_path / "keys", "builder")
    assert keys.load_or_create(tmp_path / "keys", "builder").public == first.public
    assert stat.S_IMODE((tmp_path / "keys" / "builder.pem").stat().st_mode) == 0o600
    assert keys.load_public(tmp_path / "keys" / "builder.pub") == first.public


def test_a_missing_public_file_is_written_again(tmp_path: Path) -> None:
    """The public half follows from the private one."""
    first = keys.load_or_create(tmp_path, "builder")
    (tmp_path / "builder.pub").write_text("stale")
    keys.load_or_create(tmp_path, "builder")
    assert keys.load_public(tmp_path / "builder.pub") == first.public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """A key that may be known signs nothing."""
    keys.load_or_create(tmp_path, "builder")
    (tmp_path / "builder.pem").chmod(mode)
    with pytest.raises(InputError, match="can be read by others"):
        keys.load_or_create(tmp_path, "builder")


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """A file where the folder should be is named."""
    (tmp_path / "keys").write_text("x")
    with pytest.raises(UnavailableError):
        keys.load_or_create(tmp_path / "keys", "builder")


def test_a_key_never_shows_itself(tmp_path: Path) -> None:
    """Its text form names its id only."""
    key = keys.load_or_create(tmp_path, "builder")
    assert repr(key) == f"PrivateKey({key.public.key_id})"


def test_signatures_are_deterministic_and_checked(tmp_path: Path) -> None:
    """The same data gives the same signature; other data does not fit it."""
    key = keys.load_or_create(tmp_path, "builder")
    signature = key.sign(b"data")
    assert key.sign(b"data") == signature
    assert key.public.verify(b"data", signature)
    assert not key.public.verify(b"other", signature)
    assert not key.public.verify(b"data", b"no signature")
    assert not keys.load_or_create(tmp_path, "other").public.verify(b"data", signature)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_our_signatures(tmp_path: Path) -> None:
    """The signature is plain ECDSA over SHA-256."""
    key = keys.load_or_create(tmp_path, "builder")
    (tmp_path / "data").write_bytes(b"data")
    (tmp_path / "signature").write_bytes(key.sign(b"data"))
    command = ["openssl", "dgst", "-sha256", "-verify", "builder.pub", "-signature", "signature"]
    done = subprocess.run([*command, "data"], cwd=tmp_path, capture_output=True, check=False)
    assert done.stdout == b"Verified OK\n"


def test_other_kinds_of_keys_are_refused(tmp_path: Path) -> None:
    """Only EC P-256 signs in the foundation."""
    for key in (ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()):
        path = tmp_path / "key.pem"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        with pytest.raises(InputError, match="not an EC P-256 key"):
            keys.load(path)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        with pytest.raises(InputError, match="not an EC P-256 key"):
            keys.parse_public(public)
        assert not keys.PublicKey(public).verify(b"data", b"signature")


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    """Broken files are named."""
    path = tmp_path / "key.pem"
    path.touch(mode=0o600)
    path.write_text("no key")
    with pytest.raises(InputError, match="not a private key"):
        keys.load(path)
    with pytest.raises(InputError, match="not a public key"):
        keys.load_public(path)
    with pytest.raises(InputError, match="missing"):
        keys.load(tmp_path / "absent.pem")
