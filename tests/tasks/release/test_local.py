"""The local target for real: a supervisor, a worker, HTTP and a canary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from contracts.base import files
from contracts.base.clock import SystemClock
from contracts.base.errors import LoadFailed
from model_packages.runtime.serve.client import Call, InferenceClient
from tasks.release import deploy as deploying
from tasks.release.deploy import DeployOptions
from tasks.release.rollback import rollback
from tasks.release.show import status
from tasks.release.targets.interface import Release
from tasks.release.targets.local import LocalTarget
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, TARGET, Scene, policy

# The supervisor is meant to outlive whoever started it, and subprocess warns about that.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.fixture
def real(prepared: Prepared) -> Iterator[tuple[Scene, LocalTarget]]:
    """A home and a local target that ends with the test."""
    scene = Scene(prepared.scene.home, SystemClock())
    lock = scene.workspace.locks / "test"
    with files.locked(lock):
        target = LocalTarget(TARGET, scene.workspace.targets / TARGET, while_locked=lock)
        try:
            yield scene, target
        finally:
            target.stop()


def ask(url: str, number: int) -> str:
    """Send one request and return the digest of the package that answered."""
    distance = np.array([float(number)], dtype=np.float32)
    call = Call({"carrier": ["AA"], "distance": distance})
    with contextlib.closing(InferenceClient(url)) as client:
        return client.infer(MODEL, call).package_digest


@pytest.mark.slow
def test_life_of_a_local_target(prepared: Prepared, real: tuple[Scene, LocalTarget]) -> None:
    """Deploy, canary under traffic, roll back within seconds, survive a stop."""
    (scene, target), refs = real, prepared.refs

    def deploy(number: int, options: DeployOptions) -> object:
        return deploying.deploy(scene.workspace, refs[number], target, policy(), options)

    first = deploy(0, DeployOptions())
    url = target.state().url
    assert first.verdict == "pass"  # type: ignore[attr-defined] # a Report
    assert ask(url, 1) == refs[0].digest

    def pump() -> None:
        for number in range(200):
            ask(url, number)

    second = deploy(1, DeployOptions(pump=pump))
    assert second.facts["canary"]["outcome"] == "pass"  # type: ignore[attr-defined] # a Report
    assert ask(url, 1) == refs[1].digest
    assert status(scene.workspace)[0].health == "ready"
    back = rollback(scene.workspace, MODEL, target)
    assert back.measurements["seconds"] < 10
    assert ask(url, 1) == refs[0].digest
    assert target.logs(1) is not None
    target.stop()
    again = deploy(0, DeployOptions())
    assert again.measurements["unchanged"] is True  # type: ignore[attr-defined] # a Report
    assert ask(target.state().url, 1) == refs[0].digest


@pytest.mark.slow
def test_local_target_refuses_what_is_not_there(
    prepared: Prepared, real: tuple[Scene, LocalTarget]
) -> None:
    """A folder that holds another package is refused at loading, with the stage."""
    (_, target), ref = real, prepared.refs[0]
    tree = target.home / "tree"
    (tree / "model").mkdir(parents=True)
    target.ensure()
    with pytest.raises(LoadFailed, match="load stage"):
        target.load(Release(MODEL, ref.digest, ref.set_digest, tree, tree))
    assert target.state().candidate is None
