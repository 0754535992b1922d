"""Deployments: proven before callers see them, undone when they are not."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from contracts.base import failpoint, files
from contracts.base.errors import (
    LoadFailed,
    PointerMoved,
    RefusedError,
    RegistryUnavailable,
    ReleaseRefused,
    ServerUnavailable,
    SignatureInvalid,
)
from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from tasks.demo import release as planting
from tasks.release import cutover
from tasks.release.deploy import DeployOptions, deploy, plan_of
from tasks.release.journal import operations, unfinished
from tests.fakes.target import FakeTarget
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, ROOT, TARGET, Scene, policy


def test_first_deployment_has_no_canary_and_says_so(prepared: Prepared) -> None:
    """The first release of a model goes live after its golden cases, with the reason on record."""
    scene, first = prepared.scene, prepared.refs[0]
    report = scene.deploy(first)
    assert report.verdict == "pass"
    assert report.facts["canary"]["outcome"] == "skip"
    assert "nothing to compare" in report.facts["canary"]["reason"]
    assert report.facts["approval"]["status"] == "not-required"
    assert scene.live == first.digest == scene.target.state().live
    assert scene.kinds("promote", "deploy") == ["promote", "deploy"]


def test_second_deployment_is_canaried(deployed: Prepared) -> None:
    """The next release goes live after a canary that states its sample and power."""
    scene, refs = deployed.scene, deployed.refs
    report = scene.deploy(refs[1])
    canary = report.facts["canary"]
    assert report.verdict == "pass"
    assert canary["outcome"] == "pass"
    assert canary["answers"] >= 100
    assert canary["power"] >= 0.8
    assert scene.live == refs[1].digest == scene.target.state().live
    assert scene.target.state().candidate is None
    assert scene.ledger.verify() > 0
    assert unfinished(scene.ledger) == []


def test_same_release_again_does_nothing(deployed: Prepared) -> None:
    """Deploying what is live is a no-op that says so."""
    before = len(deployed.scene.ledger.records())
    report = deployed.scene.deploy(deployed.refs[0])
    assert report.measurements["unchanged"] is True
    assert report.measurements["brought_back"] is False
    assert len(deployed.scene.ledger.records()) == before


def test_stopped_target_is_brought_back(deployed: Prepared) -> None:
    """Deploying what is live to a target that lost it loads it again."""
    scene = deployed.scene
    (scene.target.home / "fake.json").unlink()
    report = scene.deploy(deployed.refs[0])
    assert report.measurements["brought_back"] is True
    assert scene.target.state().live == deployed.refs[0].digest


def test_bad_candidate_is_restored(deployed: Prepared) -> None:
    """A candidate with more errors fails its canary, and the target serves what it served."""
    scene, refs = deployed.scene, deployed.refs
    report = scene.deploy(refs[1], scene.traffic(error_share=0.2))
    assert report.verdict == "fail"
    assert report.findings[0].rule == "deploy.canary-failed"
    state = scene.target.state()
    assert (state.live, state.candidate, state.canary_share) == (refs[0].digest, None, 0.0)
    assert scene.live == refs[0].digest
    assert operations(scene.ledger)[-1].result == "undone"


def test_silence_is_inconclusive(deployed: Prepared) -> None:
    """A canary nobody sends requests to ends at its time-out, inconclusive and restored."""
    scene, refs = deployed.scene, deployed.refs
    options = DeployOptions(pump=lambda: scene.clock.advance(1), timeout_s=5)
    report = scene.deploy(refs[1], options)
    assert report.findings[0].rule == "deploy.canary-inconclusive"
    assert "0 answers" in report.findings[0].message
    assert scene.target.state().live == refs[0].digest


def test_failing_golden_case_stops_it(deployed: Prepared) -> None:
    """A package whose golden cases do not match on the target never gets a request."""
    scene, refs = deployed.scene, deployed.refs
    scene.target.plant("golden", "expected 1, got 2")
    report = scene.deploy(refs[1])
    assert report.findings[0].rule == "deploy.golden-failed"
    assert scene.target.state().candidate is None
    assert "route" not in scene.target.read()["calls"][-6:]


@pytest.mark.parametrize("call", ["load", "route"])
def test_failing_target_is_undone(deployed: Prepared, call: str) -> None:
    """Whatever the target refuses before the decision is undone, and the error comes through."""
    scene, refs = deployed.scene, deployed.refs
    scene.target.plant(call, "planted")
    with pytest.raises((LoadFailed, RefusedError), match="planted"):
        scene.deploy(refs[1])
    assert scene.live == refs[0].digest
    assert scene.target.state().candidate is None
    assert unfinished(scene.ledger) == []


def test_failing_switch_is_completed_by_the_next_command(deployed: Prepared) -> None:
    """Once the pointer moved the change is completed, even if the target refused at first."""
    scene, refs = deployed.scene, deployed.refs
    scene.target.plant("promote", "planted")
    with pytest.raises(RefusedError, match="ledger says"):
        scene.deploy(refs[1])
    assert scene.live == refs[1].digest
    assert len(unfinished(scene.ledger)) == 1
    scene.target.heal()
    report = scene.deploy(refs[1])
    assert "completed the deploy" in report.measurements["recovered"][0]
    assert report.measurements["unchanged"] is True
    assert scene.target.state().live == refs[1].digest
    assert scene.kinds("promote", "deploy") == ["promote", "deploy"] * 2


def test_inverse_that_fails_keeps_the_operation_open(deployed: Prepared) -> None:
    """If the target cannot be restored that is said, and the next command restores it first."""
    scene, refs = deployed.scene, deployed.refs
    scene.target.plant("unload", "planted")
    with pytest.raises(RefusedError, match="taken back"):
        scene.deploy(refs[1], scene.traffic(error_share=0.2))
    scene.target.heal()
    assert len(unfinished(scene.ledger)) == 1
    report = scene.deploy(refs[1])
    assert "undid the deploy" in report.measurements["recovered"][0]
    assert report.verdict == "pass"


def test_vanished_candidate_is_an_error(deployed: Prepared) -> None:
    """A target that loses the candidate in the canary is reported and restored."""
    scene, refs = deployed.scene, deployed.refs
    options = DeployOptions(pump=lambda: scene.target.unload(refs[1].digest))
    with pytest.raises(ServerUnavailable, match="no longer holds"):
        scene.deploy(refs[1], options)
    assert scene.target.state().live == refs[0].digest


def test_unsigned_package_is_refused(prepared: Prepared) -> None:
    """A package whose signature is missing is refused, and nothing is left behind."""
    scene = prepared.scene
    unsigned = planting.unsigned(scene.workspace, prepared.refs[0])
    with pytest.raises(SignatureInvalid, match="not signed"):
        scene.deploy(unsigned)
    assert not scene.target.home.exists()
    assert unfinished(scene.ledger) == []


def test_unsigned_live_package_is_refused_too(deployed: Prepared) -> None:
    """That a package is live already does not make a missing signature good."""
    unsigned = planting.unsigned(deployed.scene.workspace, deployed.refs[0])
    with pytest.raises(SignatureInvalid, match="not signed"):
        deployed.scene.deploy(unsigned)


def test_signed_but_unregistered_package_is_refused(prepared: Prepared) -> None:
    """A signature alone does not suffice: the ledger must know the candidate."""
    from model_packages.oci import keys, push, sign
    from tests.fakes.packages import facts

    scene, ref = prepared.scene, prepared.refs[2]
    store = LayoutStore(scene.workspace.packages(MODEL))
    sign.sign(store, ref, facts(ref), keys.load_or_create(scene.workspace.keys, "builder"))
    push.push(store, LayoutStore(scene.workspace.registry(MODEL)), ref.digest)
    with pytest.raises(ReleaseRefused, match="no such candidate"):
        scene.deploy(ref)


def test_unknown_package_is_unavailable(prepared: Prepared) -> None:
    """A package the registry does not show cannot be deployed."""
    with pytest.raises(RegistryUnavailable):
        prepared.scene.deploy(prepared.refs[2])


def test_level_below_the_policy_is_refused(prepared: Prepared) -> None:
    """A release that achieved less than the target demands is refused."""
    with pytest.raises(ReleaseRefused, match="level L2"):
        prepared.scene.deploy(prepared.refs[0], demanded=policy(level="L2"))  # type: ignore[arg-type]


def test_untrusted_key_is_refused(prepared: Prepared) -> None:
    """Where demonstration keys do not count, no key of this home is trusted."""
    strict = policy(signatures={"demo_keys": False})
    with pytest.raises(SignatureInvalid, match="not trusted"):
        prepared.scene.deploy(prepared.refs[0], demanded=strict)


def test_too_few_roles_are_refused(prepared: Prepared) -> None:
    """A threshold above the roles that signed is refused with all that is missing."""
    strict = policy(signatures={"roles": ["builder", "approver"], "threshold": 2})
    with pytest.raises(SignatureInvalid):
        prepared.scene.deploy(prepared.refs[0], demanded=strict)


def test_other_model_is_refused(deployed: Prepared) -> None:
    """A target serves one model."""
    with pytest.raises(RefusedError, match="another model"):
        cutover.require_model(deployed.scene.ledger, TARGET, "other")


def test_plan_follows_policy_and_options() -> None:
    """The policy's figures make the plan, and an option may change the share."""
    plan = plan_of(policy(), DeployOptions(share=0.4, minimum_answers=7))
    assert (plan.share, plan.minimum_answers) == (0.4, 7)
    assert plan.max_error_delta == pytest.approx(0.049)


def test_racing_deploys_promote_once(deployed: Prepared) -> None:
    """Two deploys of one release to one target: one does the work, the other says unchanged."""
    scene, ref = deployed.scene, deployed.refs[1]
    results: list[Report] = []
    barrier = threading.Barrier(2)

    def run() -> None:
        barrier.wait()
        results.append(_alone(scene, ref))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(item.measurements.get("unchanged")) for item in results) == [False, True]
    assert scene.kinds("promote") == ["promote", "promote"]
    assert scene.live == ref.digest


@pytest.mark.slow
def test_racing_commands_promote_once(deployed: Prepared) -> None:
    """Three commands at once, one of them killed in its canary: still exactly one promotion."""
    scene, ref = deployed.scene, deployed.refs[1]
    packages = scene.home / "packages.json"
    files.write_json(packages, [ref.to_dict()])
    command = [sys.executable, "-m", "tests.tasks.release.scene", str(scene.home), "deploy"]
    points = ["", "deploy.canary.inside", ""]
    children = [subprocess.Popen([*command, str(packages), point], cwd=ROOT) for point in points]
    ends = sorted(child.wait(60) for child in children)
    assert set(ends) <= {0, -signal.SIGKILL}
    assert ends[1:] == [0, 0]
    assert scene.kinds("promote", "deploy") == ["promote", "deploy"] * 2
    assert scene.live == ref.digest == scene.target.state().live
    assert unfinished(scene.ledger) == []


def test_pointer_moved_by_somebody_else(deployed: Prepared) -> None:
    """If another host moves the pointer during the canary, ours is undone and says so."""
    scene, refs = deployed.scene, deployed.refs

    def pump() -> None:
        scene.target.serve(4000)
        scene.ledger.move_pointer(
            MODEL, TARGET, expected=refs[0].digest, new=refs[2].digest, body={}
        )

    with pytest.raises(PointerMoved, match="another release"):
        scene.deploy(refs[1], DeployOptions(pump=pump))
    assert scene.live == refs[2].digest
    assert scene.target.state().candidate is None
    assert unfinished(scene.ledger) == []


def test_failpoints_off_cost_nothing() -> None:
    """Points that no test armed do nothing."""
    failpoint.configure("")
    failpoint.hit("deploy.keep.before")


def _alone(scene: Scene, ref: PackageRef) -> Report:
    own = Scene(scene.home)
    target = FakeTarget(scene.target.home, TARGET)
    return deploy(own.workspace, ref, target, policy(), own.traffic())
