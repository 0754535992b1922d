"""Stages: plain functions outside a flow, Prefect tasks inside, whose states say what was found."""

from __future__ import annotations

import pytest

from contracts.base.errors import InputError
from contracts.base.report import Finding, Report, conclude, skipped
from tasks import engine
from tasks.engine import stage


@stage("weigh")
def weigh(load: int, *, limit: int = 10) -> Report:
    """Weigh a load."""
    if load < 0:
        raise InputError("less than nothing", location=str(load))
    found = Finding("weigh.heavy", "load", "", "high", f"{load} is too heavy", "take some off")
    return conclude("weigh", "load", [found] if load > limit else [])


def test_outside_a_flow_the_plain_function_runs() -> None:
    """No server is needed, a refusal is returned, and an error is raised as it is."""
    assert weigh(1).verdict == "pass"
    assert weigh(20).verdict == "fail"
    assert weigh(20, limit=30).verdict == "pass"
    with pytest.raises(InputError, match="less than nothing"):
        weigh(-1)


def test_a_stage_keeps_what_its_function_says_of_itself() -> None:
    """Name, text and function can be read, for help and for tests."""
    assert (weigh.name, weigh.__doc__) == ("weigh", "Weigh a load.")
    assert weigh.function(1) == weigh(1)
    assert weigh.__wrapped__ is weigh.function  # type: ignore[attr-defined] # set by functools


def run(*arguments: int) -> tuple[list[Report], tuple[str, str]]:
    """Run a stage as its Prefect task does; return the report and the state's name and text."""
    box: list[Report] = []
    state = weigh._run(engine._Call(weigh.function, arguments, {}, box))
    return box, (state.name, state.message)


def test_a_task_hands_its_report_back_and_shows_what_it_says() -> None:
    """The report goes round Prefect, which sees the verdict as a state."""
    box, state = run(1)
    assert (box, state) == ([weigh(1)], ("Passed", "load"))
    box, state = run(20)
    assert (box, state) == ([weigh(20)], ("Refused", "20 is too heavy"))


def test_skips_and_repetitions_have_states_of_their_own() -> None:
    """A page of states tells work that was done from work that was not."""
    same = conclude("weigh", "load", [], measurements={"unchanged": True})
    assert engine._state(same).name == "Unchanged"
    skip = engine._state(skipped("weigh", "load", "no scales"))
    assert (skip.name, skip.message) == ("Skipped", "no scales")
    assert engine._state(Report("weigh", "load", "fail", reason="why")).message == "why"


def test_the_time_at_work_is_noted_also_for_what_fails() -> None:
    """What is not covered by these intervals is the engine's own share."""
    engine.worked.clear()
    run(1)
    with pytest.raises(InputError):
        run(-1)
    assert [name for name, _, _ in engine.worked] == ["weigh", "weigh"]
    assert all(start <= end for _, start, end in engine.worked)
    engine.worked.clear()
