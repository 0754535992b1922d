"""Readers get exactly the version they ask for, verified cell by cell, or an error."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import compute, parquet

from contracts.base import canonical, digest
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid, DigestMismatch, InputError, IntegrityError
from contracts.features import archive, bundle, cells, pointer, reader
from contracts.features.store import FeatureVersion
from contracts.objects.folder import FolderStore
from contracts.objects.interface import ObjectMissing
from tests.fakes import observations

NAME = "small/trips/lateness"
PART = "part-00000.parquet"


def _open(store: FolderStore, published: FeatureVersion, **options: Any) -> reader.Bundle:
    return reader.open_version(store, NAME, published.pointer.version, **options)


def _members(store: FolderStore, published: FeatureVersion) -> dict[str, bytes]:
    return archive.unpack(store.get(published.pointer.archive, limit=archive.LIMIT), where="")


def _repack(
    store: FolderStore, published: FeatureVersion, members: dict[str, bytes], *, hide: bool = False
) -> None:
    """Write an archive back; ``hide`` makes the pointer name its new digest."""
    packed = archive.pack(members)
    store.put(published.pointer.archive, packed)
    if hide:
        other = replace(published.pointer, sha256=digest.of_bytes(packed), size=len(packed))
        store.put(pointer.key_of(NAME, published.pointer.version), other.dumps())


def _rewritten(part: bytes, change: Callable[[Any], Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    table = change(parquet.read_table(pyarrow.BufferReader(part)))
    parquet.write_table(table, stream, **options)
    return stream.getvalue()


def _with_cell(column: str, row: int, value: Any) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        values = table[column].to_pylist()
        values[row] = value
        position = table.column_names.index(column)
        return table.set_column(position, column, pyarrow.array(values, table[column].type))

    return change


def test_a_bundle_is_what_the_join_made(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """Table and Parquet file hold the rows in order, and the root is computed from them."""
    found = _open(store, published, target=tmp_path / "target", root=published.pointer.root)
    assert found.table().to_pylist() == observations.expected(observations.ordinary())
    assert found.root == published.manifest.root
    assert found.version == published.pointer.version
    assert found.parquet == tmp_path / "target" / PART
    assert parquet.read_table(found.parquet).to_pylist() == found.table().to_pylist()
    assert _open(store, published).parquet is None


def test_an_old_target_is_verified(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """A file that is there already is kept if it is right and replaced if it is not."""
    path = _open(store, published, target=tmp_path).parquet
    assert path is not None
    before = path.stat().st_mtime_ns
    _open(store, published, target=tmp_path)
    assert path.stat().st_mtime_ns == before
    path.write_bytes(b"changed")
    _open(store, published, target=tmp_path)
    assert digest.of_file(path) == published.manifest.parts[0].sha256


def test_versions_are_listed_in_order(store: FolderStore, published: FeatureVersion) -> None:
    """All published versions are found, of one definition or of all; strangers are not."""
    store.put("features/small/trips/lateness/notes.json", b"{}")
    assert list(pointer.published(store)) == [published.pointer]
    assert list(pointer.published(store, NAME)) == [published.pointer]
    assert list(pointer.published(store, "small/trips/other")) == []


def test_what_is_not_published_is_missing(store: FolderStore, published: FeatureVersion) -> None:
    """Another version is an error that says what to do, not the nearest one."""
    with pytest.raises(ObjectMissing, match=r"not published.*caisson features list"):
        reader.open_version(store, NAME, "20200301-000000000000")
    with pytest.raises(BundleInvalid, match="not a feature version"):
        reader.open_version(store, NAME, "latest")
    store.delete(published.pointer.archive)
    with pytest.raises(ObjectMissing):
        _open(store, published)


def test_the_whole_root_can_be_demanded(store: FolderStore, published: FeatureVersion) -> None:
    """Who recorded the root gets that root or an error."""
    with pytest.raises(DigestMismatch, match="another root"):
        _open(store, published, root=Digest("sha256:" + "0" * 64))


@pytest.mark.parametrize("hide", [False, True], ids=["archive changed", "pointer changed too"])
@pytest.mark.parametrize(
    ("column", "value"),
    [("warmth", 7.5), ("place", "C"), ("late", True), ("number", 5), ("age", None)],
)
def test_a_changed_cell_is_named(
    store: FolderStore, published: FeatureVersion, column: str, value: Any, hide: bool
) -> None:
    """One changed value, in a file that is otherwise perfect, is refused by column and rows."""
    members = _members(store, published)
    members[PART] = _rewritten(members[PART], _with_cell(column, 1, value))
    _repack(store, published, members, hide=hide)
    with pytest.raises(DigestMismatch, match=rf"column {column}, rows 0 to \d+ \(2020-02-28"):
        _open(store, published)


def test_a_forged_manifest_does_not_help(store: FolderStore, published: FeatureVersion) -> None:
    """If cell and manifest are changed to fit each other, the root no longer fits the version."""
    members = _members(store, published)
    members[PART] = _rewritten(members[PART], _with_cell("warmth", 1, 7.5))
    part = replace(
        published.manifest.parts[0], size=len(members[PART]), sha256=digest.of_bytes(members[PART])
    )
    manifest = published.manifest
    table = parquet.read_table(pyarrow.BufferReader(members[PART]))
    measured = cells.measure(table).digests
    columns = tuple(replace(item, cells=measured[item.name]) for item in manifest.columns)
    forged = replace(manifest, columns=columns, parts=(part,))
    members[bundle.MANIFEST] = forged.dumps()
    _repack(store, published, members, hide=True)
    with pytest.raises(DigestMismatch, match="another root than published"):
        _open(store, published)
    with pytest.raises(DigestMismatch, match="another root than published"):
        reader.read_manifest(store, published.pointer)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "row lost": lambda table: table.slice(1),
    "rows swapped": lambda table: table.take([1, 0, *range(2, table.num_rows)]),
    "column lost": lambda table: table.drop_columns(["warmth"]),
    "column renamed": lambda table: table.rename_columns(
        [name.replace("warmth", "heat") for name in table.column_names]
    ),
    "columns swapped": lambda table: table.select(list(reversed(table.column_names))),
    "other type": lambda table: table.set_column(
        4, "warmth", compute.cast(table["warmth"], pyarrow.float64())
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_table_is_refused(
    store: FolderStore, published: FeatureVersion, case: str
) -> None:
    """Rows and columns can neither go, come, move nor change their type."""
    members = _members(store, published)
    members[PART] = _rewritten(members[PART], CHANGES[case])
    _repack(store, published, members, hide=True)
    with pytest.raises((DigestMismatch, BundleInvalid)):
        _open(store, published)


def test_other_bytes_of_the_same_values_are_refused(
    store: FolderStore, published: FeatureVersion
) -> None:
    """A part written anew with equal values is not the part that was published."""
    members = _members(store, published)
    members[PART] = _rewritten(members[PART], lambda table: table, compression="none")
    _repack(store, published, members, hide=True)
    with pytest.raises(DigestMismatch, match="content was changed"):
        _open(store, published)


def test_members_must_be_those_of_the_manifest(
    store: FolderStore, published: FeatureVersion
) -> None:
    """A missing manifest and a foreign member are refused by name."""
    members = _members(store, published)
    for wrong, message in (
        ({PART: members[PART]}, r"no manifest\.json"),
        ({**members, "more.txt": b""}, r"more\.txt"),
    ):
        _repack(store, published, wrong, hide=True)
        with pytest.raises(BundleInvalid, match=message):
            _open(store, published)


def test_a_flipped_bit_names_the_part(store: FolderStore, published: FeatureVersion) -> None:
    """Damage on disk within the data is told as damage of the part."""
    data = bytearray(store.get(published.pointer.archive, limit=archive.LIMIT))
    data[data.index(b"PAR1") + 50] ^= 1
    store.put(published.pointer.archive, bytes(data))
    with pytest.raises(DigestMismatch, match=rf"part {PART} was changed"):
        _open(store, published)
    store.put(published.pointer.archive, bytes(data[:100]))
    with pytest.raises(DigestMismatch, match="archive was changed"):
        _open(store, published)


BAD_POINTERS: dict[str, dict[str, Any]] = {
    "unknown field": {"more": 1},
    "format": {"format_version": 1},
    "another version": {"version": "20200301-000000000000"},
    "another definition": {"definition": "small/trips/other"},
    "another archive": {"archive": "features/small/trips/lateness/x.tar.gz"},
    "another root": {"root": "sha256:" + "0" * 64},
    "bad root": {"root": "x"},
    "bad size": {"size": -1},
}


@pytest.mark.parametrize("case", BAD_POINTERS)
def test_malformed_pointers_are_refused(
    store: FolderStore, published: FeatureVersion, case: str
) -> None:
    """A pointer leads to its own version and archive, or nowhere."""
    key = pointer.key_of(NAME, published.pointer.version)
    plain = canonical.loads(store.get(key, limit=9999))
    store.put(key, canonical.dumps({**plain, **BAD_POINTERS[case]}))
    with pytest.raises(BundleInvalid):
        _open(store, published)


@pytest.mark.parametrize("hide", [False, True], ids=["archive changed", "pointer changed too"])
def test_any_flipped_bit_is_refused_or_harmless(
    store: FolderStore, published: FeatureVersion, hide: bool
) -> None:
    """One flipped bit anywhere in the archive: an error of ours, or the identical content."""
    good = store.get(published.pointer.archive, limit=archive.LIMIT)
    rows = _open(store, published).table()
    chance = random.Random(20131101)
    refused = 0
    for _ in range(150):
        bad = bytearray(good)
        bad[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        other = replace(published.pointer, sha256=digest.of_bytes(bytes(bad)))
        store.put(published.pointer.archive, bytes(bad))
        if hide:
            store.put(pointer.key_of(NAME, published.pointer.version), other.dumps())
        try:
            assert _open(store, published).table().equals(rows)
        except (InputError, IntegrityError):
            refused += 1
    assert refused >= 140


@pytest.mark.parametrize("checksums", [True, False], ids=["page checksums", "without"])
def test_any_flipped_bit_of_the_part_is_refused_or_harmless(
    store: FolderStore, published: FeatureVersion, checksums: bool
) -> None:
    """A damaged part in a fresh archive reaches the Parquet reader, and never a caller."""
    members = _members(store, published)
    part = _rewritten(members[PART], lambda table: table, write_page_checksum=checksums)
    rows = _open(store, published).table()
    chance = random.Random(20131201)
    for _ in range(150):
        bad = bytearray(part)
        bad[chance.randrange(len(part))] ^= 1 << chance.randrange(8)
        packed = archive.pack({**members, PART: bytes(bad)})
        with contextlib.suppress(InputError, IntegrityError):
            found, _ = reader.verify(packed, where="here")
            assert found.table().equals(rows)
