"""Inventories of trees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.errors import DigestMismatch, InputError, ManifestInvalid
from model_packages.format import inventory


def test_the_set_digest_is_what_sha256sum_gives(source: Path) -> None:
    """Anyone can recompute the identity of the files with the shell."""
    command = "find . -type f -printf '%P\\0' | xargs -0 sha256sum | LC_ALL=C sort | sha256sum"
    done = subprocess.run(
        ["sh", "-c", command], cwd=source, capture_output=True, text=True, check=True
    )
    assert inventory.read(source).set_digest == f"sha256:{done.stdout.split()[0]}"


def test_the_set_digest_knows_content_and_names_only(source: Path) -> None:
    """Times and modes do not count, a changed byte and a changed name do."""
    before = inventory.read(source).set_digest
    os.utime(source / "config.yaml", (1, 1))
    (source / "config.yaml").chmod(0o600)
    assert inventory.read(source).set_digest == before
    (source / "docs" / "usage.md").rename(source / "docs" / "use.md")
    assert inventory.read(source).set_digest != before


def test_sizes_add_up(source: Path) -> None:
    """The size is that of all files together."""
    read = inventory.read(source)
    assert read.size == sum(path.stat().st_size for path in source.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", [".hidden", "a b", "ünïcode", "a\nb", "~x", "-x"])
def test_unusual_names_are_refused(tmp_path: Path, name: str) -> None:
    """Names are plain, so that they mean the same in a shell, a tar and a URL."""
    (tmp_path / name).write_text("x")
    with pytest.raises(ManifestInvalid, match="hidden and unusually named"):
        inventory.read(tmp_path)


def test_links_pipes_and_long_paths_are_refused_together(tmp_path: Path) -> None:
    """Everything that does not belong is named in one error."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    (deep / ("f" * 100)).write_text("x")
    with pytest.raises(ManifestInvalid) as caught:
        inventory.read(tmp_path)
    for words in ("link: links", "loop: links", "pipe: only files", "longer than 200"):
        assert words in str(caught.value)


def test_names_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    """A package unpacks to the same files where letters have no case."""
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "readme.md").write_text("y")
    with pytest.raises(ManifestInvalid, match="case of letters"):
        inventory.read(tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder and a link to one are not read."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("absent", "link"):
        with pytest.raises(InputError, match="not a folder"):
            inventory.read(tmp_path / name)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder cannot make us read without end."""
    monkeypatch.setattr(inventory, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"f{number}").write_text("x")
    with pytest.raises(InputError, match="more than 3 files"):
        inventory.read(tmp_path)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../b", "a//b", "", ".x", "a/.b", "a\\b", 3, "x" * 201]
)
def test_paths_that_could_leave_a_tree_are_refused(path: object) -> None:
    """Only plain relative paths are accepted."""
    with pytest.raises(InputError, match="not a plain path"):
        inventory.check_path(path)


def test_a_tree_that_is_as_promised_passes(source: Path) -> None:
    """Verification returns what it read."""
    promised = inventory.read(source).entries
    assert inventory.verify(source, promised).entries == promised


def test_changes_to_a_tree_are_named(source: Path) -> None:
    """Changed, missing, added and foreign things are told apart."""
    promised = inventory.read(source).entries
    (source / "link").symlink_to("x")
    with pytest.raises(DigestMismatch, match=r"link.*links are not allowed"):
        inventory.verify(source, promised)
    (source / "link").unlink()
    (source / "added.md").write_text("x")
    with pytest.raises(DigestMismatch, match=r"added.md.*was added"):
        inventory.verify(source, promised)
    (source / "added.md").unlink()
    (source / "config.yaml").write_text("x")
    with pytest.raises(DigestMismatch, match=r"config.yaml.*was changed"):
        inventory.verify(source, promised)
    (source / "config.yaml").unlink()
    with pytest.raises(DigestMismatch, match=r"config.yaml.*is missing"):
        inventory.verify(source, promised)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"path": "a", "size": 1},
        {"path": "a", "size": -1, "sha256": digest.of_bytes(b"")},
        {"path": "a", "size": True, "sha256": digest.of_bytes(b"")},
        {"path": "../a", "size": 1, "sha256": digest.of_bytes(b"")},
        {"path": "a", "size": 1, "sha256": "md5:0"},
    ],
)
def test_malformed_entries_are_refused(data: object) -> None:
    """An entry that arrives is read strictly."""
    with pytest.raises(InputError):
        inventory.entry_from_dict(data)
