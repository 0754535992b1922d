"""kill -9 anywhere in the demo, then the same command again: it completes, and nothing is wrong."""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.installation import ROOT, Ended, Installation, finish, left_alone
from tests.fakes.reference import SETTINGS, Reference
from tests.fakes.soundness import assert_finished, assert_sound, live
from tests.fakes.waiting import alive, until
from tests.fakes.zygote import Zygote

# Points that no demo reaches, and the test that kills there.
ELSEWHERE = {
    "alerts.enqueue.after": "tests/tasks/alerts/test_alerts.py::"
    "test_kill_between_taking_and_sending_loses_nothing",
    "contract.publish.after": "tests/contracts/test_publish.py::"
    "test_kill_leaves_a_whole_file_or_none",
    "contract.publish.before": "tests/contracts/test_publish.py::"
    "test_kill_leaves_a_whole_file_or_none",
    "fuse.change.after": "tests/contracts/test_fuse.py::test_kill_leaves_the_old_state_or_the_new",
    "fuse.change.before": "tests/contracts/test_fuse.py::test_kill_leaves_the_old_state_or_the_new",
    "quarantine.publish.after": "tests/contracts/test_quarantine.py::"
    "test_kill_leaves_the_whole_quarantine_or_none",
    "quarantine.publish.before": "tests/contracts/test_quarantine.py::"
    "test_kill_leaves_the_whole_quarantine_or_none",
    "server.start.inside": "tests/flows/test_server.py::"
    "test_a_command_killed_while_starting_leaves_nothing",
    "trust.environment.before": "tests/tasks/trust/test_environment.py::"
    "test_a_killed_build_leaves_nothing_that_is_trusted",
}
# A kill just before these completes what they follow, so that the next run passes neither; the
# release tests kill at each of them in a fresh installation.
_SHADOWED = {"release.push.after", "release.sign.after"}
_RELEASE_TESTS = "tests/tasks/release/test_crash.py::test_killed_release"

_KILLS = 10
_LONGEST_S = 14.0
_DEMO = ("demo", "--no-faults")

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


def points() -> list[str]:
    """The names of all failpoints in the source."""
    found = []
    for room in ("contracts", "model_packages", "tasks", "flows"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "failpoint.hit":
                    assert isinstance(node.args[0], ast.Constant)
                    found.append(str(node.args[0].value))
    return found


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An empty installation, whose processes end with the test."""
    found = Installation(tmp_path / "hôme")
    with left_alone(found):
        yield found


@pytest.mark.xdist_group("points")
def test_killed_at_every_point(installation: Installation, undisturbed: Reference) -> None:
    """Killed once at every named point it passes, the demo ends where an undisturbed one ends."""
    armed = set(points()) - set(ELSEWHERE)
    with Zygote(installation) as zygote:
        while True:
            ended = zygote.run(*_DEMO, environment={"CAISSON_FAILPOINTS": ",".join(sorted(armed))})
            installation.until_quiet(apart_from=zygote.pids)
            if ended.status == 0:
                break
            passed = _killed_at(ended, installation) & armed
            assert passed, f"ended for another reason: {ended}"
            armed -= passed
    assert armed <= _SHADOWED
    installation.until_quiet()
    assert_finished(installation, live(undisturbed.installation))


def test_every_point_is_killed_at() -> None:
    """A point that no demo reaches has a test of its own, and those named here exist."""
    named = points()
    assert set(ELSEWHERE) | _SHADOWED <= set(named)
    for test in {*ELSEWHERE.values(), _RELEASE_TESTS}:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test


@pytest.mark.xdist_group("moments")
def test_killed_at_any_moment(installation: Installation, undisturbed: Reference) -> None:
    """Killed ten times at random, by Ctrl-C and through its server, the demo ends all the same."""
    moments = random.Random(9)  # any seed will do; this one is so that a failure can be repeated
    _kill_at_random(installation, _KILLS // 2, moments)
    _kill_when_trained(installation)
    _kill_at_random(installation, _KILLS // 2, moments)
    _interrupt(installation)
    _kill_server(installation)
    installation.run(*_DEMO, **SETTINGS).demand()
    installation.until_quiet()
    assert_finished(installation, live(undisturbed.installation))


def _kill_at_random(installation: Installation, kills: int, moments: random.Random) -> None:
    """Kill the demo that often, each time some seconds after its start."""
    while kills:
        process = installation.start(*_DEMO, **SETTINGS)
        try:
            _forget(installation, finish(process, seconds=moments.uniform(0.5, _LONGEST_S)))
        except subprocess.TimeoutExpired:
            process.communicate()
            kills -= 1
        installation.until_quiet()


def _kill_when_trained(installation: Installation) -> None:
    """Let the demo get over its longest stage, which nothing shorter than it could pass."""
    trained = installation.workspace.reports / "train"
    process = installation.start(*_DEMO, **SETTINGS)
    until(lambda: any(trained.glob("*.json")), seconds=200)
    process.kill()
    process.communicate()
    installation.until_quiet()


def _killed_at(ended: Ended, installation: Installation) -> set[str]:
    """The points at which the command or its target was killed, by their own last words."""
    log = installation.workspace.targets / "local" / "supervisor.log"
    said = ended.err + (log.read_text(encoding="utf-8") if log.is_file() else "")
    return {line.split()[1] for line in said.splitlines() if line.startswith("failpoint ")}


def _interrupt(installation: Installation) -> None:
    """Ctrl-C while something works ends everything at once, with the status for it."""
    _forget(installation)
    process = installation.start(*_DEMO, **SETTINGS)
    until(
        lambda: installation.workspace.targets.joinpath("local", "state.json").exists(), seconds=90
    )
    os.kill(process.pid, signal.SIGINT)
    ended = finish(process, seconds=30).demand(130)
    assert ended.err.splitlines()[-1].startswith("caisson: interrupted")
    installation.until_quiet()
    assert_sound(installation)


def _kill_server(installation: Installation) -> None:
    """Without its Prefect server the command ends soon, says why, and can be repeated."""
    _forget(installation)
    state = installation.workspace.prefect / "server.json"
    process = installation.start(*_DEMO, **SETTINGS)
    until(state.exists, seconds=90)
    pid = json.loads(state.read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    ended = finish(process, seconds=60).demand(2)
    assert "the Prefect server ended while it was needed" in ended.err
    installation.until_quiet()
    assert_sound(installation)


def _forget(installation: Installation, ended: Ended | None = None) -> None:
    """Let a demo that was completed be told again."""
    if ended is not None:
        ended.demand()
    for path in (installation.workspace.reports / "flow-demo").glob("*.json"):
        path.unlink()
