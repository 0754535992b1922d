"""Alerts reach every sink, in order, once an incident, through outages and kills."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import InputError, UnavailableError
from tasks.alerts import outbox as outboxes
from tasks.alerts import payloads, webhook, wiring
from tasks.alerts.interface import Alert
from tasks.alerts.outbox import FileSink, Outbox
from tasks.workspace import Workspace
from tests.fakes.sink import MemorySink, receiver


def _alert(action: Any = "trigger", key: str = "a", **fields: Any) -> Alert:
    values = {"summary": "bad <b>&", "level": "critical", "source": "shop/orders@1.0.0"}
    return Alert(action, key, **{**values, "at": "2026-03-01T00:00:00.000Z", **fields})


def test_incident_is_told_once_and_resolved_once(tmp_path: Path) -> None:
    """A second trigger, and a resolve of nothing, say nothing new."""
    sink = MemorySink()
    box = Outbox(tmp_path, [sink])
    told = [box.send(_alert(action)) for action in ("resolve", "trigger", "trigger", "resolve")]
    assert told == [False, True, False, True]
    assert sink.said() == [("trigger", "a"), ("resolve", "a")]
    assert box.incidents() == []


def test_open_incidents_are_listed(tmp_path: Path) -> None:
    """What is open is known without asking any service."""
    box = Outbox(tmp_path, [MemorySink()])
    box.send(_alert(key="b"))
    box.send(_alert(key="a"))
    assert [item["key"] for item in box.incidents()] == ["a", "b"]


def test_outage_loses_nothing_and_keeps_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What a sink could not take arrives later, in order, and other sinks do not wait."""
    sick, well = MemorySink("sick", down=True), MemorySink("well")
    with caplog.at_level(logging.WARNING):
        box = Outbox(tmp_path, [sick, well])
        box.send(_alert(key="a"))
        box.send(_alert("resolve", key="a"))
    assert "not delivered to sick" in caplog.text
    assert (sick.said(), len(well.said())) == ([], 2)
    again = Outbox(tmp_path, [sick, well])  # the program was restarted meanwhile
    assert again.flush() == 2
    sick.down = False
    assert again.flush() == 0
    assert sick.said() == well.said() == [("trigger", "a"), ("resolve", "a")]


def test_full_outbox_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alerts that wait are bounded."""
    monkeypatch.setattr(outboxes, "_MOST_PENDING", 1)
    box = Outbox(tmp_path, [MemorySink(down=True)])
    box.send(_alert(key="a"))
    with pytest.raises(UnavailableError, match="too many alerts"):
        box.send(_alert(key="b"))


def test_file_sink_writes_a_line_an_alert(tmp_path: Path) -> None:
    """The default sink is a file only its owner can read."""
    workspace = Workspace(tmp_path, tmp_path).prepare()
    box = wiring.outbox(workspace)
    box.send(_alert())
    box.send(_alert("resolve"))
    path = workspace.reports / "alerts.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["action"] for line in lines] == ["trigger", "resolve"]
    assert lines[0]["id"] == _alert().id
    assert path.stat().st_mode & 0o077 == 0


def test_unwritable_file_keeps_the_alert(tmp_path: Path) -> None:
    """A full or read-only disk is an outage like any other."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnavailableError, match="cannot be written"):
        FileSink(tmp_path / "folder").send(_alert())
    box = Outbox(tmp_path / "box", [FileSink(tmp_path / "folder")])
    assert box.send(_alert())
    assert box.flush() == 1


_KILLED = """
import sys
from pathlib import Path
from contracts.base import failpoint
from tasks.alerts.interface import Alert
from tasks.alerts.outbox import FileSink, Outbox
failpoint.configure("alerts.enqueue.after")
box = Outbox(Path(sys.argv[1]) / "box", [FileSink(Path(sys.argv[1]) / "alerts.jsonl")])
box.send(Alert("trigger", "a", "s", "critical", "x", "2026-03-01T00:00:00.000Z"))
"""


def test_kill_between_taking_and_sending_loses_nothing(tmp_path: Path, root: Path) -> None:
    """kill -9 after an alert was taken: the repeat sends it once."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=root, check=False)
    assert done.returncode == -9
    sink = MemorySink()
    box = Outbox(tmp_path / "box", [sink])
    assert box.send(_alert())
    assert sink.said() == [("trigger", "a")]


def test_pagerduty_gets_trigger_and_resolve_with_one_key() -> None:
    """Events of version 2 carry the dedup key; only a trigger has a payload."""
    event = payloads.pagerduty(_alert(summary="x" * 2000, details={"n": 1}), "key")
    assert (event["event_action"], event["dedup_key"]) == ("trigger", "a")
    assert len(event["payload"]["summary"]) == 1024
    assert event["payload"]["severity"] == "critical"
    assert event["payload"]["custom_details"] == {"n": 1}
    resolved = payloads.pagerduty(_alert("resolve"), "key")
    assert resolved == {"routing_key": "key", "event_action": "resolve", "dedup_key": "a"}


def test_slack_text_is_escaped() -> None:
    """What a batch is called cannot forge links or mentions."""
    assert payloads.slack(_alert())["text"] == ("[CRITICAL] shop/orders@1.0.0: bad &lt;b&gt;&amp;")
    assert payloads.slack(_alert("resolve"))["text"].startswith("[RESOLVED]")


def test_webhooks_post_what_their_service_reads() -> None:
    """Each kind of webhook sends its own form over HTTP."""
    with receiver() as found:
        webhook.pagerduty("key", found.url).send(_alert())
        webhook.slack(found.url).send(_alert())
        webhook.Webhook("http", found.url).send(_alert())
    assert found.bodies[0]["routing_key"] == "key"
    assert set(found.bodies[1]) == {"text"}
    assert found.bodies[2]["id"] == _alert().id


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_refused_post_is_kept_and_tells_no_secret(status: int) -> None:
    """Anything but 2xx, a redirect too, is an outage; the address' path stays unsaid."""
    with receiver() as found:
        found.status = status
        with pytest.raises(UnavailableError, match=f"HTTP status {status}") as caught:
            webhook.Webhook("http", found.url).send(_alert())
    assert len(found.bodies) == 1
    assert "secret-path" not in str(caught.value)


def test_nobody_listening_is_an_outage() -> None:
    """A closed port is told by host, not by address."""
    with receiver() as found:
        url = found.url
    with pytest.raises(UnavailableError, match=r"http:127\.0\.0\.1") as caught:
        webhook.Webhook("http", url).send(_alert())
    assert "secret-path" not in str(caught.value)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "hook", "http://"])
def test_only_http_addresses_are_taken(url: str) -> None:
    """An alert cannot be made to read files or speak other protocols."""
    with pytest.raises(InputError, match="not an address"):
        webhook.Webhook("http", url)
