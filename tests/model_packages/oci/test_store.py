"""OCI image layouts."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.errors import (
    DigestMismatch,
    InputError,
    RegistryUnavailable,
    UnavailableError,
)
from model_packages.oci import descriptor
from model_packages.oci.descriptor import Descriptor
from model_packages.oci.store import LayoutStore


@pytest.fixture
def store(tmp_path: Path) -> LayoutStore:
    return LayoutStore(tmp_path / "layout").create()


def leftovers(store: LayoutStore) -> list[Path]:
    return list(store.path.rglob("*.part"))


def test_a_layout_is_made_once(store: LayoutStore) -> None:
    """Making it again changes nothing."""
    entry = store.put(b"{}", descriptor.INDEX)
    store.update(lambda entries: (*entries, entry))
    assert store.create().entries() == (entry,)
    assert json.loads((store.path / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_a_blob_reads_back(store: LayoutStore) -> None:
    """What is stored is found by its digest and verified."""
    entry = store.put(b"content", descriptor.LAYER)
    assert store.read(entry) == b"content"
    assert store.verify(entry) is entry
    assert store.holds(entry.digest)


@pytest.mark.parametrize("content", [b"c0ntent", b"content+", b"con", b""])
def test_a_changed_blob_is_refused(store: LayoutStore, content: bytes) -> None:
    """Changed, longer, shorter and empty blobs are all noticed."""
    entry = store.put(b"content", descriptor.LAYER)
    store.blob(entry.digest).write_bytes(content)
    with pytest.raises(DigestMismatch, match="blob was changed"):
        store.read(entry)
    assert not store.holds(entry.digest)


def test_a_damaged_blob_is_repaired_by_storing_it_again(store: LayoutStore) -> None:
    """What is there already is not trusted because of its name."""
    entry = store.put(b"content", descriptor.LAYER)
    store.blob(entry.digest).write_bytes(b"damaged")
    store.put(b"content", descriptor.LAYER)
    assert store.read(entry) == b"content"


def test_a_missing_blob_is_named(store: LayoutStore) -> None:
    """A blob that is not there, or is a link, is missing."""
    entry = store.put(b"content", descriptor.LAYER)
    path = store.blob(entry.digest)
    path.rename(path.with_name("moved"))
    with pytest.raises(DigestMismatch, match="blob is missing"):
        store.read(entry)
    path.symlink_to("moved")
    with pytest.raises(DigestMismatch, match="blob is missing"):
        store.read(entry)


def test_reads_are_bounded(store: LayoutStore) -> None:
    """A manifest of 100 MB is refused by its descriptor, before it is read."""
    entry = Descriptor(descriptor.MANIFEST, digest.of_bytes(b""), 100 * 2**20)
    with pytest.raises(InputError, match="too large"):
        store.read(entry)


def test_an_unexpected_blob_is_not_kept(store: LayoutStore) -> None:
    """A blob that is not what was expected leaves nothing behind."""
    with (
        pytest.raises(DigestMismatch, match="blob was changed"),
        store.writer(digest.of_bytes(b"other")) as writer,
    ):
        writer.write(b"content")
    assert not store.holds(digest.of_bytes(b"content"))
    assert leftovers(store) == []


def test_an_interrupted_write_leaves_nothing(store: LayoutStore) -> None:
    """An error in the middle of a blob leaves no part of it."""

    def interrupted() -> None:
        with store.writer() as writer:
            writer.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert leftovers(store) == []


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """A file where a folder should be says what to do."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="cannot be written"):
        LayoutStore(tmp_path / "file" / "layout").create()
    blocked = LayoutStore(tmp_path / "layout").create()
    (blocked.path / "blobs" / "sha256").rmdir()
    (blocked.path / "blobs" / "sha256").write_text("x")
    with pytest.raises(UnavailableError, match="cannot be written"):
        blocked.put(b"x", descriptor.LAYER)


def test_a_missing_layout_or_package_is_named(store: LayoutStore, tmp_path: Path) -> None:
    """Nothing there, and not this one there, are told apart."""
    with pytest.raises(RegistryUnavailable, match="no packages here"):
        LayoutStore(tmp_path / "absent").entries()
    with pytest.raises(RegistryUnavailable, match=r"package sha256:e3b0.* is not here"):
        store.find(digest.of_bytes(b""))
    assert store.tagged("latest") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("oci-layout", '{"imageLayoutVersion":"2.0.0"}'),
        ("index.json", "[]"),
        ("index.json", '{"schemaVersion":1,"manifests":[]}'),
        ("index.json", '{"schemaVersion":2,"manifests":{}}'),
        ("index.json", '{"schemaVersion":2,"manifests":[{}]}'),
        ("index.json", "{"),
    ],
)
def test_a_malformed_layout_is_refused(store: LayoutStore, name: str, text: str) -> None:
    """Its two documents are read strictly."""
    (store.path / name).write_text(text)
    with pytest.raises(InputError):
        store.entries()


def test_an_update_that_changes_nothing_writes_nothing(store: LayoutStore) -> None:
    """The index is written only when it says something new."""
    before = (store.path / "index.json").stat()
    assert store.update(lambda entries: entries) is False
    assert (store.path / "index.json").stat().st_ino == before.st_ino


def test_concurrent_updates_lose_nothing(store: LayoutStore) -> None:
    """Sixteen writers at once leave sixteen entries."""
    entries = [store.put(b"%d" % number, descriptor.INDEX) for number in range(16)]
    threads = [
        threading.Thread(target=store.update, args=(lambda old, new=entry: (*old, new),))
        for entry in entries
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry.digest for entry in store.entries()} == {entry.digest for entry in entries}
