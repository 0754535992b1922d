"""Unpacking packages."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.base.errors import CaissonError, DigestMismatch, InputError
from model_packages.oci import unpack
from model_packages.oci.unpack import open_package
from tests.fakes import forgery, packages
from tests.fakes.packages import BuiltPackage


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_was_packed_comes_out(built: BuiltPackage, tmp_path: Path) -> None:
    """The model tree equals its source, and the code lies beside it."""
    target = unpack.unpack(built.store, built.reference.digest, tmp_path / "target")
    assert files_in(target / "model") == files_in(built.source)
    assert files_in(target / "runtime") == files_in(built.code)
    assert {path.name for path in target.iterdir()} == {"model", "runtime", "package.json"}


def test_unpacking_twice_leaves_the_folder_alone(built: BuiltPackage, tmp_path: Path) -> None:
    """An existing, whole folder is verified and kept; a changed one is refused."""
    target = unpack.unpack(built.store, built.reference.digest, tmp_path / "target")
    inode = (target / "model" / "model.onnx").stat().st_ino
    unpack.unpack(built.store, built.reference.digest, target)
    assert (target / "model" / "model.onnx").stat().st_ino == inode
    (target / "model" / "config.yaml").write_text("changed")
    with pytest.raises(DigestMismatch, match=r"config.yaml.*was changed"):
        unpack.unpack(built.store, built.reference.digest, target)


def test_an_opened_package_has_all_its_parts(built: BuiltPackage, tmp_path: Path) -> None:
    """A stage gets manifest, settings, cases, record and folders."""
    tree = open_package(built.layout, built.reference.digest, tmp_path / "cache")
    assert tree.manifest.name == "tiny"
    assert tree.settings.max_batch_size == 8
    assert [case.name for case in tree.cases()] == ["valid_01", "valid_02"]
    assert tree.set_digest == built.reference.set_digest
    assert tree.labels["dev.caisson.name"] == "tiny"
    assert tree.graph == {}
    assert (tree.folder / "model.onnx").is_file()
    assert (tree.runtime / "contracts" / "__init__.py").is_file()


def test_opening_again_unpacks_nothing(built: BuiltPackage, tmp_path: Path) -> None:
    """The second time the layers are not needed any more."""
    first = open_package(built.layout, built.reference.digest, tmp_path / "cache")
    inode = (first.folder / "model.onnx").stat().st_ino
    second = open_package(built.layout, built.reference.digest, tmp_path / "cache")
    assert (second.folder / "model.onnx").stat().st_ino == inode


def change(root: Path) -> None:
    (root / "model" / "config.yaml").write_text("max_batch_size: 1\n")


def remove(root: Path) -> None:
    (root / "runtime" / "contracts" / "__init__.py").unlink()


def add(root: Path) -> None:
    (root / "runtime" / "contracts" / "sitecustomize.py").write_text("x")


def add_beside(root: Path) -> None:
    (root / "more").mkdir()


def link(root: Path) -> None:
    path = root / "model" / "model.onnx"
    path.rename(root.parent / "elsewhere.onnx")
    path.symlink_to(root.parent / "elsewhere.onnx")


def edit_record(root: Path) -> None:
    (root / "package.json").write_text("{}")


def replace_by_file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("x")


def replace_by_link(root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "gone")


@pytest.mark.parametrize(
    "damage",
    [change, remove, add, add_beside, link, edit_record, replace_by_file, replace_by_link],
)
def test_damage_to_what_was_unpacked_is_repaired(
    built: BuiltPackage, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """A package is verified each time it is opened, and unpacked again if it was changed."""
    first = open_package(built.layout, built.reference.digest, tmp_path / "cache")
    before = files_in(first.root)
    damage(first.root)
    second = open_package(built.layout, built.reference.digest, tmp_path / "cache")
    assert files_in(second.root) == before
    assert not second.root.is_symlink()


def hostile_tar(edit: Callable[[tarfile.TarInfo], object]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as output:
        info = tarfile.TarInfo("model")
        edit(info)
        output.addfile(info, io.BytesIO(b"\0" * info.size))
    return stream.getvalue()[:1024] + b"\0" * 1024


def climbing(info: tarfile.TarInfo) -> None:
    info.name = "../../escaped"


def absolute(info: tarfile.TarInfo) -> None:
    info.name = "/tmp/escaped"


def linked(info: tarfile.TarInfo) -> None:
    info.type, info.linkname = tarfile.SYMTYPE, "/"


def huge(info: tarfile.TarInfo) -> None:
    info.size = 7 * 2**30


@pytest.mark.parametrize("edit", [climbing, absolute, linked])
def test_a_hostile_layer_writes_nothing(
    built: BuiltPackage, tmp_path: Path, edit: Callable[[tarfile.TarInfo], object]
) -> None:
    """A layer that would leave its folder is refused, and nothing is half visible."""
    forged = forgery.forge(
        built.store, built.reference.digest, layers=lambda them: [*them, hostile_tar(edit)]
    )
    place = tmp_path / "place"
    with pytest.raises(InputError):
        unpack.unpack(built.store, forged, place / "target")
    assert list(place.iterdir()) == []


def test_a_declared_size_is_not_believed(built: BuiltPackage, tmp_path: Path) -> None:
    """A header that promises 7 GiB of nothing writes no more than the layer holds."""
    bomb = hostile_tar(lambda info: setattr(info, "name", "bomb"))[:512]
    info = tarfile.TarInfo("bomb")
    huge(info)
    bomb = info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict") + b"\0" * 1024
    forged = forgery.forge(built.store, built.reference.digest, layers=lambda them: [bomb, *them])
    with pytest.raises(InputError, match="cut short"):
        unpack.unpack(built.store, forged, tmp_path / "place" / "target")
    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.parametrize(
    "rearrange",
    [
        lambda them: them[:-1],
        lambda them: [*them, them[-1]],
        lambda them: [them[0], *them[2:]],
    ],
    ids=["one-less", "one-twice", "no-weights"],
)
def test_layers_that_disagree_with_the_record_are_refused(
    built: BuiltPackage, tmp_path: Path, rearrange: Callable[[list[bytes]], list[bytes]]
) -> None:
    """A package holds exactly the files its record lists."""
    forged = forgery.forge(built.store, built.reference.digest, layers=rearrange)
    with pytest.raises(CaissonError):
        unpack.unpack(built.store, forged, tmp_path / "place" / "target")
    assert list((tmp_path / "place").iterdir()) == []


def test_a_changed_layer_is_refused_as_such(built: BuiltPackage, tmp_path: Path) -> None:
    """A changed byte is reported as a changed blob, wherever in the layer it is."""
    for path in sorted((built.layout / "blobs" / "sha256").iterdir()):
        data = bytearray(path.read_bytes())
        if len(data) < 2000:
            continue
        data[10] ^= 1
        path.write_bytes(data)
        with pytest.raises(DigestMismatch, match="blob was changed"):
            unpack.unpack(built.store, built.reference.digest, tmp_path / "place" / "target")
        data[10] ^= 1
        path.write_bytes(data)
    assert list((tmp_path / "place").iterdir()) == []


def test_a_package_with_a_broken_part_is_not_opened(tmp_path: Path) -> None:
    """A well-packed but malformed configuration is a typed error."""
    built = packages.build(tmp_path / "built", packages.Options(max_batch_size=0))
    with pytest.raises(InputError, match="max_batch_size"):
        open_package(built.layout, built.reference.digest, tmp_path / "cache")
