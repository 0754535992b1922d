from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.base import files
from contracts.base.errors import InputError, UnavailableError
from tasks.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    return Workspace(tmp_path / "hôme folder", root)


def test_no_umask_lets_others_in(workspace: Workspace) -> None:
    """A wide open umask does not open the home to other people's files."""
    before = os.umask(0)
    try:
        workspace.prepare()
    finally:
        os.umask(before)
    made = [workspace.home, *(path for path in workspace.home.iterdir() if path.is_dir())]
    assert {path.name for path in made if path.stat().st_mode & 0o022} == set()


def test_prepare_makes_every_folder(workspace: Workspace) -> None:
    """After prepare, everything a stage may write to exists, and only the owner enters keys."""
    assert workspace.prepare() is workspace
    for path in (
        workspace.objects_path,
        workspace.prefect,
        workspace.mlflow,
        workspace.targets,
        workspace.environments,
        workspace.locks,
        workspace.reports,
        workspace.tmp,
        workspace.sources,
    ):
        assert path.is_dir()
    assert workspace.keys.stat().st_mode & 0o777 == 0o700
    workspace.prepare()


def test_parts_lie_in_the_home_folder(workspace: Workspace) -> None:
    """Every part is under the home folder, so removing that removes all."""
    parts = (
        workspace.packages("caisson/flight-delay"),
        workspace.registry("flight-delay"),
        workspace.ledger_path,
        workspace.objects_path,
    )
    assert all(part.is_relative_to(workspace.home) for part in parts)


def test_objects_is_a_store_in_the_home_folder(workspace: Workspace) -> None:
    """What is put into the object store lies in the objects folder."""
    workspace.prepare().objects.put("a/b", b"content")
    assert (workspace.objects_path / "a" / "b").read_bytes() == b"content"


def test_sources_may_lie_elsewhere(tmp_path: Path, root: Path) -> None:
    """A data folder that exists already can be used where it is."""
    assert Workspace(tmp_path, root, batches=tmp_path / "data").sources == tmp_path / "data"


@pytest.mark.parametrize("name", ["", "/etc", "../x", "a/../../b", "a//b", ".", "a/."])
def test_a_repository_name_cannot_leave_its_folder(workspace: Workspace, name: str) -> None:
    """A name that would point outside is refused."""
    with pytest.raises(InputError, match="repository name"):
        workspace.registry(name)


def test_a_home_that_cannot_be_made_is_unavailable(tmp_path: Path, root: Path) -> None:
    """A home folder below a plain file is reported with what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="CAISSON_HOME"):
        Workspace(tmp_path / "file" / "home", root).prepare()


def test_sweep_removes_what_interrupted_writes_left(workspace: Workspace) -> None:
    """Half-written files and all work in progress go; finished ones stay."""
    workspace.prepare()
    half = [
        workspace.reports / "trust" / ".x.json.0123456789ab.part",
        workspace.objects_path / "blobs" / ".y.0123456789ab.part",
        workspace.registry("tiny") / "blobs" / ".z.0123456789ab.part",
        workspace.sources / "shop/orders" / ".day.0123456789ab.part" / "part-0.parquet",
        workspace.tmp / "hardware-1" / "model.onnx",
        workspace.tmp / "loose",
    ]
    whole = [
        workspace.reports / "trust" / "x.json",
        workspace.objects_path / "blobs" / "y.part",
        workspace.sources / "shop/orders" / ".day.part" / "part-0.parquet",
        workspace.targets / "local" / ".state.0123456789ab.part",
    ]
    for path in (*half, *whole):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    assert workspace.sweep() == len(half)
    assert not any(path.exists() for path in half)
    assert all(path.exists() for path in whole)
    assert list(workspace.tmp.iterdir()) == []
    assert workspace.sweep() == 0


def test_nothing_is_swept_while_somebody_works(workspace: Workspace) -> None:
    """What another process holds the home's lock for may be half-written on purpose."""
    workspace.prepare()
    leftover = workspace.objects_path / ".x.0123456789ab.part"
    leftover.touch()
    with files.locked(workspace.presence, shared=True):
        assert workspace.sweep() == 0
        assert leftover.exists()
    assert workspace.sweep() == 1


def test_data_outside_the_home_is_never_swept(tmp_path: Path, root: Path) -> None:
    """A folder of sources that belongs to somebody else is left alone."""
    workspace = Workspace(tmp_path / "home", root, batches=tmp_path / "data").prepare()
    leftover = tmp_path / "data" / ".x.0123456789ab.part"
    leftover.parent.mkdir()
    leftover.touch()
    assert workspace.sweep() == 0
    assert leftover.exists()
