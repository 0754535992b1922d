"""What the gate concluded, and what it says to people and callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.errors import DigestMismatch, InputError, ReleaseRefused
from contracts.base.report import Finding, Severity, conclude, skipped
from flows.judgement import GATE, Judgement
from flows.summary import exit_status
from flows.waves import Outcome
from model_packages.oci.reference import PackageRef
from tests.fakes import world

TREE = digest.of_bytes(b"tree")
REF = PackageRef("tiny", digest.of_bytes(b"package"), digest.of_bytes(b"set"))


def finding(rule: str, severity: Severity = "high") -> Finding:
    return Finding(rule, "s", "here", severity, f"{rule} was broken", "mend it")


def judged(*changed: Outcome, leave_out: tuple[str, ...] = ()) -> Judgement:
    """A gate in which everything passed but what is given."""
    by_stage = {stage: world.passed(stage) for stage in GATE}
    by_stage.update({item.stage: item for item in changed})
    kept = tuple(item for stage, item in by_stage.items() if stage not in leave_out)
    return Judgement("tiny", TREE, REF, kept, Path("/home/page/report.html"))


def failed(stage: str, *rules: str) -> Outcome:
    return Outcome(stage, conclude(stage, "s", [finding(rule) for rule in rules]), None, 0.25)


def test_a_passed_gate_gives_its_package() -> None:
    """All stages passed: the package may be released, and the whole is a pass."""
    whole = judged()
    assert whole.passed
    assert whole.require() == REF
    report = whole.to_report()
    assert report.verdict == "pass"
    assert exit_status(report) == 0
    assert report.subject == str(REF)
    assert report.facts["stages"] == dict.fromkeys(GATE, "pass")
    assert report.measurements["seconds"] == dict.fromkeys(GATE, 0.5)
    assert whole.report("trust") == world.report("trust")
    assert whole.report("deploy") is None


def test_every_refusal_is_named() -> None:
    """The message names each stage that refused with its first blocking finding and the page."""
    whole = judged(failed("trust", "trust.leak"), failed("verify", "verify.differs", "other"))
    with pytest.raises(ReleaseRefused) as caught:
        whole.require()
    said = str(caught.value)
    assert "the gate refuses tiny: " in said
    assert "trust fail (trust.leak: trust.leak was broken)" in said
    assert "verify fail (other: other was broken)" in said
    assert "Open /home/page/report.html" in said
    assert exit_status(whole.to_report()) == 1
    assert [item.stage for item in whole.blocking] == ["trust", "verify"]


def test_a_harmless_finding_is_not_the_reason() -> None:
    """Findings that do not block are never given as the cause."""
    report = conclude("trust", "s", [finding("a.info", "info"), finding("b.bad", "medium")])
    with pytest.raises(ReleaseRefused, match=r"trust fail \(b\.bad"):
        judged(Outcome("trust", report, None)).require()


def test_a_required_skip_blocks_and_says_why() -> None:
    """A stage that was not checked is no pass."""
    whole = judged(Outcome("hardware", skipped("hardware", "s", "no device"), None))
    with pytest.raises(ReleaseRefused, match=r"hardware skip \(no device\)"):
        whole.require()
    (item,) = whole.to_report().findings
    assert item.rule == "gate.required-stage-skipped"
    assert "no device" in item.message


@pytest.mark.parametrize(
    ("err", "status"),
    [(InputError("no file", remedy="make it"), 2), (DigestMismatch("changed"), 1)],
)
def test_a_stage_that_raised_is_raised(err: InputError | DigestMismatch, status: int) -> None:
    """Being unable to judge is not a refusal: the error itself decides the exit status."""
    whole = judged(Outcome("package", None, err), failed("trust", "x"))
    with pytest.raises(type(err)):
        whole.require()
    report = whole.to_report()
    assert report.facts["stages"]["package"] == "error"
    said = next(item for item in report.findings if item.rule == "package.could-not-check")
    assert said.message.startswith(f"package could not be judged: {err.message}")
    assert said.remedy
    assert exit_status(report) == status


def test_what_was_not_reached_is_no_pass() -> None:
    """Stages left out are named, and nothing is released without them."""
    whole = judged(leave_out=("compliance", "verify"))
    assert whole.missing == ("verify", "compliance")
    assert not whole.passed
    with pytest.raises(ReleaseRefused, match="verify, compliance not reached"):
        whole.require()
    report = whole.to_report()
    assert report.verdict == "fail"
    assert {item.location for item in report.findings} == {"verify", "compliance"}
    assert report.facts["not_reached"] == ["verify", "compliance"]


def test_without_a_package_there_is_nothing_to_release() -> None:
    """A gate that ended before a package was built is about its source."""
    whole = Judgement("tiny", TREE, None, (failed("package", "package.broken"),), Path("/p"))
    assert whole.to_report().subject == TREE
    assert whole.to_report().facts["package"] is None
    with pytest.raises(ReleaseRefused, match=r"package\.broken"):
        whole.require()


def test_unchanged_only_if_every_stage_is() -> None:
    """One stage that did something makes the whole changed; so does one that could not."""
    same = [
        Outcome(stage, conclude(stage, "s", [], measurements={"unchanged": True}), None)
        for stage in GATE
    ]
    assert judged(*same).to_report().measurements["unchanged"]
    assert "unchanged" not in judged(*same[1:]).to_report().measurements
    broken = Outcome("trust", None, InputError("x"))
    assert "unchanged" not in judged(*same, broken).to_report().measurements
