"""The files of a package."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from contracts.base.errors import ManifestInvalid
from model_packages.format import layout, levels


def rules(folder: Path) -> dict[str, str]:
    return {finding.location: finding.rule for finding in layout.examine(folder)[1]}


def test_a_good_source_has_no_findings(source: Path) -> None:
    """The tiny package has all it needs and nothing else."""
    files = layout.read_source(source)
    assert files.folder == source
    assert len(files.entries) == 9


def test_everything_wrong_is_found_at_once(source: Path) -> None:
    """A person cleans up a source in one go."""
    (source / "health_check.py").unlink()
    (source / "docs" / "usage.md").unlink()
    (source / "weights.pkl").write_bytes(b"x")
    (source / "notes.md").write_text("x")
    (source / "docs" / "run.sh").write_text("x")
    (source / "link").symlink_to("model.onnx")
    (source / "__pycache__").mkdir()
    (source / "__pycache__" / "train.pyc").write_bytes(b"x")
    assert rules(source) == {
        "health_check.py": "package.file-missing",
        "docs": "package.file-missing",
        "weights.pkl": "package.pickle",
        "notes.md": "package.file-unknown",
        "docs/run.sh": "package.file-forbidden",
        "link": "package.file-forbidden",
        "__pycache__/train.pyc": "package.file-forbidden",
    }
    with pytest.raises(ManifestInvalid) as caught:
        layout.read_source(source)
    assert all(name in str(caught.value) for name in rules(source))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_known_by_its_content(source: Path, protocol: int) -> None:
    """A harmless name does not hide a pickle."""
    (source / "docs" / "table.csv").write_bytes(pickle.dumps({"a": 1}, protocol=protocol))
    assert rules(source) == {"docs/table.csv": "package.pickle"}


def test_an_archive_of_weights_is_refused(source: Path) -> None:
    """torch.save writes a zip of pickles."""
    (source / "docs" / "table.csv").write_bytes(b"PK\x03\x04rest")
    assert rules(source) == {"docs/table.csv": "package.pickle"}


def test_an_empty_file_is_no_pickle(source: Path) -> None:
    """Sniffing does not fall over short files."""
    (source / "docs" / "empty.txt").write_bytes(b"")
    (source / "docs" / "short.txt").write_bytes(b"\x80")
    assert rules(source) == {}


def test_large_texts_are_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only weights may be large."""
    monkeypatch.setattr(layout, "_LARGEST_TEXT_FILE", 400)
    assert rules(source) == {"manifest.json": "package.file-size"}


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("model.onnx", "weights"),
        ("model.onnx.data", "weights"),
        ("manifest.json", "config"),
        ("config.yaml", "config"),
        ("docs/usage.md", "documents"),
        ("train.py", "documents"),
    ],
)
def test_files_have_roles(path: str, role: str) -> None:
    """What changes together travels together."""
    assert layout.role(path) == role


def test_levels_are_ordered() -> None:
    """A higher level meets the demands of a lower one, and nothing meets any."""
    assert levels.meets("L2", "L1")
    assert not levels.meets("L1", "L2")
    assert not levels.meets(None, "L1")
    assert levels.up_to("L2") == ("L1", "L2")
