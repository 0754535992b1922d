"""Bundles are deterministic, and a version exists only once its content was verified."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.base import canonical
from contracts.base.digest import Digest
from contracts.base.errors import (
    BundleInvalid,
    ContractInvalid,
    DigestMismatch,
    OverwriteRefused,
)
from contracts.base.progress import Progress
from contracts.features import archive, pointer, reader
from contracts.features.inputs import InputFile
from contracts.features.store import FeatureVersion, publish, snapshot
from contracts.objects.folder import FolderStore
from contracts.objects.interface import ObjectInfo
from tests.contracts.features.conftest import AS_OF
from tests.fakes import observations


def _snapshot(store: FolderStore, folder: Path, **options: Any) -> FeatureVersion:
    world = options.pop("world", None) or observations.ordinary()
    data = options.pop("data", None) or observations.inputs(
        folder, world, cut=options.pop("cut", 1)
    )
    settings = {"as_of": AS_OF, "provenance": {}, **options}
    return snapshot(observations.definition(), data, store=store, **settings)


def _packed(store: FolderStore, published: FeatureVersion) -> bytes:
    return store.get(published.pointer.archive, limit=archive.LIMIT)


def test_a_bundle_is_stored_under_its_version(
    store: FolderStore, published: FeatureVersion
) -> None:
    """Archive, provenance and pointer lie where the version says; nothing else is there."""
    version = published.pointer.version
    folder = f"features/small/trips/lateness/{version}"
    name = f"feature_bundle_{version.replace('-', '_')}.tar.gz"
    assert list(store.keys("")) == [
        f"{folder}.json",
        f"{folder}/{name}",
        f"{folder}/provenance.json",
    ]
    assert canonical.loads(store.get(f"{folder}/provenance.json", limit=999)) == {"host": "here"}
    assert version.startswith("20200301-")
    assert version.endswith(published.manifest.root[7:19])


def test_the_same_content_is_the_same_bytes_elsewhere(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """Other folder, order of files and rows, wall time and provenance: not a byte differs."""
    world = {kind: rows[::-1] for kind, rows in observations.ordinary().items()}
    other = FolderStore(tmp_path / "ein anderer Ort ä")
    made = _snapshot(other, tmp_path / "data", world=world, cut=3, provenance={"host": "there"})
    assert made.pointer == published.pointer
    assert _packed(other, made) == _packed(store, published)


_ELSEWHERE = """
import os, sys, time
from pathlib import Path
os.environ["TZ"] = "Asia/Kathmandu"; time.tzset()
from contracts.features.store import snapshot
from contracts.objects.folder import FolderStore
from tests.contracts.features.conftest import AS_OF
from tests.fakes import observations
folder = Path(sys.argv[1])
data = observations.inputs(folder / "data", observations.ordinary())
made = snapshot(
    observations.definition(), data, as_of=AS_OF, store=FolderStore(folder), provenance={}
)
print(made.pointer.sha256)
"""


def test_another_process_makes_the_same_bytes(
    published: FeatureVersion, tmp_path: Path, root: Path
) -> None:
    """Hash seed, zone, locale and user name of a process leave no trace."""
    environment = {**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C", "USER": "nobody"}
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(tmp_path)],
        cwd=root,
        env={**environment, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == published.pointer.sha256


def test_other_content_is_another_version(published: FeatureVersion, tmp_path: Path) -> None:
    """One changed value, batch or definition gives another root; another date only its date."""
    store = FolderStore(tmp_path / "objects")
    world = observations.ordinary()
    world["weather"][0]["warmth"] = 99.0
    roots = {published.manifest.root}
    roots.add(_snapshot(store, tmp_path / "a", world=world).manifest.root)
    data = observations.inputs(tmp_path / "b", observations.ordinary())
    batch = replace(data["trips"].batches[0], digest=Digest("sha256:" + "1" * 64))
    data["trips"] = replace(data["trips"], batches=(batch,))
    roots.add(_snapshot(store, tmp_path, data=data).manifest.root)
    assert len(roots) == 3
    later = _snapshot(store, tmp_path / "c", as_of=datetime(2021, 1, 1, tzinfo=UTC))
    assert later.manifest.root == published.manifest.root
    assert later.pointer.version == f"20210101-{published.manifest.root[7:19]}"


def test_the_same_again_is_unchanged(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """A bundle that is published is found, and nothing is written again."""
    before = {key: (store.root / key).stat().st_mtime_ns for key in store.keys("")}
    again = _snapshot(store, tmp_path / "data", as_of=AS_OF + timedelta(hours=5))
    assert again.unchanged
    assert not published.unchanged
    assert again.pointer == published.pointer
    assert before == {key: (store.root / key).stat().st_mtime_ns for key in store.keys("")}


def test_a_damaged_version_is_not_passed_over(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """Making a bundle again that was damaged says so; after its removal it is put back."""
    members = archive.unpack(_packed(store, published), where="")
    store.put(published.pointer.archive, archive.pack({**members, "part-00000.parquet": b"x"}))
    with pytest.raises(DigestMismatch, match="part"):
        _snapshot(store, tmp_path / "data")
    store.delete(published.pointer.archive)
    assert _snapshot(store, tmp_path / "data").unchanged
    reader.open_version(store, published.pointer.definition, published.pointer.version)


def test_other_content_under_a_version_is_refused(
    store: FolderStore, published: FeatureVersion
) -> None:
    """Where a pointer claims another root for the same version, nothing is replaced."""
    root = Digest(published.pointer.root[:-1] + ("0" if published.pointer.root[-1] != "0" else "1"))
    key = pointer.key_of(published.pointer.definition, published.pointer.version)
    store.put(key, replace(published.pointer, root=root).dumps())
    with pytest.raises(OverwriteRefused, match="other content"):
        publish(store, published.manifest, _packed(store, published), {})


def test_leftovers_of_an_interrupted_snapshot_are_harmless(
    store: FolderStore, published: FeatureVersion, tmp_path: Path
) -> None:
    """An archive that was never published, whole or not, does not hinder the next attempt."""
    good = _packed(store, published)
    for leftover in (good, b"damaged"):
        fresh = FolderStore(tmp_path / str(len(leftover)))
        fresh.put(published.pointer.archive, leftover)
        made = publish(fresh, published.manifest, good, {})
        assert not made.unchanged
        reader.open_version(fresh, made.pointer.definition, made.pointer.version)


class _Lossy(FolderStore):
    """A store that damages what it is given."""

    def put(self, key: str, data: bytes, **conditions: Any) -> ObjectInfo:
        if key.endswith(".tar.gz"):
            data = data[:-1]
        return super().put(key, data, **conditions)


def test_nothing_is_published_unverified(published: FeatureVersion, tmp_path: Path) -> None:
    """If what was uploaded does not read back, the version never exists."""
    store = _Lossy(tmp_path / "objects")
    with pytest.raises(BundleInvalid, match="does not hold the bundle"):
        _snapshot(store, tmp_path / "data")
    assert list(pointer.published(store)) == []


class _Late(FolderStore):
    """A store on which somebody else publishes the same version in the last moment."""

    def put(self, key: str, data: bytes, **conditions: Any) -> ObjectInfo:
        if key.endswith(".json") and conditions.get("if_none_match"):
            super().put(key, data)
        return super().put(key, data, **conditions)


def test_whoever_comes_second_accepts_the_first(tmp_path: Path) -> None:
    """Two snapshots of one content at once: one publishes, the other finds it."""
    assert _snapshot(_Late(tmp_path / "objects"), tmp_path / "data").unchanged


def test_progress_is_told(store: FolderStore, tmp_path: Path) -> None:
    """Each step is told, the last one as the end."""
    told: list[Progress] = []
    _snapshot(store, tmp_path / "data", progress=told.append)
    assert [step.done for step in told] == sorted({step.done for step in told})
    assert told[-1].done == told[-1].total


def test_inputs_must_fit_the_definition(store: FolderStore, tmp_path: Path) -> None:
    """Missing inputs, another contract and a batch given twice are refused."""
    data = observations.inputs(tmp_path, observations.ordinary(3))
    trips = data["trips"]
    for wrong in (
        {"trips": trips},
        {**data, "trips": replace(trips, contract="small/trips@2.0.0")},
        {**data, "trips": replace(trips, batches=())},
        {**data, "trips": replace(trips, batches=trips.batches * 2)},
    ):
        with pytest.raises(BundleInvalid):
            _snapshot(store, tmp_path, data=wrong)


def test_files_must_have_the_promised_schema(store: FolderStore, tmp_path: Path) -> None:
    """A renamed column or a file that is no Parquet is refused before anything is computed."""
    data = observations.inputs(tmp_path, observations.ordinary(3))
    path = data["trips"].files[0]
    observations.write(path, "vehicles", [])
    with pytest.raises(
        ContractInvalid, match=r"another schema.*small/trips|small/trips.*another schema"
    ):
        _snapshot(store, tmp_path, data=data)
    path.write_bytes(b"nothing")
    with pytest.raises(BundleInvalid, match="not a Parquet file"):
        _snapshot(store, tmp_path, data=data)


def test_files_may_not_change_while_they_are_read(store: FolderStore, tmp_path: Path) -> None:
    """A file with another digest than when its batch was judged is refused."""
    data = observations.inputs(tmp_path, observations.ordinary(3))
    batch = data["trips"].batches[0]
    other = InputFile(batch.files[0].path, Digest("sha256:" + "0" * 64))
    data["trips"] = replace(data["trips"], batches=(replace(batch, files=(other,)),))
    with pytest.raises(DigestMismatch, match="changed while it was read"):
        _snapshot(store, tmp_path, data=data)


_KILLED = """
import sys
from pathlib import Path
from contracts.base import failpoint
from contracts.features.store import snapshot
from contracts.objects.folder import FolderStore
from tests.contracts.features.conftest import AS_OF
from tests.fakes import observations
folder = Path(sys.argv[1])
data = observations.inputs(folder / "data", observations.ordinary())
failpoint.configure(sys.argv[2])
snapshot(observations.definition(), data, as_of=AS_OF, store=FolderStore(folder / "objects"),
         provenance={})
"""
POINTS = [
    pytest.param("features.upload.before", marks=pytest.mark.slow),
    pytest.param("objects.put.before", marks=pytest.mark.slow),
    pytest.param("objects.put.after", marks=pytest.mark.slow),
    "features.upload.after",
    "features.publish.before",
    pytest.param("objects.put.before:2", marks=pytest.mark.slow),
    "features.publish.after",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_snapshot_leaves_nothing_trusted(
    published: FeatureVersion, tmp_path: Path, root: Path, point: str
) -> None:
    """After kill -9 at any step readers see the whole bundle or none, and a re-run completes."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), point],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    store = FolderStore(tmp_path / "objects")
    for found in pointer.published(store):
        reader.open_version(store, found.definition, found.version)
    again = _snapshot(store, tmp_path / "again")
    assert again.unchanged == (point == "features.publish.after")
    assert again.pointer == published.pointer
