"""What commands show to people: tables, and progress on a terminal only."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from contracts.base.progress import STAGE, Progress, silent
from contracts.base.report import Report, conclude, skipped
from flows.cli import console

DIGEST = f"sha256:{'ab' * 32}"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_digests_are_cut_for_people() -> None:
    """Every digest in a text keeps twelve digits; other text stays."""
    assert console.shorten(f"a@{DIGEST} and {DIGEST}.") == (
        "a@sha256:abababababab and sha256:abababababab."
    )
    assert console.shorten("plain") == "plain"


def test_nothing_is_coloured_when_not_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Output that is piped holds no escape codes, and words in brackets are no markup."""
    console.table("t", ["stage", "verdict"], [["[bold]a[/bold]", "pass"], ["b", "fail"]])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[bold]a[/bold]" in said


def test_findings_come_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A skip shows its reason, a repetition that nothing was done."""
    same = conclude("package", "s", [], measurements={"unchanged": True})
    console.reports("", [same, skipped("hardware", "s", "no device")], as_json=False)
    said = capsys.readouterr().out
    assert "unchanged" in said
    assert "no device" in said


def test_several_reports_are_a_list_and_one_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """What a command prints for machines has one shape."""
    console.reports("", [conclude("a", "s", [])], as_json=True)
    assert capsys.readouterr().out.startswith("{")
    console.reports("", [conclude("a", "s", []), conclude("b", "s", [])], as_json=True)
    assert capsys.readouterr().out.startswith("[")


def test_no_rows_are_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table is no table."""
    console.records("fuses", [], as_json=False)
    assert capsys.readouterr().out == "fuses: none\n"
    console.records("fuses", [{"contract": "x", "state": 1}], as_json=False)
    assert "contract" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("facts", "measured", "rows"),
    [
        ({}, {}, [("train", "pass", "", "")]),
        ({}, {"seconds": {"train": 2.04, "odd": 1.0}}, [
            ("train", "pass", "2.0", ""),
            ("odd", "pass", "1.0", ""),
        ]),
        ({"stages": {"verify": "error", "package": "pass"}}, {"seconds": {"verify": 1.0}}, [
            ("package", "pass", "", ""),
            ("verify", "error", "1.0", ""),
        ]),
        ({"stages": [
            {"stage": "validate", "subject": "a", "verdict": "pass"},
            {"stage": "validate", "subject": "b", "verdict": "skip"},
            {"stage": "validate", "subject": "c", "verdict": "pass"},
        ]}, {}, [("validate", "skip", "", "1 skip, 2 pass")]),
    ],
)  # fmt: skip
def test_stages_have_a_row_each(
    facts: dict[str, Any], measured: dict[str, Any], rows: list[tuple[str, ...]]
) -> None:
    """In the order of the work, with the worst verdict, whatever shape the facts have."""
    report = Report("train", "s", "pass", facts=facts, measurements=measured)
    assert console.stages(report) == rows


def test_progress_in_a_log_is_a_line_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    """Not on a terminal, a stage that begins writes one line, and its steps none."""
    with console.progress() as reporter:
        reporter(Progress("train", 0, 1, STAGE))
        reporter(Progress("train", 3, 10, "epochs"))
        reporter(Progress("train", 1, 1, STAGE))
    assert capsys.readouterr().err == "· train\n"


def test_progress_is_silent_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to be quiet, nothing is written."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with console.progress(quiet=True) as reporter:
        assert reporter is silent


def test_progress_shows_a_line_a_stage_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages appear when they begin, with their own units once they count, and end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with console.progress() as reporter:
        reporter(Progress("train", 0, 1, STAGE))
        reporter(Progress("train", 1, 4, "epochs"))
        reporter(Progress("trust", 0, 1, STAGE))
        reporter(Progress("train", 1, 1, STAGE))
    said = terminal.getvalue()
    assert "train" in said
    assert "trust" in said
