"""Building packages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.base.errors import DigestMismatch, InputError, ManifestInvalid
from model_packages.format import layout
from model_packages.oci import build, carried, image
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from tests.fakes import packages
from tests.fakes.packages import BuiltPackage

CORPUS = Path(__file__).parents[2] / "corpus" / "package-0"


def build_from(source: Path, code: Path, target: Path) -> PackageRef:
    files = layout.read_source(source)
    return build.build(files, carried.read_code(code), LayoutStore(target), "tiny")


def test_a_package_has_one_image_of_four_kinds_of_layers(built: BuiltPackage) -> None:
    """Code, weights, documents and configuration travel apart."""
    package = image.read(built.store, built.reference.digest)
    roles = [item.annotations["dev.caisson.layer"] for item in package.layers]
    assert roles == ["runtime", "weights", "documents", "config"]
    assert package.record.set_digest == built.reference.set_digest
    assert package.labels["dev.caisson.base"] == "none"
    assert package.labels["dev.caisson.runtime-version"] == package.record.runtime_digest
    assert package.labels["dev.caisson.feature-version"] == "20131101-0123456789ab"


def test_large_weights_travel_alone(tmp_path: Path) -> None:
    """External data is a layer of its own."""
    source = packages.write_source(tmp_path / "source")
    (source / "model.onnx.data").write_bytes(b"\0" * 4096)
    code = packages.write_runtime(tmp_path / "code")
    reference = build_from(source, code, tmp_path / "layout")
    package = image.read(LayoutStore(tmp_path / "layout"), reference.digest)
    assert [item.annotations["dev.caisson.layer"] for item in package.layers].count("weights") == 2


def test_building_again_changes_nothing(built: BuiltPackage) -> None:
    """The same content is the same package, and no file is written anew."""
    before = {path: path.stat().st_ino for path in built.layout.rglob("*")}
    assert build_from(built.source, built.code, built.layout) == built.reference
    assert {path: path.stat().st_ino for path in built.layout.rglob("*")} == before


def touched(folder: Path) -> None:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, (number, number))


def restricted(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def owned(folder: Path) -> None:
    if os.geteuid() == 0:
        for path in folder.rglob("*"):
            os.chown(path, 12345, 54321)


def rewritten(folder: Path) -> None:
    """Write every file anew in another order, so that the folder lists them differently."""
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in contents:
        path.unlink()
    for path in sorted(contents, reverse=True):
        path.write_bytes(contents[path])


def moved(folder: Path) -> None:
    """Leave the content alone; the copy lies elsewhere already."""


@pytest.mark.parametrize("change", [touched, restricted, owned, rewritten, moved])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_digests_depend_on_content_only(
    built: BuiltPackage, tmp_path: Path, change: Callable[[Path], None], umask: int
) -> None:
    """Time, mode, owner, directory order, path and umask are in no byte."""
    elsewhere = tmp_path / "ein anderer Ort" / "ünïcode"
    shutil.copytree(built.source, elsewhere / "source")
    shutil.copytree(built.code, elsewhere / "code")
    change(elsewhere / "source")
    change(elsewhere / "code")
    before = os.umask(umask)
    try:
        again = build_from(elsewhere / "source", elsewhere / "code", elsewhere / "layout")
    finally:
        os.umask(before)
    assert again == built.reference


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_digests_depend_on_no_environment(
    built: BuiltPackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """Time zone, locale and SOURCE_DATE_EPOCH change nothing."""
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1234567890")
    assert build_from(built.source, built.code, tmp_path / "again") == built.reference


def test_a_changed_setting_sends_only_the_configuration(
    built: BuiltPackage, tmp_path: Path
) -> None:
    """A config-only change leaves the other layers as they are."""
    other = packages.build(tmp_path / "other", packages.Options(max_batch_size=4))
    first = image.read(built.store, built.reference.digest)
    second = image.read(other.store, other.reference.digest)
    same = [a.digest == b.digest for a, b in zip(first.layers, second.layers, strict=True)]
    assert same == [True, True, True, False]
    assert second.layers[-1].size <= 16_000


def test_a_source_that_changes_while_it_is_packed_is_refused(
    built: BuiltPackage, tmp_path: Path
) -> None:
    """What is built is what was examined."""
    files = layout.read_source(built.source)
    (built.source / "docs" / "usage.md").write_text("changed")
    store = LayoutStore(tmp_path / "layout")
    with pytest.raises(DigestMismatch, match="changed while it was packed"):
        build.build(files, carried.read_code(built.code), store, "tiny")
    (built.source / "docs" / "usage.md").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        build.build(files, carried.read_code(built.code), store, "tiny")
    assert store.entries() == ()
    assert list(store.path.rglob("*.part")) == []


def test_a_malformed_manifest_or_name_builds_nothing(built: BuiltPackage, tmp_path: Path) -> None:
    """Refusal leaves no layout behind."""
    files = layout.read_source(built.source)
    packages.edit_json(built.source / "manifest.json", name=None)
    code = carried.read_code(built.code)
    with pytest.raises(ManifestInvalid, match="name: missing"):
        build.build(files, code, LayoutStore(tmp_path / "x"), "tiny")
    with pytest.raises(InputError, match="not a repository name"):
        build.build(files, code, LayoutStore(tmp_path / "x"), "../tiny")
    assert not (tmp_path / "x").exists()


def test_only_code_travels(tmp_path: Path) -> None:
    """Published models, caches, hidden files and texts for people stay behind."""
    code = packages.write_runtime(tmp_path)
    for name in ("published/m/train.py", "__pycache__/a.py", ".hidden.py", "SPEC.md", "data.bin"):
        path = code / "model_packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (code / "model_packages" / "format").mkdir()
    (code / "model_packages" / "format" / "schema.json").write_text("{}")
    assert [entry.path for entry in carried.read_code(code).entries] == [
        "contracts/__init__.py",
        "model_packages/__init__.py",
        "model_packages/format/schema.json",
    ]


def test_code_that_cannot_travel_is_refused(tmp_path: Path) -> None:
    """A missing folder or a link among the code is an error."""
    code = packages.write_runtime(tmp_path)
    (code / "contracts" / "link.py").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="links cannot travel"):
        carried.read_code(code)
    shutil.rmtree(code / "contracts")
    with pytest.raises(InputError, match="runtime is missing"):
        carried.read_code(code)


def test_the_code_of_this_checkout_can_travel(root: Path) -> None:
    """The real folders hold what the runtime needs, and no published model."""
    paths = {entry.path for entry in carried.read_code(root).entries}
    assert {"contracts/base/errors.py", "model_packages/format/manifest.py"} <= paths
    assert not any("published" in path for path in paths)


def test_the_corpus_keeps_its_digests(tmp_path: Path, update_goldens: bool) -> None:
    """The first package ever made is still built to the same digests."""
    golden = CORPUS / "digests.json"
    reference = build_from(CORPUS / "source", CORPUS / "code", tmp_path / "layout")
    found = {"package_digest": reference.digest, "set_digest": reference.set_digest}
    if update_goldens:
        packages.write_json(golden, found)
    assert found == json.loads(golden.read_text())
