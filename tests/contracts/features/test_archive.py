"""The archive is an ordinary tar.gz with fixed bytes, and reading it trusts nothing."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base import digest
from contracts.base.errors import BundleInvalid
from contracts.features import archive

names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
MEMBERS = {"manifest.json": b"{}", "part-00000.parquet": bytes(range(256)) * 300}


def _tar(name: str = "a", data: bytes = b"x", **fields: object) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        item = tarfile.TarInfo(name)
        item.size = len(data)
        for field, value in fields.items():
            setattr(item, field, value)
        tar.addfile(item, io.BytesIO(data) if item.isreg() else None)
    return stream.getvalue()


@given(st.dictionaries(names, st.binary(max_size=2000), max_size=4))
def test_what_is_packed_unpacks(members: dict[str, bytes]) -> None:
    """Any members come back, whatever their order was."""
    packed = archive.pack(members)
    assert archive.unpack(packed, where="here") == members
    assert archive.pack(dict(reversed(members.items()))) == packed


@given(st.dictionaries(names, st.binary(max_size=2000), max_size=4))
def test_ordinary_tools_open_it(members: dict[str, bytes]) -> None:
    """Python's own tar reader finds the same members, with nothing personal in them."""
    with tarfile.open(fileobj=io.BytesIO(archive.pack(members)), mode="r:gz") as tar:
        found = {item.name: tar.extractfile(item).read() for item in tar.getmembers()}
        assert all((item.uid, item.mtime, item.uname) == (0, 0, "") for item in tar.getmembers())
    assert found == members


def test_the_bytes_are_golden() -> None:
    """The archive of given members has the same digest on every machine and version."""
    assert digest.short(digest.of_bytes(archive.pack(MEMBERS))) == "63fd6f66e033"


BAD = {
    "no gzip": b"nothing",
    "empty": b"",
    "no tar": gzip.compress(b"nothing"),
    "no end": gzip.compress(bytes(512)),
    "cut short": archive.pack(MEMBERS)[:-9],
    "tail": archive.pack(MEMBERS) + b"x",
    "two streams": archive.pack(MEMBERS) * 2,
    "cut member": gzip.compress(_tar(data=b"x" * 1000)[:1024]),
    "path": gzip.compress(_tar("../a")),
    "absolute": gzip.compress(_tar("/etc/passwd")),
    "link": gzip.compress(_tar(type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0)),
    "device": gzip.compress(_tar(type=tarfile.CHRTYPE, size=0)),
    "folder": gzip.compress(_tar(type=tarfile.DIRTYPE, size=0)),
    "owner": gzip.compress(_tar(uid=1)),
    "time": gzip.compress(_tar(mtime=1)),
    "mode": gzip.compress(_tar(mode=0o4755)),
    "other end": gzip.compress(_tar()),
}


@pytest.mark.parametrize("case", BAD)
def test_other_archives_are_refused(case: str) -> None:
    """Anything but plain files with fixed headers is a BundleInvalid that names the archive."""
    with pytest.raises(BundleInvalid, match="here"):
        archive.unpack(BAD[case], where="here")


def test_bombs_are_refused() -> None:
    """Neither much data in few bytes nor many members are followed."""
    with pytest.raises(BundleInvalid, match="too large"):
        archive.unpack(gzip.compress(bytes(10**7)), where="here", limit=10**6)
    header = archive.pack({"a": b""})
    tar = zlib.decompress(header, wbits=31)
    many = tar[:512] * 2 + tar[512:]
    with pytest.raises(BundleInvalid, match="repeats"):
        archive.unpack(gzip.compress(many), where="here")


def test_hidden_bytes_between_members_are_refused() -> None:
    """Padding that is not empty could carry something; it is refused."""
    tar = bytearray(zlib.decompress(archive.pack({"a": b"x"}), wbits=31))
    tar[700] = 1
    with pytest.raises(BundleInvalid, match="padded"):
        archive.unpack(gzip.compress(bytes(tar)), where="here")


def test_a_name_must_be_plain() -> None:
    """Names with folders, capitals or nothing in them cannot be packed."""
    for name in ("", "A", "a/b", ".a", "ä", "x" * 100):
        with pytest.raises(BundleInvalid, match="not plain"):
            archive.pack({name: b""})


def test_any_flipped_bit_is_refused_or_harmless() -> None:
    """One flipped bit anywhere: the same members come out, or a BundleInvalid."""
    good = archive.pack(MEMBERS)
    chance = random.Random(8785)
    places = [*range(20), *(chance.randrange(len(good)) for _ in range(300)), len(good) - 1]
    harmless = 0
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << chance.randrange(8)
        try:
            assert archive.unpack(bytes(bad), where="here") == MEMBERS
            harmless += 1
        except BundleInvalid:
            continue
    assert harmless <= 10  # time, hint and system of the gzip header, which carry nothing


def test_a_diagnosis_reads_past_a_wrong_checksum() -> None:
    """Unchecked reading shows the members of an archive whose checksum is wrong."""
    bad = bytearray(archive.pack(MEMBERS))
    bad[-1] ^= 1
    assert archive.unpack(bytes(bad), where="here", checked=False) == MEMBERS
