"""Many stages as one report."""

from __future__ import annotations

from contracts.base.errors import CaissonError, DigestMismatch, InputError
from contracts.base.report import Report, conclude, skipped
from flows import summary
from flows.waves import Outcome
from tests.fakes import world


def told(*outcomes: Outcome) -> Report:
    return summary.conclude_all("nightly", "today", outcomes, {"more": 1})


def test_stages_are_listed_in_a_fixed_order() -> None:
    """The same stages make the same facts, whichever ended first."""
    first, second = world.passed("validate", "a"), world.passed("validate", "b")
    assert told(first, second).digest == told(second, first).digest
    assert told(second, first).facts == {
        "more": 1,
        "stages": [
            {"stage": "validate", "subject": "a", "verdict": "pass"},
            {"stage": "validate", "subject": "b", "verdict": "pass"},
        ],
    }


def test_seconds_are_added_up_by_stage() -> None:
    """Subjects of one stage share a figure."""
    found = told(world.passed("validate", "a"), world.passed("validate", "b"))
    assert found.measurements["seconds"] == {"validate": 1.0}


def test_an_error_names_its_subject_and_remedy() -> None:
    """What could not be judged is a finding about its subject; without a remedy there is one."""
    err = InputError("not a batch", location="/d/batch.json")
    found = told(Outcome("validate", None, err, 0.0, "shop/orders"), world.passed("drift"))
    (item,) = found.findings
    assert (found.verdict, summary.exit_status(found)) == ("fail", 2)
    assert (item.rule, item.subject) == ("validate.could-not-check", "shop/orders")
    assert item.location == "/d/batch.json"
    assert "not a batch" in item.message
    assert item.remedy == "Remove the cause and run it again."
    assert found.facts["stages"][1]["verdict"] == "error"


def test_exit_status_prefers_could_not_judge() -> None:
    """Refused is 1, could not be judged 2, and 2 wins."""
    refused = Outcome("trust", None, DigestMismatch("changed"))
    unable = Outcome("verify", None, CaissonError("gone"))
    assert summary.exit_status(told(world.passed("trust"))) == 0
    assert summary.exit_status(told(refused)) == 1
    assert summary.exit_status(told(refused, unable)) == 2
    assert summary.exit_status(skipped("trust", "s", "why")) == 1


def test_unchanged_needs_every_stage() -> None:
    """Nothing at all is not unchanged."""
    same = Outcome("trust", conclude("trust", "s", [], measurements={"unchanged": True}), None)
    assert told(same).measurements["unchanged"]
    assert "unchanged" not in told(same, world.passed("drift")).measurements
    assert "unchanged" not in told().measurements
