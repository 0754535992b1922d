"""A benchmark never says that a limit was kept which nobody measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import demo
from tests.bench.rows import Limit, judge, markdown, status
from tests.docs import documents

TIME = Limit("time", "s", 2.0)


@pytest.mark.parametrize(("value", "kept"), [(1.0, True), (2.0, True), (2.001, False)])
def test_a_limit_is_kept_up_to_its_value(value: float, kept: bool) -> None:
    """A value at the limit keeps it, one above does not and says so."""
    row = judge(TIME, value)
    assert row.ok is kept
    assert bool(row.reason) is not kept


def test_what_was_not_run_is_neither_kept_nor_passed() -> None:
    """Without a value there is a reason and no verdict, and the whole could not be judged."""
    row = judge(TIME, None, "no server")
    assert row.ok is None
    assert row.reason == "not run: no server"
    assert status([judge(TIME, 1.0), row]) == 2


def test_a_value_without_limit_is_only_reported() -> None:
    """Seconds of a stage have no limit, so nothing is claimed about them."""
    assert judge(Limit("stage x", "s", None), 1.23456).ok is None
    assert status([judge(Limit("stage x", "s", None), 9e9)]) == 0


def test_one_limit_passed_makes_the_whole_fail() -> None:
    """The exit status tells a pipeline that a limit was passed."""
    assert status([judge(TIME, 1.0), judge(TIME, 3.0)]) == 1


def test_a_limit_that_was_not_measured_is_not_shown_as_kept() -> None:
    """In the document too: what was not run has its reason and no yes."""
    where = {"processor": "p", "cores": 2, "memory_gib": 1.0, "system": "s", "python": "3"}
    text = markdown({**where, "load": [0.1, 0.2, 0.3]}, [judge(TIME, None, "no server")])
    assert "| time | not run: no server | 2 s |  |" in text


def test_benchmarks_document_has_the_limits_of_the_code(root: Path) -> None:
    """The table that people read names what is measured, in order, with the same limits."""
    found = documents.tables(root / "infra/BENCHMARKS.md", "## Limits")
    known = [[limit.name, f"{limit.most:g} {limit.unit}"] for limit in demo.LIMITS]
    assert [row[:2] for row in found] == known


@pytest.mark.slow
def test_quick_bench_measures_the_commands_and_says_what_it_left_out(root: Path) -> None:
    """``--quick`` gives values for the two commands, and no verdict on the demo."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.demo", "--quick", "--json"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["caisson --help"]["value"] > 0
    assert rows["caisson status"]["value"] > 0
    assert rows["first demo"]["ok"] is None
    assert rows["first demo"]["reason"] == "not run: left out by --quick"
