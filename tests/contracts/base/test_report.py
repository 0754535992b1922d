"""Reports and findings: verdicts stay honest, and merging obeys its laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base import canonical, report
from contracts.base.errors import InputError, ReportInvalid
from contracts.base.report import SEVERITIES, Finding, Report, conclude, merge, skipped

words = st.sampled_from(["a", "b", "c"])
finding = st.builds(
    Finding,
    rule=words,
    subject=words,
    location=words,
    severity=st.sampled_from(SEVERITIES),
    message=words,
    remedy=words,
    evidence=st.dictionaries(words, st.integers(0, 2), max_size=1),
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Return reports of one stage and subject that agree on the facts they share."""
    facts = {name: len(name) for name in draw(st.sets(words))}
    measurements = dict.fromkeys(draw(st.sets(words)), 0.5)
    if draw(st.booleans()):
        reason = draw(st.sampled_from(["no device", "no licence"]))
        return Report("stage", "subject", "skip", (), facts, measurements, reason)
    found = draw(st.lists(finding, max_size=4))
    return conclude("stage", "subject", found, facts=facts, measurements=measurements)


@given(reports(), reports())
def test_merging_is_commutative(first: Report, second: Report) -> None:
    """The order of two reports does not matter."""
    assert merge(first, second) == merge(second, first)


@given(reports(), reports(), reports())
def test_merging_is_associative(first: Report, second: Report, third: Report) -> None:
    """Three reports merge to one, however they are grouped."""
    assert merge(merge(first, second), third) == merge(first, merge(second, third))


@given(reports())
def test_merging_twice_changes_nothing(one: Report) -> None:
    """A report merged with itself keeps its verdict and holds each finding once."""
    merged = merge(one, one)
    assert merge(merged, one) == merged
    assert merged.verdict == one.verdict
    assert len(merged.findings) <= len(one.findings)


@given(reports(), reports())
def test_merging_never_improves_a_verdict(first: Report, second: Report) -> None:
    """A failure stays a failure, and what was skipped is never a pass."""
    verdicts = {first.verdict, second.verdict}
    worst = next(verdict for verdict in ("fail", "skip", "pass") if verdict in verdicts)
    assert merge(first, second).verdict == worst


@given(reports())
def test_reports_read_back(one: Report) -> None:
    """Plain data carries a report there and back without loss."""
    plain = canonical.loads(canonical.dumps(one.to_dict()))
    assert Report.from_dict(plain) == one
    assert Report.from_dict(plain).digest == one.digest


@given(st.lists(finding))
def test_a_verdict_follows_from_findings(found: list[Finding]) -> None:
    """One finding of medium or worse fails a report; the worst stands first."""
    made = conclude("stage", "subject", found)
    assert (made.verdict == "fail") == any(item.blocks for item in found)
    ranks = [SEVERITIES.index(item.severity) for item in made.findings]
    assert ranks == sorted(ranks)


def test_measurements_are_no_part_of_the_digest() -> None:
    """The same result measured twice has one digest; another fact has another."""
    first = conclude("stage", "subject", [], facts={"rows": 1}, measurements={"seconds": 1.0})
    second = conclude("stage", "subject", [], facts={"rows": 1}, measurements={"seconds": 2.0})
    assert first.digest == second.digest
    assert first.digest != conclude("stage", "subject", [], facts={"rows": 2}).digest


def test_fingerprints_survive_a_rebuild() -> None:
    """Rule and location identify a finding, whatever its subject and words."""
    first = Finding("rule", "sha256:a", "column", "low", "one", "do")
    second = Finding("rule", "sha256:b", "column", "high", "two", "do")
    assert first.fingerprint == second.fingerprint
    assert Finding("rule", "s", "other", "low", "m", "r").fingerprint != first.fingerprint


def test_a_pass_with_a_blocking_finding_is_impossible() -> None:
    """Nobody can write a pass over a finding that blocks, or skip without a reason."""
    bad = Finding("rule", "subject", "place", "medium", "message", "remedy")
    with pytest.raises(ReportInvalid, match="cannot pass"):
        Report("stage", "subject", "pass", (bad,))
    with pytest.raises(ReportInvalid, match="must say why"):
        Report("stage", "subject", "skip")
    assert skipped("stage", "subject", "no GPU").reason == "no GPU"


def test_reports_of_different_things_are_not_merged() -> None:
    """Stage, subject and every shared fact must agree."""
    one = conclude("stage", "subject", [], facts={"rows": 1})
    with pytest.raises(ReportInvalid, match="different stages"):
        merge(one, conclude("other", "subject", []))
    with pytest.raises(ReportInvalid, match="fact rows has two values"):
        merge(one, conclude("stage", "subject", [], facts={"rows": 2}))


def _plain() -> dict[str, Any]:
    found = Finding("rule", "subject", "place", "low", "message", "remedy")
    return conclude("stage", "subject", [found]).to_dict()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format_version", 1),
        ("verdict", "perhaps"),
        ("findings", 5),
        ("findings", [5]),
        ("facts", [1]),
        ("stage", None),
        ("extra", 1),
    ],
    ids=["format", "verdict", "number", "item", "facts", "stage", "unknown"],
)
def test_malformed_reports_are_refused(field: str, value: Any) -> None:
    """A field of the wrong kind is a ReportInvalid, never another exception."""
    with pytest.raises(ReportInvalid):
        Report.from_dict({**_plain(), field: value})


@pytest.mark.parametrize("field", list(_plain()))
def test_every_field_must_be_there(field: str) -> None:
    """A report with a missing field is refused."""
    plain = _plain()
    del plain[field]
    with pytest.raises(ReportInvalid):
        Report.from_dict(plain)


def test_malformed_findings_are_refused() -> None:
    """A finding of unknown severity is refused, and so is one that is no object."""
    item = _plain()["findings"][0]
    with pytest.raises(ReportInvalid, match="severity"):
        Finding.from_dict({**item, "severity": "odd"})
    with pytest.raises(ReportInvalid):
        Finding.from_dict([1])  # type: ignore[arg-type] # what a file may hold
    with pytest.raises(InputError):
        Report.from_dict(None)  # type: ignore[arg-type] # what a file may hold
    assert report.VERDICTS == ("pass", "fail", "skip")
