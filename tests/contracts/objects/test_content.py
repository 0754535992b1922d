"""Content by digest: written once, verified on every read, whole folders too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base import canonical, digest
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError
from contracts.objects import content
from contracts.objects.folder import FolderStore
from contracts.objects.interface import ObjectMissing


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"a")
    (source / "docs" / "ein Bild ä.bin").write_bytes(bytes(1000))
    (source / "run.sh").write_bytes(b"#!")
    (source / "run.sh").chmod(0o755)
    return source


def _files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    }


def _damage(store: FolderStore, blob: Digest) -> None:
    (store.root / content.key_of(blob)).write_bytes(b"damaged")


def test_bytes_are_found_by_digest(store: FolderStore) -> None:
    """Bytes are stored under their digest, once, and come back verified."""
    blob = content.put_bytes(store, b"data")
    assert blob == digest.of_bytes(b"data") == content.put_bytes(store, b"data")
    assert content.has(store, blob)
    assert content.get_bytes(store, blob, limit=4) == b"data"
    assert len(list(store.keys("blobs/"))) == 1


def test_damaged_blobs_are_refused_and_repaired(store: FolderStore, tmp_path: Path) -> None:
    """Changed bytes are never returned; storing the right ones again repairs them."""
    blob = content.put_bytes(store, b"data")
    _damage(store, blob)
    assert not content.has(store, blob)
    with pytest.raises(DigestMismatch, match="changed"):
        content.get_bytes(store, blob, limit=10)
    with pytest.raises(DigestMismatch):
        content.fetch(store, blob, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    content.put_bytes(store, b"data")
    assert content.has(store, blob)


def test_absent_blobs_are_named(store: FolderStore) -> None:
    """A digest nobody stored is missing; other text is no digest."""
    with pytest.raises(ObjectMissing):
        content.get_bytes(store, digest.of_bytes(b""), limit=1)
    with pytest.raises(InputError, match="not a digest"):
        content.get_bytes(store, Digest("../../etc"), limit=1)


def test_folders_are_checked_out_equal(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    """A folder comes back with the same files and executable bits, under the same digest."""
    tree = content.put_tree(store, folder)
    target = content.checkout_tree(store, tree, tmp_path / "deep" / "target")
    assert _files(target) == _files(folder)
    assert content.put_tree(store, target) == tree
    assert [entry.path for entry in content.read_tree(store, tree)] == sorted(_files(folder))


def test_a_checkout_repairs_what_is_there(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    """Changed, missing, foreign and linked files of an old checkout are put right."""
    tree = content.put_tree(store, folder)
    target = content.checkout_tree(store, tree, tmp_path / "target")
    (target / "a.txt").write_bytes(b"changed")
    (target / "docs" / "foreign").write_bytes(b"")
    (target / "run.sh").chmod(0o644)
    (target / "linked").symlink_to(tmp_path)
    (target / "docs" / "ein Bild ä.bin").unlink()
    (target / "docs" / "ein Bild ä.bin").symlink_to(folder / "docs" / "ein Bild ä.bin")
    content.checkout_tree(store, tree, target)
    assert _files(target) == _files(folder)
    assert not any(path.is_symlink() for path in target.rglob("*"))


def test_a_checkout_is_whole_or_absent(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    """If one file is damaged nothing is checked out."""
    tree = content.put_tree(store, folder)
    _damage(store, digest.of_bytes(b"a"))
    with pytest.raises(DigestMismatch):
        content.checkout_tree(store, tree, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_only_plain_files_are_stored(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    """Links and pipes are refused by name; so are missing and empty folders."""
    (folder / "link").symlink_to(folder / "a.txt")
    with pytest.raises(InputError, match=r"link: only files and folders"):
        content.put_tree(store, folder)
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(InputError, match="pipe"):
        content.put_tree(store, folder)
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "absent"):
        with pytest.raises(InputError):
            content.put_tree(store, place)
    with pytest.raises(InputError, match="missing"):
        content.put_file(store, tmp_path / "absent")


BLOB = digest.of_bytes(b"")
BAD_TREES = {
    "no list": {},
    "no object": [5],
    "unknown field": [{"path": "a", "size": 0, "sha256": BLOB, "mode": 1}],
    "missing field": [{"path": "a", "size": 0}],
    "parent": [{"path": "../a", "size": 0, "sha256": BLOB}],
    "absolute": [{"path": "/a", "size": 0, "sha256": BLOB}],
    "back slash": [{"path": "a\\b", "size": 0, "sha256": BLOB}],
    "number as path": [{"path": 5, "size": 0, "sha256": BLOB}],
    "bad size": [{"path": "a", "size": -1, "sha256": BLOB}],
    "truth as size": [{"path": "a", "size": True, "sha256": BLOB}],
    "bad digest": [{"path": "a", "size": 0, "sha256": "x"}],
    "twice": [{"path": "a", "size": 0, "sha256": BLOB}] * 2,
}


@pytest.mark.parametrize("case", BAD_TREES)
def test_malformed_trees_are_refused(store: FolderStore, tmp_path: Path, case: str) -> None:
    """A list of files that could write elsewhere, or is malformed, is never checked out."""
    tree = content.put_bytes(store, canonical.dumps(BAD_TREES[case]))
    with pytest.raises(InputError):
        content.checkout_tree(store, tree, tmp_path / "target")
    assert not (tmp_path / "target").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    files=st.dictionaries(
        st.text("abcäß ", min_size=1, max_size=5), st.binary(max_size=50), min_size=1, max_size=4
    )
)
def test_any_folder_round_trips(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    """Whatever files a folder holds, the checkout of its digest holds the same."""
    base = tmp_path_factory.mktemp("tree")
    for name, data in files.items():
        (base / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (base / "source" / name).write_bytes(data)
    store = FolderStore(base / "objects")
    tree = content.put_tree(store, base / "source")
    target = content.checkout_tree(store, tree, base / "target")
    assert _files(target) == _files(base / "source")
