"""kill -9 at every failpoint of a release, a deployment and a rollback, then the same again.

The child is a fork of this process, so a run costs milliseconds; each is killed at one pass of one
point. The default run kills at the first pass of each point, the slow one at every pass.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.base import failpoint
from contracts.base.digest import Digest
from model_packages.oci import referrers
from model_packages.oci.store import LayoutStore
from tasks.release.journal import operations, unfinished
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, ROOT, TARGET, Scene

_SOURCES = (
    *sorted((ROOT / "tasks" / "release").glob("*.py")),
    ROOT / "tasks" / "ledger" / "store.py",
)
_POINT = re.compile(r'failpoint\.hit\("([a-z.]+)"\)')
_EFFECT = re.compile(r'journal\.effect\("([a-z]+)"')
POINTS = sorted({name for path in _SOURCES for name in _POINT.findall(path.read_text())})

Verb = Callable[[Scene], object]
Depth = Callable[[int], range]


def first_pass(passes: int) -> range:
    """Kill at the first pass of a point only."""
    return range(min(1, passes))


DEPTHS = [
    pytest.param(first_pass, id="first"),
    pytest.param(range, id="all", marks=pytest.mark.slow),
]


class Matrix:
    """Kills a verb at each point it passes, in a fresh copy of a home each time."""

    def __init__(self, source: Prepared, folder: Path, verb: Verb) -> None:
        self._source = source
        self._folder = folder
        self._verb = verb

    def crashed(self, depth: Depth) -> Iterator[tuple[str, Scene]]:
        """Yield each kill by name, and the home it left."""
        for point, passes in sorted(self._passes().items()):
            for number in depth(passes):
                scene = self._fresh()
                assert _in_child(scene, self._verb, f"{point}:{number}") == -signal.SIGKILL
                yield f"{point}:{number}", scene
                shutil.rmtree(scene.home)

    def _passes(self) -> Counter[str]:
        """Run the verb once and count how often it passes each point."""
        scene, passed = self._fresh(), Counter[str]()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(failpoint, "hit", lambda name: passed.update([name]))
            self._verb(scene)
        return passed

    def _fresh(self) -> Scene:
        home = self._folder / "crashed" / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self._source.scene.home, home)
        return Scene(home)


@pytest.mark.slow
@pytest.mark.parametrize("depth", DEPTHS)
def test_killed_deployment(deployed_template: Prepared, folder: Path, depth: Depth) -> None:
    """After any crash the target serves a whole release, and the next deploy finishes the job."""
    old, new = (ref.digest for ref in deployed_template.refs[:2])
    ref = deployed_template.refs[1]
    matrix = Matrix(deployed_template, folder, lambda scene: scene.deploy(ref))
    for kill, scene in matrix.crashed(depth):
        assert scene.target.state().live in (old, new), kill
        assert scene.live in (old, new), kill
        assert scene.deploy(ref).verdict == "pass", kill
        _assert_whole(scene, new, kill)
        assert scene.kinds("promote", "deploy") == ["promote", "deploy"] * 2, kill


@pytest.mark.slow
def test_killed_first_deployment(template: Prepared, folder: Path) -> None:
    """The very first deployment can be killed anywhere too."""
    ref = template.refs[0]
    matrix = Matrix(template, folder, lambda scene: scene.deploy(ref))
    for kill, scene in matrix.crashed(range):
        assert scene.deploy(ref).verdict == "pass", kill
        _assert_whole(scene, ref.digest, kill)
        assert scene.kinds("promote", "deploy") == ["promote", "deploy"], kill


@pytest.mark.slow
def test_killed_rollback(deployed: Prepared, folder: Path) -> None:
    """A rollback that was killed is completed or done again, and never goes back too far."""
    old, new = deployed.refs[:2]
    deployed.scene.deploy(new)
    matrix = Matrix(deployed, folder, lambda scene: scene.rollback())
    for kill, scene in matrix.crashed(range):
        if scene.live == new.digest:
            scene.rollback()
        else:
            assert scene.deploy(old).measurements["unchanged"] is True, kill
        _assert_whole(scene, old.digest, kill)
        assert scene.kinds("rollback") == ["rollback"], kill


@pytest.mark.slow
@pytest.mark.parametrize("depth", DEPTHS)
def test_killed_release(template: Prepared, folder: Path, depth: Depth) -> None:
    """A release that was killed is finished by the next, with one signature and one candidate."""
    ref = template.refs[2]
    matrix = Matrix(template, folder, lambda scene: scene.release(ref))
    for kill, scene in matrix.crashed(depth):
        scene.release(ref)
        assert len(scene.ledger.records("candidate", ref.digest)) == 1, kill
        assert scene.ledger.verify() > 0, kill
        assert unfinished(scene.ledger) == [], kill
        registry = LayoutStore(scene.workspace.registry(MODEL))
        assert len(referrers.listed(registry, ref.digest)) == 1, kill


def test_every_effect_has_its_points() -> None:
    """Each effect can be killed before, inside and after."""
    effects = {name for path in _SOURCES for name in _EFFECT.findall(path.read_text())}
    assert len(effects) >= 7
    for effect in effects:
        for place in ("before", "inside", "after"):
            assert any(point.endswith(f".{effect}.{place}") for point in POINTS), (effect, place)


def test_points_are_many_enough() -> None:
    """The verbs have at least 40 points of their own at which they can be killed."""
    assert len(POINTS) >= 40


def _in_child(scene: Scene, verb: Verb, point: str) -> int | None:
    def run() -> None:
        failpoint.configure(point)
        verb(scene)

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join(60)
    return child.exitcode


def _assert_whole(scene: Scene, live: Digest, kill: str) -> None:
    """The ledger is sound, the target follows it, and nothing is open."""
    state = scene.target.state()
    assert scene.ledger.verify() > 0, kill
    assert scene.live == live == state.live, kill
    assert state.candidate is None, kill
    assert state.canary_share == 0, kill
    assert unfinished(scene.ledger) == [], kill
    subjects = {item.subject for item in operations(scene.ledger) if item.verb != "release"}
    assert subjects == {f"{MODEL}/{TARGET}"}, kill
