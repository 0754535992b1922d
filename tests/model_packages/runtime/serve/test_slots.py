"""Slots and the admin listener: load, try, promote, restore, drain, unload; safe to repeat."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest, files
from contracts.base.errors import (
    CaissonError,
    InputError,
    LoadFailed,
    SwapRefused,
)
from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve.client import AdminClient, Call, Connection
from model_packages.runtime.serve.messages import NotReady, RequestRefused
from tests.fakes import serving
from tests.fakes.serving import Running, Sums
from tests.fakes.waiting import until

_OTHER = digest.of_bytes(b"another package")


def load(admin: AdminClient, source: PackageSource, *, replace: bool = False) -> dict[str, Any]:
    return admin.load(source.folder, source.package_digest, source.set_digest, replace=replace)


@contextlib.contextmanager
def releasing(hold: threading.Event) -> Iterator[None]:
    """Let the held model go, however the block ends."""
    try:
        yield
    finally:
        hold.set()


def test_a_release_goes_through_all_its_stations(
    running: Running, first: PackageSource, second: PackageSource
) -> None:
    """Load, promote, load the next, promote it, return, and empty the other slot."""
    one, two = first.package_digest, second.package_digest
    with running.admin() as admin:
        loaded = load(admin, first)
        assert (loaded["slot"], loaded["version"]) == ("A", "1.0.0")
        assert len(loaded["stages"]) == 6
        assert admin.golden(one)["passed"]
        status = admin.status()
        assert (status["live"], status["candidate"], status["ready"]) == (None, one, False)
        status = admin.promote(one)
        assert (status["live"], status["candidate"]) == (one, None)
        assert load(admin, second)["slot"] == "B"
        assert load(admin, second)["slot"] == "B", "again is no act"
        status = admin.route(0.5, lease_s=30)
        assert (status["canary_share"], status["candidate"]) == (pytest.approx(0.5), two)
        assert 0 < status["lease_s"] <= 30
        status = admin.promote(two)
        assert (status["live"], status["candidate"], status["previous"]) == (two, one, one)
        assert status["canary_share"] == 0
        assert admin.promote(two)["live"] == two, "again is no act"
        assert admin.restore(one)["live"] == one
        assert admin.drain(timeout_s=5)
        assert admin.unload(two)
        assert not admin.unload(two), "again is no act"
        assert admin.drain(timeout_s=5)
        assert admin.status()["slots"]["B"] is None
        assert admin.restore(two)["live"] == two, "loaded again from the target's own bytes"


def test_a_restarted_worker_serves_what_was_live(
    home: Path, first: PackageSource, second: PackageSource
) -> None:
    """And still knows the package before it, even if the whole home was moved."""
    with serving.serve(home) as running:
        running.deploy(first)
        running.deploy(second)
    moved = home.with_name("moved")
    home.rename(moved)
    with serving.serve(moved) as running, running.client() as client, running.admin() as admin:
        until(lambda: admin.status()["ready"])
        answer = client.infer("sums", Call({"value": [1.0]}, request_id="r1"))
        assert answer.package_digest == second.package_digest
        status = admin.status()
        assert (status["previous"], status["slots"]["B"]) == (first.package_digest, None)
        assert admin.restore()["live"] == first.package_digest


@pytest.mark.parametrize("damage", ["gone", "changed", "record"])
def test_a_worker_that_cannot_load_what_was_live_says_so(
    damage: str, home: Path, first: PackageSource, second: PackageSource
) -> None:
    """It stays reachable, serves nothing wrong, and another deployment repairs it."""
    with serving.serve(home) as running:
        running.deploy(first)
    if damage == "gone":
        shutil.rmtree(first.folder)
    elif damage == "changed":
        (first.folder / "model.onnx").write_bytes(b"other")
    else:
        (home / "route.json").write_text("{}")
    with serving.serve(home) as running, running.client() as client, running.admin() as admin:
        until(lambda: admin.status()["failure"])
        assert not admin.status()["ready"]
        with pytest.raises(NotReady):
            client.infer("sums", Call({"value": [1.0]}))
        running.deploy(second)
        assert client.ready()
        assert admin.status()["failure"] is None


def test_deploying_again_what_could_not_be_loaded_keeps_the_previous(
    home: Path, first: PackageSource, second: PackageSource
) -> None:
    """The undo of a deployment never points at itself."""
    with serving.serve(home) as running:
        running.deploy(first)
        running.deploy(second)
    good = (second.folder / "model.onnx").read_bytes()
    (second.folder / "model.onnx").write_bytes(b"other")
    with serving.serve(home) as running, running.admin() as admin:
        until(lambda: admin.status()["failure"])
        (second.folder / "model.onnx").write_bytes(good)
        running.deploy(second)
        assert admin.status()["previous"] == first.package_digest


def test_a_failed_load_leaves_the_live_package_alone(
    running: Running, first: PackageSource, home: Path
) -> None:
    """The error names the stage, and the slot is free for the next."""
    running.deploy(first)
    bad = serving.write_sums(home / "bad", Sums(golden=9.0))
    with running.admin() as admin, running.client() as client:
        with pytest.raises(LoadFailed, match="golden cases failed") as caught:
            load(admin, bad)
        assert caught.value.stage == "health"
        assert caught.value.remedy
        status = admin.status()
        assert (status["candidate"], status["loading"]) == (None, None)
        assert client.ready()


def test_what_would_harm_the_live_package_is_refused(
    running: Running, first: PackageSource, second: PackageSource, home: Path
) -> None:
    """Each with the reason."""
    third = serving.write_sums(home / "third", Sums(version="1.2.0"))
    foreign = serving.write_sums(home / "foreign", Sums(name="other"))
    running.deploy(first)
    with running.admin() as admin:
        with pytest.raises(SwapRefused, match="no candidate"):
            admin.route(0.1)
        with pytest.raises(SwapRefused, match="live package cannot be unloaded"):
            admin.unload(first.package_digest)
        with pytest.raises(SwapRefused, match="serves one model"):
            load(admin, foreign)
        with pytest.raises(SwapRefused, match="previous package is not"):
            admin.restore()
        load(admin, second)
        admin.route(0.1, lease_s=60)
        with pytest.raises(SwapRefused, match="holds another package"):
            load(admin, third)
        with pytest.raises(SwapRefused, match="holds another package"):
            load(admin, third, replace=True)
        with pytest.raises(SwapRefused, match="still gets requests"):
            admin.drain()
        admin.route(0)
        assert load(admin, third, replace=True)["version"] == "1.2.0"
        with pytest.raises(SwapRefused, match="previous package is not"):
            admin.restore(_OTHER)
        for act in (admin.promote, admin.golden):
            with pytest.raises(InputError, match="not loaded"):
                act(_OTHER)


def test_unloading_a_canary_ends_it(
    running: Running, first: PackageSource, second: PackageSource
) -> None:
    """No request is sent to an empty slot."""
    running.deploy(first)
    with running.admin() as admin, running.client() as client:
        load(admin, second)
        admin.route(1.0, lease_s=60)
        answer = client.infer("sums", Call({"value": [1.0]}))
        assert answer.package_digest == second.package_digest
        admin.unload(second.package_digest)
        answer = client.infer("sums", Call({"value": [1.0]}))
        assert answer.package_digest == first.package_digest
        assert admin.status()["canary_share"] == 0


def test_a_lost_lease_returns_every_request_to_the_live_package(
    running: Running, first: PackageSource, second: PackageSource
) -> None:
    """A deploy flow that died leaves no canary behind."""
    running.deploy(first)
    with running.admin() as admin, running.client() as client:
        load(admin, second)
        admin.route(1.0, lease_s=0.1)
        until(lambda: admin.status()["lease_lost"])
        answer = client.infer("sums", Call({"value": [1.0]}))
        assert answer.package_digest == first.package_digest
        assert admin.status()["canary_share"] == 0
        assert not admin.route(0.5, lease_s=60)["lease_lost"]


@pytest.mark.parametrize(("share", "lease"), [(1.1, 1.0), (-0.1, 1.0), (0.5, 0.0), (0.5, 1e9)])
def test_shares_and_leases_have_bounds(share: float, lease: float, running: Running) -> None:
    """A typing error does not reach customers."""
    with running.admin() as admin, pytest.raises(InputError, match="out of range"):
        admin.route(share, lease_s=lease)


def test_packages_come_only_from_the_targets_home(
    running: Running, tmp_path: Path, home: Path
) -> None:
    """The admin listener is no way to read other files."""
    outside = serving.write_sums(tmp_path / "outside")
    (home / "link").symlink_to(tmp_path / "outside")
    with running.admin() as admin:
        for folder in (tmp_path / "outside", home / "link", home / "missing", home / ".." / "x"):
            with pytest.raises(InputError, match="not in the target's home"):
                admin.load(folder, outside.package_digest, outside.set_digest)


def test_one_load_at_a_time(home: Path, first: PackageSource, second: PackageSource) -> None:
    """The second is told to wait; serving goes on, and the status shows the stage."""
    hold = threading.Event()
    backend = FakeBackend([FakeSession(), FakeSession(hold=hold)])
    with serving.serve(home, backend) as running, releasing(hold):
        running.deploy(first)
        results: list[Any] = []

        def begin() -> None:
            with running.admin() as own:
                results.append(load(own, second))

        thread = threading.Thread(target=begin)
        thread.start()
        with running.admin() as admin, running.client() as client:
            until(lambda: admin.status()["loading"])
            until(lambda: admin.status()["loading"]["stage"] == "memory")
            with pytest.raises(SwapRefused, match="being loaded"):
                load(admin, second)
            assert client.infer("sums", Call({"value": [2.0]})).outputs["sum"].tolist() == [2.0]
            hold.set()
            thread.join()
            assert results[0]["slot"] == "B"


def test_the_record_names_folders_relative_to_the_home(home: Path, first: PackageSource) -> None:
    """So that a home can be moved."""
    with serving.serve(home) as running:
        running.deploy(first)
    record = files.read_json(home / "route.json")
    assert record["live"]["folder"] == "packages/first/model"
    assert record["previous"] is None


def test_a_record_of_another_form_is_refused(home: Path, first: PackageSource) -> None:
    """Nothing is guessed from it."""
    (home / "route.json").write_text(json.dumps({"format_version": 0, "live": {"folder": 1}}))
    with serving.serve(home) as running, running.admin() as admin:
        until(lambda: admin.status()["failure"])
        assert "not a package" in admin.status()["failure"]["message"]
    del first


def test_a_model_that_never_ends_cannot_block_its_retirement(
    home: Path, first: PackageSource, second: PackageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory stays taken until the worker ends; everything else goes on."""
    monkeypatch.setattr("model_packages.runtime.serve.slot.retire.__defaults__", (0.05,))
    hold = threading.Event()
    stuck = FakeSession()
    with serving.serve(home, FakeBackend([FakeSession(), stuck])) as running, releasing(hold):
        running.deploy(first)
        with running.admin() as admin, running.client() as client:
            load(admin, second)
            stuck.hold = hold
            admin.route(1.0, lease_s=60)
            with pytest.raises(CaissonError):
                client.infer("sums", Call({"value": [1.0]}), timeout_ms=50)
            assert admin.unload(second.package_digest)
            assert not stuck.closed
            assert client.infer("sums", Call({"value": [1.0]})).outputs["sum"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/admin/nothing", b"", 404),
        ("GET", "/v2/health/live", b"", 404),
        ("GET", "/admin/load", b"", 405),
        ("POST", "/admin/load", b"{", 400),
        ("POST", "/admin/load", b"[]", 400),
        ("POST", "/admin/load", b"{}", 422),
        ("POST", "/admin/load", b'{"folder": "a\\u0000"}', 422),
        ("POST", "/admin/promote", b'{"package_digest": "sha256:1"}', 422),
        ("POST", "/admin/route", b'{"canary_share": true, "lease_s": 1}', 422),
    ],
)
def test_acts_are_judged(
    method: str, path: str, body: bytes, status: int, running: Running
) -> None:
    """Malformed acts change nothing and get one form of error."""
    connection = Connection(running.admin_url, 20)
    headers = {"authorization": f"Bearer {serving.TOKEN}"}
    reply = connection.send(method, path, body, headers, again=False)
    connection.close()
    assert reply.status == status
    assert json.loads(reply.body)["error"]


def test_a_flag_must_be_one(running: Running, first: PackageSource) -> None:
    """Text is neither true nor false."""
    with running.admin() as admin, pytest.raises(InputError, match="neither true nor false"):
        load(admin, first, replace="yes")  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic x", "Bearer ünï"])
def test_nothing_is_done_without_the_token(header: str, running: Running) -> None:
    """Not even saying which paths exist."""
    connection = Connection(running.admin_url, 20)
    headers = {"authorization": header.encode("latin-1").decode("latin-1")} if header else {}
    for path in ("/admin/status", "/nothing"):
        reply = connection.send("GET", path, b"", headers, again=False)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
    connection.close()
    with (
        contextlib.closing(AdminClient(running.admin_url, "wrong")) as admin,
        pytest.raises(RequestRefused) as caught,
    ):
        admin.status()
    assert caught.value.http_status == 401


def test_an_act_that_breaks_is_answered(
    running: Running, first: PackageSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error that gives nothing away."""

    def broken() -> dict[str, Any]:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(running.worker._slots, "statistics", broken)
    with running.admin() as admin, pytest.raises(RequestRefused, match="internal error") as caught:
        admin.statistics()
    assert "secret" not in str(caught.value)
    del first
