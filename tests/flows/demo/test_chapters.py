"""The demo's table, filled while the demo runs."""

from __future__ import annotations

import pytest

from contracts.base.errors import RefusedError
from flows.demo.chapters import Chapters


def test_a_chapter_passes_unless_it_says_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    """It is announced on stderr, timed, and its note is said when it ends."""
    told = Chapters()
    with told.telling("deploy", "caisson status") as chapter:
        chapter.note = "live"
    with told.telling("canary") as chapter:
        chapter.verdict = "skip"
    first, second = told.rows
    assert (first.name, first.verdict, first.look) == ("deploy", "pass", "caisson status")
    assert first.seconds >= 0
    assert second.verdict == "skip"
    said = capsys.readouterr()
    assert said.out == ""
    assert "· deploy" in said.err
    assert "pass: live" in said.err


def test_a_chapter_that_raises_is_in_the_table() -> None:
    """What went wrong is the demo's error, and where is the last line."""
    told = Chapters(quiet=True)
    with pytest.raises(RefusedError), told.telling("deploy"):
        raise RefusedError("no")
    assert told.rows[-1].verdict == "error"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """For machines only the result is printed."""
    told = Chapters(quiet=True)
    with told.telling("deploy") as chapter:
        chapter.note = "live"
    told.add("  train", "pass", 1.234, "1 subject", "look")
    assert capsys.readouterr().err == ""
    assert told.rows[1].to_dict() == {
        "name": "  train",
        "verdict": "pass",
        "note": "1 subject",
        "look": "look",
        "seconds": 1.23,
    }


def test_only_flows_count_for_the_engines() -> None:
    """Chapters that are no flow cost Prefect nothing."""
    told = Chapters(quiet=True)
    with told.telling("data", flow=False):
        pass
    assert told.flows == 0
    with told.telling("nightly"):
        pass
    assert told.flows > 0


def test_the_table_is_printed_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a chapter, with its seconds."""
    told = Chapters(quiet=True)
    told.add("nightly", "pass", 12.34, "31 stages", "")
    told.show()
    said = capsys.readouterr().out
    assert "nightly" in said
    assert "12.3" in said
