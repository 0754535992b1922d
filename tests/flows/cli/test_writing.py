"""Commands that run a flow: they pass everything on, show stages, and exit as the report says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import DigestMismatch, InputError, ReleaseRefused
from contracts.base.report import Finding, Report, conclude
from flows import summary
from flows.cli import session
from flows.judgement import GATE, Judgement
from flows.waves import Outcome
from tests.fakes import calls, world
from tests.flows.cli.conftest import Caisson, Ended

Asked = list[tuple[str, Mapping[str, Any]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return []


@pytest.fixture
def answer(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Let flows answer without running, and note what they are asked."""

    def answering(said: Any) -> None:
        def run(flow: str, **parameters: Any) -> Any:
            asked.append((flow, parameters))
            if isinstance(said, Exception):
                raise said
            return said

        monkeypatch.setattr(session, "run", run)
        monkeypatch.setattr(session, "once", run)

    return answering


def leak(stage: str = "trust") -> Finding:
    return Finding(f"{stage}.leak", "s", "delay", "high", "knows the answer", "take it out")


def flow(stage: str, *findings: Finding, **facts: Any) -> Report:
    """The report of a flow with two stages."""
    measured = {"seconds": {"trust": 1.25, "package": 0.5}, "page": "/page/report.html"}
    said = {"package": "pass", "trust": "fail" if findings else "pass"}
    return conclude(stage, "s", findings, facts={"stages": said, **facts}, measurements=measured)


def judged(*changed: Outcome) -> Judgement:
    outcomes = {stage: world.passed(stage) for stage in GATE}
    outcomes.update({item.stage: item for item in changed})
    tree = digest.of_bytes(b"tree")
    return Judgement("m", tree, calls.REF, tuple(outcomes.values()), Path("/page/report.html"))


CASES: list[tuple[list[str], str, dict[str, Any]]] = [
    (
        ["train", "m", "--feature-version", "a", "--holdout-version", "b"],
        "flows.train.train",
        {"model": "m", "feature_version": "a", "holdout_version": "b"},
    ),
    (
        ["release", "m", "--source", "x", "--target", "t", "--as-of", "2014-01-01"],
        "flows.release.release",
        {"model": "m", "source": "x", "target": "t", "as_of": "2014-01-01"},
    ),
    (
        ["nightly", "--as-of", "2014-01-01"],
        "flows.nightly.nightly",
        {"as_of": "2014-01-01", "target": None},
    ),
    (
        ["deploy", "m", "--package", "p", "--canary-share", "0.2"],
        "flows.deploy.deploy",
        {"model": "m", "target": None, "package": "p", "canary_share": 0.2},
    ),
    (
        ["contract", "publish", "c.json", "--batch", "day"],
        "flows.publish_contract.publish_contract",
        {"path": "c.json", "batch": "day"},
    ),
]
NAMES = [" ".join(arguments[:2]) for arguments, _, _ in CASES]


@pytest.mark.parametrize(("arguments", "name", "parameters"), CASES, ids=NAMES)
def test_a_command_passes_everything_on(
    caisson: Caisson,
    answer: Callable[[Any], None],
    asked: Asked,
    arguments: list[str],
    name: str,
    parameters: dict[str, Any],
) -> None:
    """The flow gets what the command line says, under its own names, and nothing else."""
    answer(flow(arguments[0]))
    assert caisson(*arguments).status == 0
    assert asked == [(name, parameters)]


@pytest.mark.parametrize(("arguments", "name", "parameters"), CASES, ids=NAMES)
def test_three_outcomes(
    caisson: Caisson,
    answer: Callable[[Any], None],
    arguments: list[str],
    name: str,
    parameters: dict[str, Any],
) -> None:
    """Passed is 0, refused 1, could not be judged 2; a report is printed whenever there is one."""
    answer(flow(arguments[0]))
    assert caisson(*arguments).status == 0
    answer(flow(arguments[0], leak()))
    refused = caisson(*arguments)
    assert refused.status == 1
    assert "knows the answer" in refused.out
    assert "take it out" in refused.out
    answer(ReleaseRefused("the gate refuses m"))
    assert caisson(*arguments).status == 1
    answer(InputError("no such model"))
    unable = caisson(*arguments, "--json")
    assert unable.status == 2
    assert unable.json["error"]["message"] == "no such model"


@pytest.mark.parametrize(("arguments", "name", "parameters"), CASES, ids=NAMES)
def test_json_is_one_report(
    caisson: Caisson,
    answer: Callable[[Any], None],
    arguments: list[str],
    name: str,
    parameters: dict[str, Any],
) -> None:
    """Machines get the whole report, with the same content that people see."""
    answer(flow(arguments[0], leak()))
    ended = caisson(*arguments, "--json")
    assert Report.from_dict(ended.json) == flow(arguments[0], leak())
    assert ended.status == 1


def test_stages_are_shown_with_their_seconds(
    caisson: Caisson, answer: Callable[[Any], None]
) -> None:
    """A line a stage in the order of the work, and where the page is on stderr."""
    answer(flow("release", leak()))
    ended = caisson("release", "m")
    lines = ended.out.splitlines()
    package = next(line for line in lines if "package" in line)
    trust = next(line for line in lines if "trust" in line and "fail" in line)
    assert lines.index(package) < lines.index(trust)
    assert "1.2" in trust or "1.3" in trust
    assert "report: /page/report.html" in ended.err


def gate(caisson: Caisson, *arguments: str) -> Ended:
    return caisson("gate", "m", *arguments)


def test_the_gate_has_three_outcomes(caisson: Caisson, answer: Callable[[Any], None]) -> None:
    """Refused by any stage is 1; a stage that could not judge is 2, or 1 if bytes were changed."""
    answer(judged())
    assert gate(caisson).status == 0
    refusing = Outcome("trust", conclude("trust", "s", [leak()]), None)
    answer(judged(refusing))
    refused = gate(caisson)
    assert refused.status == 1
    assert "knows the answer" in refused.out
    answer(judged(refusing, Outcome("verify", None, InputError("no device"))))
    unable = gate(caisson)
    assert unable.status == 2
    assert "verify could not be judged: no device" in unable.out
    answer(judged(Outcome("package", None, DigestMismatch("changed"))))
    assert gate(caisson).status == 1


def test_the_gates_json_is_a_report(caisson: Caisson, answer: Callable[[Any], None]) -> None:
    """The judgement as one report, with a verdict a stage."""
    answer(judged())
    found = Report.from_dict(gate(caisson, "--json").json)
    assert found.facts["stages"] == dict.fromkeys(GATE, "pass")


def test_a_night_shows_how_many_of_each_stage(
    caisson: Caisson, answer: Callable[[Any], None]
) -> None:
    """Many batches are one line with the worst verdict and how many had it."""
    outcomes = [
        world.passed("validate", "a"),
        world.passed("validate", "b"),
        Outcome("validate", None, InputError("not a batch"), 1.0, "c"),
        world.passed("drift"),
    ]
    answer(summary.conclude_all("nightly", "today", outcomes, {}))
    ended = caisson("nightly")
    assert ended.status == 2
    line = next(line for line in ended.out.splitlines() if "validate" in line and "2.0" in line)
    assert "error" in line
    assert "1 error, 2 pass" in line


def test_deploy_says_where_it_answers(caisson: Caisson, answer: Callable[[Any], None]) -> None:
    """The address is for people, on stderr; machines find it in the report."""
    report = conclude("deploy", "m/local", [], measurements={"url": "http://127.0.0.1:1"})
    answer(report)
    assert "answers at http://127.0.0.1:1" in caisson("deploy", "m").err
    quiet = caisson("deploy", "m", "--json")
    assert quiet.err == ""
    assert quiet.json["measurements"]["url"] == "http://127.0.0.1:1"
