"""Status: what runs where, fast and without the engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contracts.base.errors import InputError
from tasks.release.history import moves, releases
from tasks.release.show import status
from tasks.release.targets.interface import Target
from tasks.release.targets.peek import await_requests, peek
from tasks.release.targets.table import KINDS, open_target
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, ROOT, TARGET


def test_registered_model_is_shown_before_it_runs(prepared: Prepared) -> None:
    """A model that was registered and never deployed has a row of its own."""
    (row,) = status(prepared.scene.workspace)
    assert (row.model, row.target, row.health) == (MODEL, "", "not deployed")
    assert row.candidate == prepared.refs[1].digest


def test_live_candidate_and_previous(deployed: Prepared) -> None:
    """The row of a deployed model names what is live, what waits and what was before."""
    scene, refs = deployed.scene, deployed.refs

    def look(_: str):  # type: ignore[no-untyped-def] # the state of the fake
        return scene.target.state()

    (row,) = status(scene.workspace, look)
    assert (row.live, row.candidate, row.previous) == (refs[0].digest, refs[1].digest, None)
    assert (row.level, row.health) == ("L1", "ready")
    scene.deploy(refs[1])
    (row,) = status(scene.workspace, look)
    assert (row.live, row.candidate, row.previous) == (refs[1].digest, None, refs[0].digest)
    assert row.age_s is not None
    assert row.to_dict()["url"].startswith("http://")
    scene.target.plant("promote", "planted")
    with pytest.raises(Exception, match="ledger says"):
        scene.rollback()
    assert status(scene.workspace, look)[0].health == "interrupted"
    scene.target.stop()
    assert status(scene.workspace, look)[0].health == "stopped"
    assert status(scene.workspace)[0].health == "stopped"


def test_nothing_released_is_an_empty_table(tmp_path: Path) -> None:
    """An empty home has no rows, and looking makes no ledger."""
    from tasks.workspace import Workspace

    workspace = Workspace(tmp_path, ROOT)
    assert status(workspace) == []
    assert not workspace.ledger_path.exists()


def test_history_of_nothing_is_empty(prepared: Prepared) -> None:
    """Where nothing was deployed nothing moved."""
    assert moves(prepared.scene.ledger, "a/b") == []
    assert releases(prepared.scene.ledger, "a", "b") == []


def test_unreadable_target_does_not_run(tmp_path: Path) -> None:
    """A folder that is no target, or an address nobody listens at, is not running."""
    assert not peek(tmp_path).running
    assert not await_requests("http://127.0.0.1:9", 0.5)


def test_targets_are_opened_by_kind_and_name(prepared: Prepared) -> None:
    """Every kind in the table is a target; unknown kinds and odd names are refused."""
    workspace = prepared.scene.workspace
    for kind in KINDS:
        target: Target = open_target(workspace, TARGET, kind=kind)
        assert target.name == TARGET
        assert target.home == workspace.targets / TARGET
        assert not target.state().running
        assert list(target.logs(5)) == []
        target.stop()
    with pytest.raises(InputError, match="kind"):
        open_target(workspace, TARGET, kind="moon")
    for name in ("", "a/b", ".."):
        with pytest.raises(InputError, match="name"):
            open_target(workspace, name)


def test_status_loads_no_engine() -> None:
    """Reading the status loads neither the engines nor the libraries that compute."""
    code = (
        "import sys, time; import tasks.release.show\n"
        "heavy = {'prefect', 'mlflow', 'onnxruntime', 'onnx', 'numpy', 'cryptography', 'torch'}\n"
        "print(sorted(heavy & set(sys.modules)), time.process_time() < 0.5)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[] True"
