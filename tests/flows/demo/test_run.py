"""The demo's frame: told once, then recalled, with the target started again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.base import files
from contracts.base.errors import RefusedError
from contracts.base.report import Finding, Report, conclude
from flows import context, recall
from flows.context import Context
from flows.demo import run, story
from flows.demo.chapters import Chapters
from flows.demo.faults import Fault, Good
from flows.demo.run import DemoOptions
from flows.demo.subject import MODEL, TARGET
from tasks.demo import data
from tests.fakes import calls, packages, world
from tests.fakes.target import FakeTarget

TABLE = [
    {"name": "data", "verdict": "pass", "note": "rows", "look": "", "seconds": 3.0},
    {"name": "deploy", "verdict": "pass", "note": "live", "look": "caisson status", "seconds": 2.0},
]


class Ready:
    """A target that answers."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ready(self) -> bool:
        return True


@pytest.fixture
def stage(here: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A demo without data, server and target; notes what is deployed."""
    deployed: list[Any] = []
    body = {"model": MODEL, "set_digest": calls.REF.set_digest}
    here.ledger.append("candidate", calls.REF.digest, body)

    def current(as_of: str) -> Context:
        assert as_of == "2014-01-01"
        return here

    def prepare(root: Path, progress: object) -> dict[str, Any]:
        return {"sources": {"nyc/flights": {"rows": 1234, "batches": ["2013-01"]}}}

    def opened(workspace: object, name: str, *, while_locked: Path | None) -> FakeTarget:
        deployed.append((name, while_locked))
        return FakeTarget(tmp_path / "target", name)

    def deploy(workspace: object, ref: Any, place: Any, policy: Any) -> Report:
        deployed.append(ref.digest)
        return conclude("deploy", "s", [], measurements={"url": "http://127.0.0.1:1"})

    monkeypatch.setattr(context, "current", current)
    monkeypatch.setattr(data, "prepare", prepare)
    monkeypatch.setattr(run, "open_target", opened)
    monkeypatch.setattr(run.deploying, "deploy", deploy)
    monkeypatch.setattr(run, "InferenceClient", Ready)
    return deployed


def recorded(monkeypatch: pytest.MonkeyPatch, *, unchanged: bool) -> None:
    """Let the demo's end be on record, or be told now."""
    release = {"repository": MODEL, "digest": calls.REF.digest, "set_digest": calls.REF.set_digest}
    facts = {"releases": [release], "table": TABLE, "page": "/p", "request_id": "r"}
    measured = {"unchanged": True} if unchanged else {"url": "http://127.0.0.1:2"}

    def demo(here: Context, produce: Callable[[], Report], *, faults: bool) -> Report:
        return conclude("flow-demo", "s", [], facts=facts, measurements=measured)

    monkeypatch.setattr(recall, "demo", demo)


def test_an_unchanged_demo_starts_only_the_target(
    stage: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is the recorded one, marked, and the last line says where it answers."""
    recorded(monkeypatch, unchanged=True)
    report = run.run(DemoOptions(quiet=True))
    assert stage[1] == calls.REF.digest
    names = [row["name"] for row in report.facts["table"]]
    assert names == ["data: flights of New York 2013", "deploy", "start the target again"]
    assert report.facts["table"][1]["note"] == "unchanged: live"
    assert report.facts["table"][0]["note"] == "1,234 rows in 1 batches"
    assert report.measurements == {"url": "http://127.0.0.1:1", "unchanged": True}
    assert "ready at http://127.0.0.1:1" in report.facts["table"][2]["note"]


def test_a_demo_told_now_is_returned_as_it_is(
    stage: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is deployed a second time."""
    recorded(monkeypatch, unchanged=False)
    assert run.run(DemoOptions(quiet=True)).measurements["url"] == "http://127.0.0.1:2"
    assert stage == []


@pytest.mark.parametrize("keep", [False, True])
def test_the_target_ends_with_the_demo_unless_kept(
    here: Context, stage: list[Any], monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """It is tied to a lock that the demo holds while it runs, or to nothing."""
    recorded(monkeypatch, unchanged=True)
    held: list[bool] = []
    lock = here.workspace.locks / "demo-target"

    def deploy(*_: Any) -> Report:
        with files.locked(lock, wait=False) as free:
            held.append(not free)
        return conclude("deploy", "s", [], measurements={"url": "http://127.0.0.1:1"})

    monkeypatch.setattr(run.deploying, "deploy", deploy)
    run.run(DemoOptions(keep=keep, quiet=True))
    assert stage[0] == (TARGET, None if keep else lock)
    assert held == [not keep]
    with files.locked(lock, wait=False) as free:
        assert free


def test_the_first_demo_tells_the_story_under_a_server(
    here: Context, stage: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the story came to is the report: page, request, level, table and where time went."""
    lingers: list[float] = []

    @contextlib.contextmanager
    def ensure(workspace: object, linger: float) -> Iterator[None]:
        lingers.append(linger)
        yield

    async def tell(*arguments: Any, plant: bool) -> story.Told:
        arguments[1].add("nightly", "pass", 1.0)
        return story.Told(calls.REF, tmp_path / "page", "request", "http://u", {"lacking": []})

    monkeypatch.setattr(run.server, "ensure", ensure)
    monkeypatch.setattr(story, "tell", tell)
    report = run._first(here, Chapters(quiet=True), None, DemoOptions())
    assert report.facts["request_id"] == "request"
    assert report.facts["releases"] == [calls.REF.to_dict()]
    assert [row["name"] for row in report.facts["table"]] == ["nightly"]
    assert report.measurements["url"] == "http://u"
    assert {"seconds", "server", "engines", "stages"} <= set(report.measurements)
    run._first(here, Chapters(quiet=True), None, DemoOptions(keep=True))
    assert lingers == [0.0, here.settings.linger]


def test_good_data_that_is_refused_stops_the_story() -> None:
    """The first blocking finding is the error, with its place and remedy."""
    harmless = Finding("a.info", "s", "", "info", "fine", "")
    bad = Finding("b.bad", "s", "column x", "high", "is broken", "mend it")
    story._demand(conclude("validate", "s", [harmless]))
    with pytest.raises(RefusedError, match="column x: validate refused s: is broken") as caught:
        story._demand(conclude("validate", "s", [harmless, bad]))
    assert caught.value.remedy == "mend it"
    with pytest.raises(RefusedError, match="no device"):
        story._demand(Report("hardware", "s", "skip", reason="no device"))


def test_only_the_batch_size_differs_in_the_second_release(here: Context, tmp_path: Path) -> None:
    """Another configuration is another source with the same model."""
    from contracts.objects import content
    from flows import sources

    good = sources.resolve(here, "tiny", str(packages.write_source(tmp_path / "source")))
    changed = story._reconfigured(here, good)
    old, new = (
        {item.path: item.sha256 for item in content.read_tree(here.workspace.objects, tree)}
        for tree in (good.tree, changed)
    )
    assert {name for name in old if old[name] != new[name]} == {"config.yaml"}
    assert sources.resolve(here, "tiny", changed).manifest == good.manifest
    assert story._reconfigured(here, good) == changed


def test_canary_notes_are_sentences() -> None:
    """Whether it ran or was skipped, the table says why or with how many answers."""
    skip = world.report("deploy", canary={"outcome": "skip", "reason": "first"})
    assert story._canary(skip) == "canary skipped: first"
    ran = {"outcome": "pass", "answers": 200, "share": 0.2, "needed": 183}
    said = story._canary(world.report("deploy", canary=ran))
    assert said == "canary pass: 200 answers at share 0.2, 183 needed"


@pytest.mark.parametrize("refused", [("trust",), ("verify",), (), ("trust", "verify")])
def test_a_missed_fault_fails_the_demo(
    here: Context, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...]
) -> None:
    """Each fault must meet its stage and no other; the table shows both ways."""
    fault = Fault("leak", "trust", refused, (), "said", "do")

    async def plant_all(place: Context, good: Good, tell: Callable[..., None]) -> list[Fault]:
        tell(fault, 1.0)
        return [fault]

    monkeypatch.setattr(story.faults, "plant_all", plant_all)
    chapters = Chapters(quiet=True)
    good = Good(None, calls.REF, "a", "b")  # type: ignore[arg-type] # not looked at here
    import asyncio

    if refused == ("trust",):
        asyncio.run(story._plant(here, chapters, good))
        assert chapters.rows[0].verdict == "pass"
    else:
        with pytest.raises(RefusedError, match="trust alone should refuse"):
            asyncio.run(story._plant(here, chapters, good))
        assert chapters.rows[0].verdict == "fail"
