"""Home folders at different points of a release's life, built once and copied."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from model_packages.oci.reference import PackageRef
from tests.tasks.release.scene import Scene


@dataclass(frozen=True)
class Prepared:
    """A scene and its packages, oldest first."""

    scene: Scene
    refs: Sequence[PackageRef]


_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory where there is one: these tests write to disk thousands of times."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("release")
        return
    with tempfile.TemporaryDirectory(prefix="caisson-", dir=_MEMORY) as name:
        yield Path(name)


@pytest.fixture
def folder(memory: Path) -> Iterator[Path]:
    """An empty folder for one test."""
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def template(memory: Path) -> Prepared:
    """A home with three packages: two released, the third only built."""
    scene = Scene(memory / "template" / "home")
    refs = [scene.build(f"1.0.{number}", 2.0 + number) for number in range(3)]
    for ref in refs[:2]:
        scene.release(ref)
    shutil.rmtree(scene.home / "work")
    return Prepared(scene, refs)


@pytest.fixture(scope="session")
def deployed_template(template: Prepared, memory: Path) -> Prepared:
    """The same with the first release live."""
    scene = Scene(memory / "deployed" / "home")
    shutil.copytree(template.scene.home, scene.home)
    scene.deploy(template.refs[0])
    return Prepared(scene, template.refs)


@pytest.fixture
def prepared(template: Prepared, folder: Path) -> Prepared:
    """A copy of the home in which nothing was deployed yet."""
    return _copy(template, folder)


@pytest.fixture
def deployed(deployed_template: Prepared, folder: Path) -> Prepared:
    """A copy of the home in which the first release is live."""
    return _copy(deployed_template, folder)


def _copy(source: Prepared, folder: Path) -> Prepared:
    home = folder / "home"
    shutil.copytree(source.scene.home, home)
    return Prepared(Scene(home), source.refs)
