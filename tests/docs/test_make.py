"""The targets of make that documents name do what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs import documents

# What this file runs itself; everything else has to be run by the pipeline.
RUN_HERE = {"bench", "clean"}


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make with the installation taken as done."""
    done = subprocess.run(
        ["make", "--old-file", "install", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A folder with our Makefile and the tools, and nothing of ours that could get lost."""
    shutil.copy(root / "Makefile", tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(root / ".venv" / "bin")
    return tmp_path


def test_each_target_named_is_run_by_the_pipeline_or_here(root: Path) -> None:
    """No document sends its reader to a target that nothing ever runs."""
    text = (root / ".ci/run").read_text(encoding="utf-8")
    called = re.findall(r"^(?:CAISSON_HOME=\S+ )?make ([a-z-]+)$", text, flags=re.MULTILINE)
    run = set(called) | RUN_HERE
    named = {
        word
        for path in documents.listed(root)
        for said in [
            *documents.mentions(path),
            *(found.text for found in documents.written(path, "make")),
        ]
        for word in re.findall(r"^make ([a-z-]+)", said)
    }
    assert named - run == set()


def test_clean_removes_what_was_made(checkout: Path) -> None:
    """After ``make clean`` neither the installation nor anything a demo left is there."""
    made = [".caisson", ".mypy_cache", "build", "tasks/__pycache__"]
    for name in made:
        (checkout / name).mkdir(parents=True)
    _make(checkout, "clean")
    assert [name for name in [*made, ".venv"] if (checkout / name).exists()] == []
    assert (checkout / "Makefile").is_file()


def test_make_alone_lists_the_targets(checkout: Path) -> None:
    """``make`` without a target does nothing but say what there is."""
    assert "make demo" in _make(checkout).stdout


@pytest.mark.slow
def test_bench_measures(root: Path) -> None:
    """``make bench`` runs the measurements and passes its arguments on."""
    assert '"caisson status"' in _make(root, "bench", "ARGS=--quick --json").stdout
