"""Moving packages between layouts."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contracts.base.errors import DigestMismatch, RegistryUnavailable
from contracts.base.progress import Progress
from model_packages.oci import image, referrers
from model_packages.oci.keys import PublicKey
from model_packages.oci.push import push
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import verify_signature
from tests.fakes import packages
from tests.fakes.packages import BuiltPackage

ROOM = Path(__file__).parents[3] / "model_packages" / "oci"
PUSHING = """
import sys
from pathlib import Path
from contracts.base import failpoint
from model_packages.oci.push import push
from model_packages.oci.store import LayoutStore
failpoint.configure(sys.argv[4])
push(LayoutStore(Path(sys.argv[1])), LayoutStore(Path(sys.argv[2])), sys.argv[3])
"""
POINTS = [
    "layout.index.before",
    "layout.blob.before",
    "layout.blob.after:3",
    "push.blob.before:4",
    "push.blob.after:9",
    "push.publish.before",
    "push.publish.after",
]


@pytest.fixture
def target(tmp_path: Path) -> LayoutStore:
    return LayoutStore(tmp_path / "registry")


def test_a_package_arrives_whole_with_its_signature(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore
) -> None:
    """Nothing more is needed at the target to verify and unpack it."""
    built, key = signed
    seen: list[Progress] = []
    result = push(built.store, target, built.reference.digest, progress=seen.append)
    assert result.changed
    assert (result.sent, result.present) == (10, 0)
    assert seen[-1].done == seen[-1].total == result.bytes_sent
    image.verify(target, built.reference.digest)
    assert verify_signature(target, built.reference.digest, [key]).key_id == key.key_id


def test_pushing_again_changes_nothing(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore
) -> None:
    """The same package twice writes no byte the second time."""
    built, _ = signed
    push(built.store, target, built.reference.digest)
    before = {path: path.stat().st_ino for path in target.path.rglob("*")}
    result = push(built.store, target, built.reference.digest)
    assert (result.changed, result.sent, result.bytes_sent) == (False, 0, 0)
    assert {path: path.stat().st_ino for path in target.path.rglob("*")} == before


def test_only_what_changed_is_sent(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore, tmp_path: Path
) -> None:
    """A config-only change sends its layer and the documents above it."""
    push(signed[0].store, target, signed[0].reference.digest)
    other = packages.build(tmp_path / "other", packages.Options(max_batch_size=4))
    result = push(other.store, target, other.reference.digest)
    assert (result.sent, result.present) == (4, 3)
    assert result.bytes_sent <= 16_000


def test_a_damaged_blob_at_the_target_is_replaced(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore
) -> None:
    """What is there is verified, not believed."""
    built, _ = signed
    push(built.store, target, built.reference.digest)
    layer = image.read(target, built.reference.digest).layers[0]
    target.blob(layer.digest).write_bytes(b"damaged")
    assert push(built.store, target, built.reference.digest).sent == 1
    image.verify(target, built.reference.digest)


@pytest.mark.parametrize("number", range(10))
def test_a_damaged_source_shows_nothing_at_the_target(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore, number: int
) -> None:
    """Whichever blob is damaged, the target does not show the package."""
    built, _ = signed
    package = image.read(built.store, built.reference.digest)
    referrer = referrers.listed(built.store, built.reference.digest)[0]
    blobs = [*package.blobs, package.index, referrer.config, referrer.payload, referrer.manifest]
    path = built.store.blob(blobs[number].digest)
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(DigestMismatch):
        push(built.store, target, built.reference.digest)
    if target.path.exists():
        assert target.entries() == ()


def test_a_package_that_is_not_there_is_not_pushed(
    target: LayoutStore, built: BuiltPackage
) -> None:
    """A missing package is a clear error."""
    with pytest.raises(RegistryUnavailable):
        push(target, built.store, built.reference.digest)


def test_referrers_of_both_sides_are_kept(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore
) -> None:
    """What others attached at the target survives a push, and new ones join it."""
    built, _ = signed
    push(built.store, target, built.reference.digest)
    entry = target.find(built.reference.digest)
    referrers.attach(target, entry, b"there", "text/x-there")
    referrers.attach(built.store, entry, b"here", "text/x-here")
    assert push(built.store, target, built.reference.digest).changed
    kinds = {item.manifest.artifact_type for item in referrers.listed(target, entry.digest)}
    assert {"text/x-there", "text/x-here"} < kinds


def test_concurrent_pushes_agree(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore
) -> None:
    """Eight pushes at once leave one package, and one of them says it changed something."""
    built, key = signed
    with ThreadPoolExecutor(8) as pool:
        results = list(
            pool.map(lambda _: push(built.store, target, built.reference.digest), range(8))
        )
    assert [result.changed for result in results].count(True) == 1
    assert len(target.entries()) == 2
    verify_signature(target, built.reference.digest, [key])


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_push_is_completed_by_the_next(
    signed: tuple[BuiltPackage, PublicKey], target: LayoutStore, point: str
) -> None:
    """kill -9 at any point leaves a package that is whole or not shown, and a rerun completes."""
    built, key = signed
    digest = built.reference.digest
    if point.startswith(("layout.index", "push.publish")):
        target.create()
    done = subprocess.run(
        [sys.executable, "-c", PUSHING, built.layout, target.path, digest, point],
        cwd=ROOM.parents[1],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    shown = (
        {entry.digest for entry in target.entries()}
        if (target.path / "oci-layout").exists()
        else set()
    )
    assert (digest in shown) is (point == "push.publish.after")
    push(built.store, target, digest)
    image.verify(target, digest)
    verify_signature(target, digest, [key])


def test_every_failpoint_of_a_push_is_tried() -> None:
    """A new failpoint in push or store must join the list above."""
    text = (ROOM / "push.py").read_text() + (ROOM / "store.py").read_text()
    named = set(re.findall(r'failpoint\.hit\("([a-z.]+)"\)', text))
    assert named - {"layout.index.after"} == {point.split(":")[0] for point in POINTS}
