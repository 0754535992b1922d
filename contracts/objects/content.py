"""Content in an object store, found by its digest: single blobs, and folders of files.

A digest names bytes for ever, so writing twice is writing once, and every read is verified. A
folder is a blob that lists its files; its digest covers paths, contents and executable bits.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest, failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError
from contracts.objects.interface import ObjectStore

_TREE_LIMIT = 16 * 2**20
_MOST_FILES = 20_000
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")


@dataclass(frozen=True)
class TreeEntry:
    """One file of a stored folder.

    Attributes:
        path: Relative path with forward slashes.
        size: Its bytes.
        sha256: Digest of its content.
        executable: Whether its owner may execute it.
    """

    path: str
    size: int
    sha256: Digest
    executable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plain: dict[str, Any] = {"path": self.path, "size": self.size, "sha256": self.sha256}
        return {**plain, "executable": True} if self.executable else plain


def key_of(content: Digest) -> str:
    """Return the key under which content lies."""
    name = digest.parse(content).removeprefix("sha256:")
    return f"blobs/sha256/{name[:2]}/{name}"


def has(store: ObjectStore, content: Digest) -> bool:
    """Return whether content is there and unchanged."""
    present = store.head(key_of(content))
    return present is not None and present.etag == content


def put_bytes(store: ObjectStore, data: bytes) -> Digest:
    """Store bytes and return their digest; damaged bytes under that digest are replaced."""
    content = digest.of_bytes(data)
    if not has(store, content):
        store.put(key_of(content), data)
    return content


def put_file(store: ObjectStore, path: Path) -> Digest:
    """Store a file's bytes and return their digest.

    Raises:
        InputError: If the file cannot be read.
        DigestMismatch: If it changed while it was stored.
    """
    if not path.is_file():
        raise InputError("file is missing or not a plain file", location=str(path))
    content = digest.of_file(path)
    if not has(store, content):
        stored = store.put_file(key_of(content), path)
        if stored.etag != content:
            store.delete(key_of(content))
            raise _changed(str(path), content, stored.etag)
    return content


def get_bytes(store: ObjectStore, content: Digest, *, limit: int) -> bytes:
    """Return verified bytes.

    Raises:
        ObjectMissing: If there is no such content.
        DigestMismatch: If what is stored was changed.
        InputError: If it is larger than ``limit`` bytes.
    """
    key = key_of(content)
    return digest.require(store.get(key, limit=limit), content, where=key)


def fetch(store: ObjectStore, content: Digest, target: Path) -> None:
    """Write content to a file after verifying it.

    Raises:
        ObjectMissing: If there is no such content.
        DigestMismatch: If what is stored was changed; nothing is left at the target.
    """
    store.fetch(key_of(content), target)
    found = digest.of_file(target)
    if found != content:
        target.unlink()
        raise _changed(key_of(content), content, found)


def put_tree(store: ObjectStore, folder: Path) -> Digest:
    """Store a folder's files and return the digest of their list.

    Raises:
        InputError: If the folder is missing, empty of files, or holds a link or device.
    """
    entries = []
    for path in _plain_files(folder):
        name = path.relative_to(folder).as_posix()
        content = put_file(store, path)
        status = path.stat()
        entries.append(
            TreeEntry(name, status.st_size, content, bool(status.st_mode & stat.S_IXUSR))
        )
    if not entries:
        raise InputError("folder holds no files", location=str(folder))
    failpoint.hit("objects.tree.before")
    return put_bytes(store, canonical.dumps([entry.to_dict() for entry in entries]))


def read_tree(store: ObjectStore, tree: Digest) -> tuple[TreeEntry, ...]:
    """Return the files a stored folder holds.

    Raises:
        InputError: If the blob is no list of files, or a path could leave the folder.
    """
    where = key_of(tree)
    items = canonical.loads(get_bytes(store, tree, limit=_TREE_LIMIT), where=where)
    if not isinstance(items, list) or len(items) > _MOST_FILES:
        raise InputError("not a list of files", location=where)
    entries = tuple(_entry(item, where) for item in items)
    names = [entry.path for entry in entries]
    if names != sorted(set(names)):
        raise InputError("paths repeat or are out of order", location=where)
    return entries


def checkout_tree(store: ObjectStore, tree: Digest, target: Path) -> Path:
    """Make a folder hold exactly the files of a stored folder.

    A target that is there already is verified and, where it differs, repaired file by file.

    Returns:
        The target.

    Raises:
        ObjectMissing: If the tree or one of its files is not stored.
        DigestMismatch: If a stored file was changed.
    """
    entries = read_tree(store, tree)
    if not target.exists():
        with files.staging(target) as aside:
            for entry in entries:
                _checkout(store, entry, aside)
            failpoint.hit("objects.checkout.before")
    _repair(store, entries, target)
    return target


def _repair(store: ObjectStore, entries: tuple[TreeEntry, ...], target: Path) -> None:
    wanted = {entry.path for entry in entries}
    for folder, names, plain in os.walk(target, topdown=False):
        for name in plain + [name for name in names if Path(folder, name).is_symlink()]:
            path = Path(folder, name)
            if path.is_symlink() or path.relative_to(target).as_posix() not in wanted:
                path.unlink()
    for entry in entries:
        path = target / entry.path
        whole = path.is_file() and digest.of_file(path) == entry.sha256
        if not whole or bool(path.stat().st_mode & stat.S_IXUSR) != entry.executable:
            _checkout(store, entry, target)


def _checkout(store: ObjectStore, entry: TreeEntry, folder: Path) -> None:
    path = folder / entry.path
    fetch(store, entry.sha256, path)
    path.chmod(0o755 if entry.executable else 0o644)


def _plain_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise InputError("folder is missing", location=str(folder))
    found = sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())
    if len(found) > _MOST_FILES:
        raise InputError(f"folder holds more than {_MOST_FILES} entries", location=str(folder))
    for path in found:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            yield path
        elif not stat.S_ISDIR(mode):
            raise InputError("only files and folders can be stored", location=str(path))


def _entry(item: Any, where: str) -> TreeEntry:
    known = {"path", "size", "sha256", "executable"}
    if not isinstance(item, dict) or not {"path", "size", "sha256"} <= set(item) <= known:
        raise InputError(
            "malformed entry of a list of files", found=repr(item)[:200], location=where
        )
    path, size = item["path"], item["size"]
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(part in (".", "..") or not _NAME.fullmatch(part) for part in parts):
        raise InputError("path could leave the folder", found=repr(path)[:200], location=where)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InputError("size is not a whole number", found=repr(size)[:200], location=where)
    executable = item.get("executable", False)
    return TreeEntry(path, size, digest.parse(item["sha256"], where=where), executable is True)


def _changed(where: str, expected: Digest, found: Digest) -> DigestMismatch:
    return DigestMismatch(
        "content was changed",
        expected=expected,
        found=found,
        location=where,
        remedy="Restore the original, or make it again.",
    )
