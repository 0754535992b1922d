"""The promise of the box: change one byte anywhere, and it is refused or was no part of it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base.errors import CaissonError
from model_packages.oci import image, referrers, unpack
from model_packages.oci.keys import PublicKey
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import VerifiedSignature, verify_signature
from tests.fakes import packages
from tests.fakes.packages import BuiltPackage

Signed = tuple[BuiltPackage, PublicKey]
Accepted = tuple[VerifiedSignature, set[Path]]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return packages.build_signed(tmp_path_factory.mktemp("signed"))


def part_of_package(built: BuiltPackage) -> set[Path]:
    """Return the files whose every byte is covered by the digest or the signature."""
    package = image.read(built.store, built.reference.digest)
    blobs = [*package.blobs, package.index]
    for referrer in referrers.listed(built.store, built.reference.digest):
        blobs += [referrer.manifest, referrer.payload]
    entry = built.store.tagged(referrers.tag_of(built.reference.digest))
    assert entry is not None
    return {built.store.blob(blob.digest) for blob in [*blobs, entry]}


def accept(built: BuiltPackage, key: PublicKey, target: Path) -> Accepted:
    """Do what a deployment does: verify the signature, then unpack."""
    verified = verify_signature(built.store, built.reference.digest, [key])
    root = unpack.unpack(built.store, built.reference.digest, target)
    return verified, {path.relative_to(root) for path in root.rglob("*")}


@pytest.fixture(scope="module")
def genuine(signed: Signed, tmp_path_factory: pytest.TempPathFactory) -> Accepted:
    return accept(*signed, tmp_path_factory.mktemp("genuine") / "target")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_one_changed_byte_is_refused_or_was_no_part(
    signed: Signed,
    genuine: Accepted,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    """For any byte of any file: refused, or what was verified and unpacked is the same."""
    built, key = signed
    files = sorted(
        path for path in built.layout.rglob("*") if path.is_file() and path.stat().st_size
    )
    path = data.draw(st.sampled_from(files), label="file")
    content = path.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1), label="place")
    value = content[place] ^ data.draw(st.integers(1, 255), label="change")
    folder = tmp_path_factory.mktemp("tampered")
    try:
        path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
        try:
            after = accept(built, key, folder / "after")
        except CaissonError:
            assert not (folder / "after").exists()
            return
        assert path not in part_of_package(built)
        assert after == genuine
    finally:
        path.write_bytes(content)
        shutil.rmtree(folder)


def test_every_blob_of_the_package_is_covered(signed: Signed, tmp_path: Path) -> None:
    """A changed byte in any blob of package or signature is always refused."""
    built, key = signed
    choice = random.Random(7)
    for path in sorted(part_of_package(built)):
        content = path.read_bytes()
        for place in (0, len(content) - 1, choice.randrange(len(content))):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(CaissonError):
                accept(built, key, tmp_path / "target")
        path.write_bytes(content)
    assert not (tmp_path / "target").exists()


def test_truncated_swapped_padded_and_appended_blobs_are_refused(
    signed: Signed, tmp_path: Path
) -> None:
    """Whole-blob changes are refused like single bytes."""
    built, key = signed
    paths = sorted(part_of_package(built))
    for path, other in zip(paths, paths[1:] + paths[:1], strict=True):
        content = path.read_bytes()
        for changed in (b"", content[:-1], content + b"\0", b"\0" + content, other.read_bytes()):
            path.write_bytes(changed)
            with pytest.raises(CaissonError):
                accept(built, key, tmp_path / "target")
        path.write_bytes(content)


def test_a_moved_tag_moves_no_digest(signed: Signed) -> None:
    """Tags are for people; a package is found by its digest whatever they say."""
    built, _ = signed
    store = LayoutStore(built.layout)
    before = store.entries()
    store.update(
        lambda entries: tuple(
            entry.tagged("latest") if entry.digest == built.reference.digest else entry
            for entry in entries
        )
    )
    assert image.verify(store, built.reference.digest).record.name == "tiny"
    store.update(lambda _: before)
