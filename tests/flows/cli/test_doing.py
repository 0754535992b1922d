"""Commands that work without a flow: they need no server, and have the same three outcomes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.report import Report, conclude
from flows import context, server
from flows.context import Context
from flows.demo import run as demonstration
from model_packages.oci.reference import PackageRef
from tasks.release.targets import table
from tests.fakes import batches, packages, world
from tests.fakes.target import FakeTarget
from tests.flows.cli.conftest import Caisson
from tests.tasks.release.scene import Scene


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of these commands may start a server."""

    def ensure(*_: Any) -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr(server, "ensure", ensure)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "hôme folder")


@pytest.fixture
def registered(scene: Scene) -> PackageRef:
    ref = scene.build("1.0.0")
    scene.release(ref)
    return ref


@pytest.fixture
def small(here: Context, monkeypatch: pytest.MonkeyPatch) -> Context:
    """Let commands work in the small world."""

    def current(as_of: str | None = None) -> Context:
        return Context(here.settings, here.workspace, context.moment(as_of, here.workspace.clock))

    monkeypatch.setattr(context, "current", current)
    return here


def test_a_source_is_built_or_refused(caisson: Caisson, tmp_path: Path) -> None:
    """A good folder is 0, one with a forbidden file 1, none 2."""
    folder = packages.write_source(tmp_path / "source")
    done = caisson("package", "build", "tiny", "--source", str(folder), "--json")
    assert done.status == 0
    assert done.json["facts"]["package_digest"].startswith("sha256:")
    (folder / "manifest.json").write_text("{}")
    assert caisson("package", "build", "tiny", "--source", str(folder)).status == 2
    assert caisson("package", "build", "tiny").status == 1
    assert caisson("package", "build", "tiny", "--source", str(tmp_path / "absent")).status == 2


def test_a_package_is_inspected(caisson: Caisson, registered: PackageRef) -> None:
    """Its identities and manifest, for people and for machines; an unknown one is refused."""
    ended = caisson("package", "inspect", "tiny")
    assert ended.status == 0
    assert registered.digest[:19] in ended.out
    found = caisson("package", "inspect", "tiny", "--json").json
    assert (found["digest"], found["manifest"]["version"]) == (registered.digest, "1.0.0")
    unknown = digest.of_bytes(b"unknown")
    assert caisson("package", "inspect", "tiny", "--package", unknown).status == 1
    assert caisson("package", "inspect", "tiny", "--package", "newest").status == 2


def test_a_package_is_verified_by_todays_policy(
    caisson: Caisson, scene: Scene, registered: PackageRef
) -> None:
    """Signed is 0 and says by whom; a changed byte is 1, an unknown target 2."""
    found = caisson("package", "verify", "tiny", "--json")
    assert found.status == 0
    assert found.json["signed by"][0]["role"] == "builder"
    assert caisson("package", "verify", "tiny", "--target", "nowhere").status == 2
    blobs = scene.workspace.registry("tiny") / "blobs/sha256"
    document = blobs / registered.digest.removeprefix("sha256:")
    document.write_bytes(document.read_bytes() + b" ")
    ended = caisson("package", "verify", "tiny", "--json")
    assert (ended.status, ended.json["error"]["code"]) == (1, "digest-mismatch")


def test_a_package_is_exported_whole(
    caisson: Caisson, registered: PackageRef, tmp_path: Path
) -> None:
    """The files come out as they went in; where it went is said on stderr."""
    ended = caisson("package", "export", "tiny", str(tmp_path / "out put"))
    assert (ended.status, ended.out) == (0, "")
    assert (tmp_path / "out put" / "model" / "manifest.json").is_file()
    assert registered.digest in ended.err


@pytest.fixture
def target(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    found = scene.target
    monkeypatch.setattr(table, "open_target", lambda *_: found)
    return found


def test_rollback_goes_back_with_a_reason(
    caisson: Caisson, scene: Scene, registered: PackageRef, target: FakeTarget
) -> None:
    """Nothing to go back to is 1; going back is 0 and on record, without any server."""
    assert caisson("rollback", "tiny").status == 1
    second = scene.build("1.0.1", 3.0)
    scene.release(second)
    scene.deploy(registered)
    scene.deploy(second)
    ended = caisson("rollback", "tiny", "--reason", "worse", "--json")
    assert (ended.status, scene.live) == (0, registered.digest)
    assert ended.json["facts"]["package_digest"] == registered.digest
    assert "worse" in str(scene.ledger.records("rollback")[-1].body)
    assert caisson("rollback", "tiny", "--target", "nowhere").status == 2


def test_a_target_is_stopped(caisson: Caisson, target: FakeTarget) -> None:
    """What is live stays on record."""
    target.ensure()
    assert caisson("stop").err == "stopped\n"
    assert not target.state().running


def test_a_batch_is_judged_for_its_consumer(caisson: Caisson, small: Context) -> None:
    """A good batch is 0, a bad one 1 with its findings, an unknown one 2."""
    arguments = ("contract", "validate", "shop/orders", "day", "--as-of", "2020-03-04")
    assert caisson(*arguments).status == 0
    assert caisson("contract", "validate", "shop/orders", "absent").status == 2
    shutil.rmtree(small.workspace.sources / "shop/orders/day")
    bad = batches.table(batches.rows()).drop_columns(["amount"])
    batches.deliver(small.workspace.sources, bad, moment=world.NOW)
    ended = caisson(*arguments, "--json")
    assert ended.status == 1
    assert any("amount" in item["location"] for item in ended.json["findings"])


def test_an_open_fuse_is_reset_with_a_reason(caisson: Caisson, small: Context) -> None:
    """Who and why are kept; without a reason it is not done."""
    shutil.rmtree(small.workspace.sources / "shop/orders/day")
    bad = batches.table(batches.rows()).drop_columns(["amount"])
    batches.deliver(small.workspace.sources, bad, moment=world.NOW)
    for _ in range(4):
        caisson("contract", "validate", "shop/orders", "day", "--consumer", "nightly")
    assert caisson("contract", "reset-fuse", "shop/orders", "nightly").status == 2
    ended = caisson("contract", "reset-fuse", "shop/orders", "nightly", "--why", "mended")
    assert ended.status == 0
    assert "shop/orders" in ended.out


def test_bundles_are_frozen_as_nightly_does(caisson: Caisson, small: Context) -> None:
    """Three reports, one a bundle; too few batches are 2."""
    ended = caisson("features", "snapshot", world.DEFINITION, "--as-of", "2020-03-04", "--json")
    assert ended.status == 0
    assert len(ended.json) == 3
    assert caisson("features", "snapshot", world.DEFINITION, "--as-of", "2020-03-02").status == 2


def test_the_demo_prints_its_table_and_where_to_look(
    caisson: Caisson, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table on stdout, addresses on stderr; JSON is the report."""
    rows = [{"name": "nightly", "verdict": "pass", "seconds": 2.0, "note": "x", "look": "y"}]
    level = {
        "claimed_level": "L1",
        "achieved_level": "L1",
        "next_level": "L2",
        "lacking": ["PKG-4"],
    }
    facts = {"table": rows, "page": "/p", "request_id": "r", "level": level}
    report = conclude("flow-demo", "s", [], facts=facts, measurements={"url": "http://u"})
    asked: list[Any] = []

    def run(options: demonstration.DemoOptions) -> Report:
        asked.append(options)
        return report

    monkeypatch.setattr(demonstration, "run", run)
    ended = caisson("demo", "--no-faults")
    assert ended.status == 0
    assert "nightly" in ended.out
    for said in ("file:///p", "caisson lineage r", "http://u", "PKG-4"):
        assert said in ended.err
    kept = caisson("demo", "--keep", "--json")
    assert Report.from_dict(kept.json) == report
    assert [(item.keep, item.faults, item.quiet) for item in asked] == [
        (False, False, False),
        (True, True, True),
    ]
