"""Every rule has an id, a level, a remedy, and packages that keep and break it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_packages.format.levels import LEVELS
from tasks.compliance import bom, requirements, rules
from tests.tasks.compliance import cases

RULES = {rule.id: rule for rule in rules.rules()}


def _all(table: dict[str, dict[str, cases.Case]]) -> list[object]:
    return [
        pytest.param(rule, case, id=f"{rule}-{name}")
        for rule, named in table.items()
        for name, case in named.items()
    ]


def test_every_rule_is_complete() -> None:
    """A rule without both cases, an id like its file, a level and a remedy is refused."""
    assert [name.replace("_", "-") for name in rules.TABLE] == sorted(RULES)
    assert set(cases.PASS) == set(cases.FAIL) == set(RULES)
    for rule in RULES.values():
        assert rule.level in LEVELS
        assert rule.remedy.endswith(".")
        assert cases.PASS[rule.id]
        assert cases.FAIL[rule.id]


def test_every_rule_stands_for_a_requirement() -> None:
    """The level table and the rule table name each other, with the same level and title."""
    named = {
        item.evidence.partition(":")[2]: item
        for item in requirements.load()
        if item.evidence.startswith("rule:")
    }
    assert set(named) == set(RULES)
    for rule in RULES.values():
        assert (named[rule.id].level, named[rule.id].title) == (rule.level, rule.title)


@pytest.mark.parametrize(("rule", "case"), _all(cases.PASS))
def test_a_rule_is_kept(rule: str, case: cases.Case, tmp_path: Path) -> None:
    """A sound package keeps the rule."""
    outcome = RULES[rule].check(case(cases.subject(tmp_path / "tiny")))
    assert outcome.status == "pass", outcome
    assert outcome.problems == ()


@pytest.mark.parametrize(("rule", "case"), _all(cases.FAIL))
def test_a_rule_is_broken(rule: str, case: cases.Case, tmp_path: Path) -> None:
    """A spoiled package breaks the rule, and the rule says where."""
    outcome = RULES[rule].check(case(cases.subject(tmp_path / "tiny")))
    assert outcome.status == "fail", outcome
    assert outcome.problems
    assert all(place and message for place, message in outcome.problems)


def test_a_secret_is_found_but_not_repeated(tmp_path: Path) -> None:
    """The finding names file and line, never the secret."""
    case = cases.FAIL["no-secrets"]["password"]
    outcome = RULES["no-secrets"].check(case(cases.subject(tmp_path / "tiny")))
    assert outcome.problems == (("docs/a.json:1", "holds a password"),)


def test_a_bill_is_deterministic_and_strictly_valid(tmp_path: Path) -> None:
    """Two bills of one package are equal, valid at 1.6 and 1.7, and carry a model card."""
    subject = cases.subject(tmp_path / "tiny")
    document = bom.build(subject)
    assert document == bom.build(cases.subject(tmp_path / "again"))
    content = json.loads(document)
    component = content["metadata"]["component"]
    assert component["type"] == "machine-learning-model"
    assert component["modelCard"]["considerations"]["useCases"] == ["Tests."]
    assert "timestamp" not in content["metadata"]
    newer = {**content, "specVersion": "1.7", "$schema": content["$schema"].replace("1.6", "1.7")}
    assert bom.validate(json.dumps(newer).encode(), "1.7") == ""
    broken = {**content, "surprise": 1}
    assert bom.validate(json.dumps(broken).encode()) != ""


def test_hostile_text_stays_text_in_a_bill(tmp_path: Path) -> None:
    """Markup and control characters in a manifest do not make the bill invalid."""
    subject = cases.subject(tmp_path / "tiny", manifest={"description": "<script>\u202e\u0007"})
    assert json.loads(bom.build(subject))["metadata"]["component"]["description"]
