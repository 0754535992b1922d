"""The validate stage: fuse, verdict, enforcement and alert work together."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts import fuse
from contracts.base.errors import DigestMismatch, InputError, RefusedError, SourceUnavailable
from contracts.base.report import Report
from contracts.engine import scan
from tasks.validate import validate as stage
from tasks.validate.validate import accepted_batch, delivered, reset_fuse, validate
from tasks.workspace import Workspace
from tests.fakes import batches
from tests.fakes.clock import FixedClock
from tests.fakes.sink import MemorySink


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    """A workspace on a checkout of its own, so that contracts can be published in it."""
    checkout = tmp_path / "checkout"
    for name in ("contracts", "tasks/validate", "model_packages"):
        (checkout / name).mkdir(parents=True)
    shutil.copy(root / "tasks/validate/validate.py", checkout / "tasks/validate")
    (checkout / "requirements.lock").write_text("")
    return Workspace(tmp_path / "home ü", checkout, FixedClock()).prepare()


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def run(workspace: Workspace, sink: MemorySink) -> Callable[..., Report]:
    """Validate the batch ``day``, or another, for consumer ``shop/model``."""

    def call(batch: str = "day", **named: Any) -> Report:
        return validate(workspace, "shop/orders", batch, None, "shop/model", sinks=[sink], **named)

    return call


def _publish(workspace: Workspace, **changes: Any) -> None:
    path = workspace.root / "contracts/published/shop/orders/1.0.0.contract.json"
    batches.write(path, **changes)


def _deliver(workspace: Workspace, *, name: str = "day", count: int = 4, **changes: Any) -> None:
    content = batches.table(batches.rows(count, **changes))
    batches.deliver(workspace.sources, content, name=name)


def test_good_batch_is_accepted_and_nobody_is_woken(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """A batch that keeps the contract passes whole, without an alert."""
    _publish(workspace)
    _deliver(workspace)
    report = run()
    assert (report.verdict, report.facts["action"]) == ("pass", "accept")
    assert accepted_batch(workspace, report).digest == report.facts["batch_digest"]
    assert sink.said() == []
    assert report.measurements["fuse"] == "closed"


def test_unchanged_batch_is_not_judged_again(
    workspace: Workspace, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second validation is decided from digests and gives the same report."""
    _publish(workspace)
    _deliver(workspace)
    first = run()

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("data was read")

    monkeypatch.setattr(scan, "run", refuse)
    second = run()
    assert second.digest == first.digest
    assert second.measurements["unchanged"]


def test_bad_batch_is_rejected_told_and_blows_the_fuse(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """Rejecting tells people once, and the next batch is refused before a byte is read."""
    _publish(workspace)
    _deliver(workspace, amount={0: -1.0})
    report = run()
    assert (report.verdict, report.facts["action"]) == ("fail", "reject")
    with pytest.raises(RefusedError):
        accepted_batch(workspace, report)
    keys = ["caisson/shop/orders/shop/model/batch day", "caisson/shop/orders/shop/model/fuse"]
    assert sink.said() == [("trigger", key) for key in keys]
    assert "secret" not in str(sink.taken)
    refused = run("never-delivered")
    assert (refused.verdict, refused.facts["action"]) == ("fail", "refuse")
    assert refused.findings[0].rule == "data.fuse-open"
    assert len(sink.taken) == 2


def test_corrected_batch_after_a_reset_resolves_everything(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """A reset lets one batch be tried; a good one closes the fuse and both incidents."""
    _publish(workspace)
    _deliver(workspace, amount={0: -1.0})
    run()
    _deliver(workspace)
    assert run().facts["action"] == "refuse"
    state = reset_fuse(workspace, "shop/orders", "shop/model", who="Ada", why="resent")
    assert state.state == "half-open"
    assert run().verdict == "pass"
    assert [action for action, _ in sink.said()] == ["trigger", "trigger", "resolve", "resolve"]
    assert run().measurements["fuse"] == "closed"


def test_time_alone_lets_the_next_batch_be_tried(
    workspace: Workspace, run: Callable[..., Report]
) -> None:
    """After the time in the contract the fuse is half-open; a bad batch opens it again."""
    _publish(workspace)
    _deliver(workspace, amount={0: -1.0})
    run()
    workspace.clock.advance(86_400)  # type: ignore[attr-defined]
    report = run()
    assert (report.facts["action"], report.measurements["fuse"]) == ("reject", "open")
    assert run().facts["action"] == "refuse"


def test_batch_that_cannot_be_judged_gives_its_trial_back(
    workspace: Workspace, run: Callable[..., Report]
) -> None:
    """Being unable to check is an error, says nothing about the data, and leaves the fuse."""
    _publish(workspace)
    with pytest.raises(SourceUnavailable):
        run("none")
    _deliver(workspace, amount={0: -1.0})
    run()
    reset_fuse(workspace, "shop/orders", "shop/model", who="Ada", why="resent")
    with pytest.raises(SourceUnavailable):
        run("none")
    _deliver(workspace)
    assert run().verdict == "pass"


def test_bad_rows_go_to_quarantine_and_the_rest_is_loaded(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """Under quarantine the good rows pass as a batch of their own, with a warning told."""
    _publish(workspace, on_violation="QUARANTINE_AND_ALERT")
    _deliver(workspace, amount={0: -1.0})
    report = run()
    assert (report.verdict, report.facts["action"]) == ("pass", "quarantine")
    assert (report.facts["quarantined_rows"], report.facts["accepted"]["rows"]) == (1, 3)
    accepted = accepted_batch(workspace, report)
    assert accepted.lineage["derived_from"] == report.facts["batch_digest"]
    assert [alert.level for alert in sink.taken] == ["warning"]
    assert run().measurements["unchanged"]
    shutil.rmtree(workspace.home / report.facts["accepted"]["folder"])
    with pytest.raises(InputError):
        accepted_batch(workspace, report)


def test_quarantine_that_leaves_nothing_good_rejects(
    workspace: Workspace, run: Callable[..., Report]
) -> None:
    """If every row is bad the batch is rejected, and nothing is published."""
    _publish(workspace, on_violation="QUARANTINE_AND_ALERT")
    _deliver(workspace, status=dict.fromkeys(range(4), "lost"))
    report = run()
    assert (report.verdict, report.facts["action"]) == ("fail", "reject")
    assert "keep the contract either" in report.facts["reason"]
    left = stage.quarantine_root(workspace).rglob("*.parquet")
    assert list(left) == []


def test_warning_accepts_and_tells(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """Under WARN the batch is loaded whole, and somebody is told."""
    _publish(workspace, on_violation="WARN")
    _deliver(workspace, amount={0: -1.0})
    report = run()
    assert (report.verdict, report.facts["action"]) == ("pass", "warn")
    assert report.facts["accepted"]["rows"] == 4
    assert [alert.action for alert in sink.taken] == ["trigger"]


def test_accepted_batch_that_changed_is_refused(
    workspace: Workspace, run: Callable[..., Report]
) -> None:
    """What is loaded is what was judged."""
    _publish(workspace)
    _deliver(workspace)
    report = run()
    _deliver(workspace, amount={0: 8.0})
    with pytest.raises(DigestMismatch, match="not the one"):
        accepted_batch(workspace, report)


def test_alert_shows_no_value_of_a_row(
    workspace: Workspace, run: Callable[..., Report], sink: MemorySink
) -> None:
    """Alerts leave the house; rows do not."""
    _publish(workspace)
    _deliver(workspace, status={0: "confidential"}, customer={1: None})
    report = run()
    assert "confidential" in json.dumps(report.to_dict())
    assert "c0" not in json.dumps(report.to_dict()["findings"])
    assert "confidential" not in json.dumps([alert.to_dict() for alert in sink.taken])


def test_batch_of_the_future_is_rejected(workspace: Workspace) -> None:
    """A run as of an earlier moment refuses a later batch."""
    _publish(workspace)
    _deliver(workspace)
    early = batches.MOMENT - timedelta(days=1)
    report = validate(workspace, "shop/orders", "day", early, "shop/model")
    assert report.facts["action"] == "reject"
    assert delivered(workspace, "shop/orders", early) == []
    assert delivered(workspace, "shop/orders", batches.MOMENT) == ["day"]


def test_second_batch_waits_for_the_trial(
    workspace: Workspace, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one batch is on trial another waits, and passes once the trial closed the fuse."""
    _publish(workspace)
    _deliver(workspace, amount={0: -1.0})
    run()
    _deliver(workspace)
    _deliver(workspace, name="next", count=5)
    reset_fuse(workspace, "shop/orders", "shop/model", who="Ada", why="resent")
    contract = stage.catalog(workspace).load("shop/orders")
    fuse.admit(workspace.objects, contract, "shop/model", workspace.clock.now())
    seen = threading.Event()
    monkeypatch.setattr(stage.time, "sleep", lambda seconds: seen.set() or seen.wait(seconds / 10))
    found: list[Report] = []
    waiting = threading.Thread(target=lambda: found.append(run("next")))
    waiting.start()
    assert seen.wait(10)
    fuse.record(
        workspace.objects,
        contract,
        "shop/model",
        batch_digest="other",
        violated=False,
        reason="",
        now=workspace.clock.now(),
    )
    waiting.join(20)
    assert found[0].verdict == "pass"


def test_trial_that_never_ends_refuses(
    workspace: Workspace, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for a trial is bounded."""
    _publish(workspace)
    _deliver(workspace, amount={0: -1.0})
    run()
    reset_fuse(workspace, "shop/orders", "shop/model", who="Ada", why="resent")
    contract = stage.catalog(workspace).load("shop/orders")
    fuse.admit(workspace.objects, contract, "shop/model", workspace.clock.now())
    monkeypatch.setattr(stage, "_TRIAL_LOOK_S", 0.0)
    assert run().facts["action"] == "refuse"
