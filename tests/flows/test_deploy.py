"""Deploy and rollback as flows: the right release to the right target, with traffic or without."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import InputError, RefusedError, UnavailableError
from contracts.base.report import Report, conclude
from flows import deploy, rollback, traffic
from flows.context import Context
from model_packages.oci.reference import PackageRef
from tasks.release.steps import DeployOptions
from tests.fakes import calls
from tests.fakes.target import FakeTarget


class Steps:
    """Takes the place of the steps below the flow and notes what it is given."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.opened: list[tuple[str, Path | None]] = []
        self.deployed: list[tuple[PackageRef, str, DeployOptions]] = []
        self.mirrored: list[str] = []
        self.error: Exception | None = None

    def open_target(self, workspace: object, name: str, *, while_locked: Path | None) -> FakeTarget:
        self.opened.append((name, while_locked))
        return FakeTarget(self.home, name)

    def deploy(
        self, workspace: object, ref: PackageRef, place: FakeTarget, policy: Any, options: Any
    ) -> Report:
        self.deployed.append((ref, place.name, options))
        options.pump()
        return conclude("deploy", "tiny/local", [], measurements={"url": "http://127.0.0.1:1"})

    def reconcile(self, workspace: object, model: str) -> Report:
        self.mirrored.append(model)
        if self.error is not None:
            raise self.error
        return conclude("reconcile", model, [])


@pytest.fixture
def steps(here: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    body = {"model": "tiny", "set_digest": calls.REF.set_digest}
    here.ledger.append("candidate", calls.REF.digest, body)
    monkeypatch.setenv("CAISSON_HOME", str(here.workspace.home))
    found = Steps(tmp_path / "target")
    monkeypatch.setattr(deploy, "open_target", found.open_target)
    monkeypatch.setattr(deploy, "deploy_package", found.deploy)
    monkeypatch.setattr(deploy, "reconcile_lineage", found.reconcile)
    return found


def run(*arguments: Any) -> Report:
    return asyncio.run(deploy.deploy.fn(*arguments))


def test_the_newest_candidate_goes_to_the_default_target(steps: Steps) -> None:
    """Callers send the traffic and the target outlives the command, unless said otherwise."""
    report = run("tiny")
    ((ref, target, options),) = steps.deployed
    assert (ref, target) == (calls.REF, "local")
    assert options.share is None
    assert options.by
    assert steps.opened == [("local", None)]
    assert steps.mirrored == ["tiny"]
    assert set(report.measurements["seconds"]) == {"deploy", "lineage"}
    assert report.measurements["url"] == "http://127.0.0.1:1"


def test_the_demo_brings_its_own_traffic_and_ties_the_target(steps: Steps, tmp_path: Path) -> None:
    """A supplied pump sends requests between looks; a supplied lock ends the target."""
    sent: list[int] = []
    lock = tmp_path / "lock"
    with traffic.supplied(lambda: sent.append(1), lock):
        run("tiny", "local", calls.REF.digest, 0.25)
        assert traffic.owner() == lock
    assert sent == [1]
    assert steps.opened == [("local", lock)]
    assert steps.deployed[0][2].share == 0.25
    assert (traffic.pump(), traffic.owner()) == (None, None)


def test_what_is_unknown_is_refused_before_the_target_is_touched(steps: Steps) -> None:
    """A release that is not registered, or a target without a policy."""
    with pytest.raises(RefusedError, match="no release of other"):
        run("other")
    with pytest.raises(InputError, match="local"):
        run("tiny", "nowhere")
    assert steps.opened == []


def test_a_deployment_stands_although_mlflow_was_not_told(steps: Steps) -> None:
    """What MLflow lacks is said and blocks nothing: the ledger has the truth."""
    steps.error = UnavailableError("database is locked")
    report = run("tiny")
    assert report.verdict == "pass"
    (item,) = report.findings
    assert (item.rule, item.severity) == ("deploy.lineage-behind", "low")
    assert "database is locked" in item.message


def test_an_interrupted_deployment_ends_between_two_looks(steps: Steps) -> None:
    """Once interrupted, the pump raises, so that the deployment undoes itself."""
    looked = threading.Event()
    ended: list[BaseException] = []

    def long(workspace: object, ref: object, place: object, policy: object, options: Any) -> Report:
        try:
            while True:
                options.pump()
        except UnavailableError as err:
            ended.append(err)
            raise

    async def command(step: Callable[..., Report]) -> None:
        with traffic.supplied(looked.set), pytest.MonkeyPatch.context() as patch:
            patch.setattr(deploy, "deploy_package", step)
            work = asyncio.create_task(deploy.deploy.fn("tiny"))
            await asyncio.to_thread(looked.wait)
            work.cancel()
            await work

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(command(long))
    assert "interrupted" in str(ended[0])


def test_rollback_names_who_and_why(
    here: Context, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow goes back in the target of the policy, with the reason for the ledger."""
    noted: list[Any] = []

    def back(workspace: object, model: str, place: FakeTarget, options: Any) -> Report:
        noted.extend([model, place.name, options.reason, options.by])
        return conclude("rollback", model, [])

    monkeypatch.setattr(rollback, "open_target", steps.open_target)
    monkeypatch.setattr(rollback, "rollback_target", back)
    assert asyncio.run(rollback.rollback.fn("tiny", "local", "worse")).verdict == "pass"
    assert noted[:3] == ["tiny", "local", "worse"]
    assert noted[3]
