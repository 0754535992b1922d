"""Layers."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base import digest
from contracts.base.errors import DigestMismatch, InputError, UnavailableError
from model_packages.format.inventory import FileEntry
from model_packages.oci import tarlayer
from model_packages.oci.tarlayer import Member


def packed(folder: Path, contents: dict[str, bytes]) -> bytes:
    members = []
    for number, (name, data) in enumerate(contents.items()):
        source = folder / f"source-{number}"
        source.write_bytes(data)
        members.append(Member(FileEntry(name, len(data), digest.of_bytes(data)), source, name))
    stream = io.BytesIO()
    tarlayer.pack(members, stream.write)
    return stream.getvalue()


def extracted(data: bytes, target: Path) -> dict[str, bytes]:
    target.mkdir()
    entries = tarlayer.extract(io.BytesIO(data), target)
    found = {path.relative_to(target).as_posix(): path for path in target.rglob("*")}
    contents = {name: path.read_bytes() for name, path in found.items() if path.is_file()}
    assert {entry.path: entry.sha256 for entry in entries} == {
        name: digest.of_bytes(content) for name, content in contents.items()
    }
    return contents


NAME = st.from_regex(r"\A[a-z][a-z.]{0,3}\Z")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.dictionaries(st.tuples(NAME, NAME).map("/".join), st.binary(max_size=1200)))
def test_what_is_packed_comes_out_again(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    """Packing and extracting are inverse, and the order of files does not matter."""
    folder = tmp_path_factory.mktemp("layer")
    data = packed(folder, contents)
    assert extracted(data, folder / "out") == contents
    assert packed(folder, dict(reversed(list(contents.items())))) == data


def test_other_tools_read_our_layers(tmp_path: Path) -> None:
    """A layer is an ordinary tar file without times and owners."""
    data = packed(tmp_path, {"model/docs/a.md": b"a" * 600, "model/b": b""})
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
    assert [(item.name, item.size) for item in members] == [
        ("model", 0),
        ("model/b", 0),
        ("model/docs", 0),
        ("model/docs/a.md", 600),
    ]
    assert {(item.mtime, item.uid, item.gid, item.uname, item.gname) for item in members} == {
        (0, 0, 0, "", "")
    }
    assert {item.mode for item in members} == {0o644, 0o755}


@pytest.mark.parametrize("content", [b"longer", b"x", b"b"])
def test_a_file_that_changes_while_it_is_packed_is_refused(tmp_path: Path, content: bytes) -> None:
    """The layer holds what was inventoried or is not made."""
    source = tmp_path / "a"
    source.write_bytes(content)
    member = Member(FileEntry("a", 2, digest.of_bytes(b"ab")), source, "a")
    with pytest.raises(DigestMismatch, match="changed while it was packed"):
        tarlayer.pack([member], io.BytesIO().write)


def test_a_path_no_header_can_hold_is_refused(tmp_path: Path) -> None:
    """A long last part has no place in a tar header."""
    with pytest.raises(InputError, match="does not fit"):
        packed(tmp_path, {"a" * 150: b""})


Edit = Callable[[tarfile.TarInfo], object]


def archive(*edits: Edit, content: bytes = b"content") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as output:
        for edit in edits:
            info = tarfile.TarInfo("a")
            info.size = len(content)
            edit(info)
            plain = info.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
            output.addfile(info, io.BytesIO(content) if plain else None)
    return stream.getvalue()


def named(name: str) -> Edit:
    return lambda info: setattr(info, "name", name)


def kind(value: bytes, target: str = "/etc/passwd") -> Edit:
    def edit(info: tarfile.TarInfo) -> None:
        info.type, info.linkname, info.size = value, target, 0

    return edit


def with_field(name: str, value: object) -> Edit:
    return lambda info: setattr(info, name, value)


def untouched(info: tarfile.TarInfo) -> None:
    del info


HOSTILE = {
    "absolute": (archive(named("/etc/passwd")), "not a plain path"),
    "parent": (archive(named("../../escaped")), "not a plain path"),
    "inner-parent": (archive(named("a/../../escaped")), "not a plain path"),
    "hidden": (archive(named(".profile")), "not a plain path"),
    "symbolic-link": (archive(kind(tarfile.SYMTYPE)), "a symbolic link is not allowed"),
    "hard-link": (archive(kind(tarfile.LNKTYPE)), "a hard link is not allowed"),
    "device": (archive(kind(tarfile.CHRTYPE)), "a device is not allowed"),
    "block-device": (archive(kind(tarfile.BLKTYPE)), "a device is not allowed"),
    "pipe": (archive(kind(tarfile.FIFOTYPE)), "a pipe is not allowed"),
    "sparse": (archive(kind(tarfile.GNUTYPE_SPARSE)), "a sparse file is not allowed"),
    "twice": (archive(untouched, untouched), "repeat or are out of order"),
    "out-of-order": (archive(named("b"), named("a")), "repeat or are out of order"),
    "without-folder": (archive(named("a/b")), "before its folder"),
    "long-name": (archive(named("a/" * 110 + "b")), "not a plain path"),
    "setuid": (archive(with_field("mode", 0o4755)), "not in canonical form"),
    "owned": (archive(with_field("uid", 1000)), "not in canonical form"),
    "dated": (archive(with_field("mtime", 1)), "not in canonical form"),
    "named-owner": (archive(with_field("uname", "root")), "not in canonical form"),
    "record-padding": (archive(untouched), "bytes follow"),
    "cut-short": (archive(untouched)[:700], "cut short"),
    "no-tar": (b"\x01" * 1024, "not a tar header"),
    "empty": (b"", "cut short"),
    "one-end-block": (b"\0" * 512, "cut short"),
    "half-end": (b"\0" * 512 + b"\1" * 512, "bytes follow the end"),
    "appended": (b"\0" * 1024 + b"\0", "bytes follow the end"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing but our own canonical form is extracted, and nothing lands outside."""
    data, words = HOSTILE[name]
    target = tmp_path / "inner" / "target"
    target.mkdir(parents=True)
    with pytest.raises(InputError, match=words):
        tarlayer.extract(io.BytesIO(data), target)
    outside = {path.name for path in tmp_path.rglob("*")} - {"inner", "target", "a", "b"}
    assert outside == set()


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """A target that vanished is no fault of the layer."""
    data = packed(tmp_path, {"a": b"x"})
    with pytest.raises(UnavailableError, match="cannot be written"):
        tarlayer.extract(io.BytesIO(data), tmp_path / "gone")


def test_a_file_and_a_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    """A layer cannot put a folder where its file is."""
    with pytest.raises(InputError, match="given twice"):
        extracted(packed(tmp_path, {"a": b"x", "a/b": b"y"}), tmp_path / "out")


def test_padding_that_hides_bytes_is_refused(tmp_path: Path) -> None:
    """No byte of a layer is without meaning."""
    data = bytearray(packed(tmp_path, {"a": b"x"}))
    data[512 + 100] = 1
    with pytest.raises(InputError, match="padding is not zero"):
        extracted(bytes(data), tmp_path / "out")


def test_a_size_beyond_the_archive_is_refused(tmp_path: Path) -> None:
    """A header that promises more than follows does not make us read without end."""
    data = packed(tmp_path, {"a": b"x" * 2000})
    with pytest.raises(InputError, match="cut short"):
        extracted(data[:1500], tmp_path / "out")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 4095), value=st.integers(0, 255))
def test_any_changed_byte_is_content_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    """One changed byte changes a file's content or makes the layer malformed."""
    folder = tmp_path_factory.mktemp("layer")
    contents = {"m/a": b"first", "m/b": b"second"}
    data = bytearray(packed(folder, contents))
    same = data[place % len(data)] == value
    data[place % len(data)] = value
    try:
        assert (extracted(bytes(data), folder / "out") == contents) is same
    except InputError:
        assert not same
