"""Recovery at the start of every writing verb."""

from __future__ import annotations

from contracts.base import files
from tasks.release import cutover
from tasks.release.journal import Inverse, Journal, unfinished
from tasks.release.recover import recover
from tests.fakes.target import FakeTarget
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, TARGET


def left_open(deployed: Prepared) -> None:
    """A deployment that ended after loading."""
    scene, refs = deployed.scene, deployed.refs
    about = {
        "model": MODEL, "target": TARGET, "old": refs[0].digest, "package": refs[1].digest,
        "record": {},
    }  # fmt: skip
    journal = Journal.begin(scene.ledger, "deploy", f"{MODEL}/{TARGET}", about)
    with journal.effect("load", Inverse("unload", {"package": refs[1].digest})):
        pass


def recovered(deployed: Prepared) -> list[str]:
    """Recover everything."""
    home = deployed.scene.home / "targets"
    return recover(deployed.scene.workspace, lambda name: FakeTarget(home / name, name))


def test_everything_left_open_is_ended(deployed: Prepared) -> None:
    """A deployment is undone, a release is closed, and both are told; again nothing happens."""
    scene, ref = deployed.scene, deployed.refs[2]
    left_open(deployed)
    Journal.begin(scene.ledger, "release", str(ref), ref.to_dict())
    stories = recovered(deployed)
    assert ["undid the deploy" in stories[0], "closed a release" in stories[1]] == [True, True]
    assert unfinished(scene.ledger) == []
    assert recovered(deployed) == []


def test_busy_and_stopped_targets_are_left(deployed: Prepared) -> None:
    """What somebody works on, and a target that does not run, are left to others."""
    scene, ref = deployed.scene, deployed.refs[2]
    left_open(deployed)
    Journal.begin(scene.ledger, "release", str(ref), ref.to_dict())
    locks = scene.workspace.locks
    from tasks.release.journal import lock_path

    with files.locked(cutover.lock_path(locks, TARGET)), files.locked(lock_path(locks, ref)):
        assert recovered(deployed) == []
    scene.target.stop()
    assert len(recovered(deployed)) == 1
    assert len(unfinished(scene.ledger)) == 1


def test_trouble_is_told_and_does_not_stop(deployed: Prepared) -> None:
    """A target that cannot be recovered yet is told, and the verb can go on."""
    left_open(deployed)
    deployed.scene.target.load(_second(deployed))
    deployed.scene.target.plant("unload", "planted")
    assert "could not be recovered yet" in recovered(deployed)[0]


def _second(deployed: Prepared):  # type: ignore[no-untyped-def] # a helper of one test
    from pathlib import Path

    from tasks.release.targets.interface import Release

    ref = deployed.refs[1]
    return Release(MODEL, ref.digest, ref.set_digest, Path(), Path())


def test_release_step_recovers_first(deployed: Prepared) -> None:
    """The first step of a release ends what was left open, and says so."""
    from tasks.release.steps import register_candidate, sign_package
    from tests.tasks.release.scene import origin, reports

    scene, ref = deployed.scene, deployed.refs[0]
    other = deployed.refs[2]
    Journal.begin(scene.ledger, "release", str(other), other.to_dict())
    signed = sign_package.function(scene.workspace, ref, origin(), reports(ref))
    assert "closed a release" in signed.measurements["recovered"][0]
    again = sign_package.function(scene.workspace, ref, origin(), reports(ref))
    assert "recovered" not in again.measurements
    registered = register_candidate.function(scene.workspace, ref, signed.facts, reports(ref))
    assert registered.measurements["unchanged"] is True


def test_steps_carry_the_verbs(prepared: Prepared) -> None:
    """The steps a flow calls do what the plain functions do."""
    from tasks.release import steps
    from tests.tasks.release.scene import policy

    scene, refs = prepared.scene, prepared.refs
    assert steps.push_package.function(scene.workspace, refs[0]).measurements["unchanged"] is True
    options = scene.traffic()
    for ref in refs[:2]:
        report = steps.deploy_package.function(
            scene.workspace, ref, scene.target, policy(), options
        )
        assert report.verdict == "pass"
    back = steps.rollback_target.function(scene.workspace, MODEL, scene.target)
    assert back.facts["package_digest"] == refs[0].digest
