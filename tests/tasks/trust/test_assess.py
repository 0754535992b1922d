"""The trust stage on real packages, and what each measured fault is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import InputError
from contracts.objects import content
from model_packages.format import manifest as manifests
from tasks.demo import models
from tasks.trust.assess import assess, judge
from tasks.trust.options import TrustOptions
from tests.fakes import trained as training

pytestmark = pytest.mark.xdist_group("trained")

OPTIONS = TrustOptions(rows=400, repeats=1, bootstraps=50, splits=5, smallest_tau=0.3)
GOOD: dict[str, Any] = {
    "leakage": [{"name": "hour", "share": 0.3, "auc": 0.6, "leaked": False}],
    "importance": {"tau_median": 0.9, "tau_minimum": 0.8},
    "sensitivity": {"relative": 0.01, "slopes": {}},
    "alarms": {"false_alarms": 0, "allowed": 4, "splits": 20, "missed": []},
    "second_opinion": {"status": "asked", "agrees": True, "is_drift": False, "largest_gap": 0.0},
}


def test_good_package_passes() -> None:
    """An honest model passes; importance, leakage and alarms stand in the facts for the pages."""
    made = training.trained()
    report = assess(made.workspace, made.ref, made.versions.holdout, training.DEFINITION, OPTIONS)
    assert report.verdict == "pass"
    first = report.facts["importance"]["inputs"][0]
    assert first["low"] <= first["reliance"] <= first["high"]
    assert len(report.facts["leakage"]) == 17
    assert report.facts["second_opinion"]["status"] == "skipped"
    assert list(made.workspace.tmp.iterdir()) == []


def test_missing_environment_is_said_and_no_verdict() -> None:
    """Allowed but not installed: the report says how to install, and our detector judged alone."""
    made = training.trained()
    options = replace(OPTIONS, licence_decision="evaluation")
    report = assess(made.workspace, made.ref, made.versions.holdout, training.DEFINITION, options)
    assert report.verdict == "pass"
    assert "tasks.trust.environment" in report.facts["second_opinion"]["reason"]


def test_nothing_wrong_is_no_finding() -> None:
    """Good measurements give no finding."""
    assert judge("sha256:0", GOOD, TrustOptions()) == []


@pytest.mark.parametrize(
    ("part", "changes", "rule", "blocks"),
    [
        ("leakage", [{"name": "x", "share": 0.9, "auc": 0.99, "leaked": True}],
         "trust.label-leak", True),
        ("importance", {"tau_median": 0.2, "tau_minimum": 0.1}, "trust.importance-unstable", True),
        ("sensitivity", {"relative": 0.5, "slopes": {}}, "trust.too-sensitive", True),
        ("alarms", {"false_alarms": 9, "allowed": 4, "splits": 20, "missed": []},
         "trust.false-alarms", True),
        ("alarms", {"false_alarms": 0, "allowed": 4, "splits": 20, "missed": ["x"]},
         "trust.missed-shift", False),
        ("second_opinion", {"status": "skipped", "reason": "why"},
         "trust.second-opinion-missing", False),
        ("second_opinion", {"status": "asked", "agrees": False, "is_drift": False,
                            "largest_gap": 0.4}, "trust.second-opinion-differs", True),
        ("second_opinion", {"status": "asked", "agrees": True, "is_drift": True,
                            "largest_gap": 0.0}, "trust.second-opinion-differs", True),
    ],
)  # fmt: skip
def test_each_fault_has_its_rule(part: str, changes: Any, rule: str, *, blocks: bool) -> None:
    """What is wrong is named by one rule, with what to do about it."""
    (finding,) = judge("sha256:0", {**GOOD, part: changes}, TrustOptions())
    assert (finding.rule, finding.blocks) == (rule, blocks)
    assert finding.remedy


@pytest.mark.parametrize("wrong", [{"rows": 5}, {"repeats": 0}, {"bootstraps": 1}, {"splits": 0}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    """Counts that say nothing are refused by name."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        replace(OPTIONS, **wrong)


@pytest.mark.slow
def test_leaked_label_is_refused(tmp_path: Path) -> None:
    """A model that was shown its own answer is refused, and the input is named."""
    made = training.trained()
    tree, _ = models.leaked_label(made.workspace, made.tree)
    folder = content.checkout_tree(made.workspace.objects, tree, tmp_path / "tree")
    found = manifests.load(folder / "manifest.json").training
    assert found is not None
    ref = training.build(made.workspace, tree)
    report = assess(
        made.workspace, ref, found.holdout_version, found.definition, replace(OPTIONS, rows=2000)
    )
    assert report.verdict == "fail"
    assert [item.location for item in report.findings if item.blocks] == [f"input {models.LEAK}"]
