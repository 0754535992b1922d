"""Rollback: back to the release before, from the target's own bytes."""

from __future__ import annotations

import shutil

import pytest

from contracts.base.errors import (
    IntegrityError,
    LoadFailed,
    RefusedError,
    SignatureInvalid,
    UnavailableError,
)
from tasks.release import cutover, history, kept
from tasks.release.journal import unfinished
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, TARGET


@pytest.fixture
def twice(deployed: Prepared) -> Prepared:
    """A home in which the second release replaced the first."""
    deployed.scene.deploy(deployed.refs[1])
    return deployed


def test_rollback_needs_only_the_target(twice: Prepared) -> None:
    """Without registry, object store, keys or reports the earlier release is live again."""
    scene, refs = twice.scene, twice.refs
    for name in ("registry", "objects", "keys", "reports", "mlflow", "prefect"):
        shutil.rmtree(scene.home / name, ignore_errors=True)
    report = scene.rollback()
    assert report.verdict == "pass"
    assert report.measurements["seconds"] < 10
    assert scene.live == refs[0].digest == scene.target.state().live
    assert scene.kinds("rollback") == ["rollback"]
    assert unfinished(scene.ledger) == []


def test_rollback_twice_goes_no_further_than_there_is(twice: Prepared) -> None:
    """Going back never returns to the bad release; at the first one it is refused."""
    scene = twice.scene
    scene.rollback()
    with pytest.raises(RefusedError, match="no earlier release"):
        scene.rollback()


def test_history_grows_and_shrinks(twice: Prepared) -> None:
    """A promotion adds to what one can go back through, a rollback takes away."""
    scene, refs = twice.scene, twice.refs
    assert history.releases(scene.ledger, MODEL, TARGET) == [refs[0].digest, refs[1].digest]
    scene.rollback()
    assert history.releases(scene.ledger, MODEL, TARGET) == [refs[0].digest]
    scene.deploy(refs[1])
    assert history.releases(scene.ledger, MODEL, TARGET)[-1] == refs[1].digest


def test_nothing_live_cannot_be_rolled_back(prepared: Prepared) -> None:
    """Where nothing was deployed there is nothing to go back from."""
    with pytest.raises(RefusedError, match="nothing is live"):
        prepared.scene.rollback()


def test_changed_bytes_are_repaired_or_refused(twice: Prepared) -> None:
    """A changed unpacked file is restored from the target's layout; a changed blob is refused."""
    scene, old = twice.scene, twice.refs[0].digest
    place = kept.folder(scene.target.home, old)
    weights = next(place.rglob("model.onnx"))
    weights.write_bytes(b"changed")
    release = kept.reopen(scene.target.home, old)
    assert (release.tree / "model" / "model.onnx").read_bytes() != b"changed"
    blobs = place / "blobs" / "sha256"  # of this package alone
    largest = max(blobs.iterdir(), key=lambda item: item.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1] + b"x")
    shutil.rmtree(place / "unpacked")
    with pytest.raises(IntegrityError):
        scene.rollback()
    assert scene.live == twice.refs[1].digest


def test_other_signer_is_refused(twice: Prepared) -> None:
    """The key must be the one the ledger recorded at deployment."""
    scene, old = twice.scene, twice.refs[0].digest
    with pytest.raises(SignatureInvalid):
        kept.reopen(scene.target.home, old, ["0" * 64])
    with pytest.raises(SignatureInvalid):
        kept.reopen(scene.target.home, old, [])


def test_unkept_package_is_unavailable(twice: Prepared) -> None:
    """A package the target does not keep has to come from the registry."""
    with pytest.raises(UnavailableError, match="does not keep"):
        kept.reopen(twice.scene.target.home, twice.refs[2].digest)


def test_failing_golden_case_keeps_the_live_release(twice: Prepared) -> None:
    """If the earlier release fails its own cases now, the live one stays live."""
    scene = twice.scene
    scene.target.plant("golden", "expected 1, got 2")
    with pytest.raises(LoadFailed, match="golden cases"):
        scene.rollback()
    assert scene.live == twice.refs[1].digest == scene.target.state().live
    assert scene.target.state().candidate is None
    assert unfinished(scene.ledger) == []


def test_failing_switch_is_completed(twice: Prepared) -> None:
    """Once decided a rollback is completed by the next command."""
    scene, refs = twice.scene, twice.refs
    scene.target.plant("promote", "planted")
    with pytest.raises(RefusedError, match="ledger says"):
        scene.rollback()
    scene.target.heal()
    report = scene.deploy(refs[0])
    assert "completed the rollback" in report.measurements["recovered"][0]
    assert scene.target.state().live == refs[0].digest


def test_interrupted_rollback_is_undone_first(twice: Prepared) -> None:
    """A rollback that could not be undone is undone by the next rollback, which then works."""
    scene = twice.scene
    scene.target.plant("golden", "planted")
    scene.target.plant("unload", "planted")
    with pytest.raises(RefusedError, match="taken back"):
        scene.rollback()
    scene.target.heal()
    report = scene.rollback()
    assert "undid the rollback" in report.measurements["recovered"][0]


def test_expired_waivers_only_warn(twice: Prepared) -> None:
    """A waiver that expired since is reported as low, and the rollback is carried out."""
    scene, refs = twice.scene, twice.refs
    place = history.subject(MODEL, TARGET)
    (record, *_) = scene.ledger.records("deploy", place)
    waivers = [
        {"id": "W-1", "expires": "2020-01-01T00:00:00Z"},
        {"id": "W-2", "expires": "2040-01-01T00:00:00Z"},
    ]
    scene.ledger.append("deploy", place, {**record.body, "waivers": waivers})
    report = scene.rollback()
    assert [finding.location for finding in report.findings] == ["W-1"]
    assert report.verdict == "pass"
    assert scene.live == refs[0].digest


def test_target_that_differs_is_converged(twice: Prepared) -> None:
    """A target that serves something else than the ledger says is brought back to it."""
    scene, refs = twice.scene, twice.refs
    old = kept.reopen(scene.target.home, refs[0].digest)
    scene.target.load(old)
    scene.target.promote(old.package)
    live = kept.reopen(scene.target.home, refs[1].digest)
    assert cutover.converge(scene.target, live)
    assert not cutover.converge(scene.target, live)
    scene.target.load(old)
    scene.target.promote(old.package)
    scene.target.plant("golden", "planted")
    scene.target.unload(live.package)
    with pytest.raises(LoadFailed, match="test cases"):
        cutover.converge(scene.target, live)
