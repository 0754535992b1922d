"""The audit: claimed against achieved, what is lacking, and documents that prove it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import InputError
from contracts.base.report import Finding, Report, conclude, skipped
from contracts.objects import content
from model_packages.format import layout as layouts
from model_packages.oci import build as building
from model_packages.oci import carried
from model_packages.oci.store import LayoutStore
from tasks import policy as policies
from tasks.compliance import requirements, rules, steps
from tasks.compliance.audit import Audit, audit
from tasks.compliance.requirements import Outcome, Requirement
from tasks.compliance.rule import Rule, Subject
from tasks.demo import compliance as plants
from tasks.workspace import Workspace
from tests.fakes import packages
from tests.tasks.compliance import cases

STAGES = ("validate", "package", "hardware", "verify", "trust")
TABLE = requirements.load()


def passed(stage: str) -> Report:
    return Report(stage, "tiny", "pass")


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    reports = {stage: passed(stage) for stage in STAGES}
    return dataclasses.replace(cases.subject(tmp_path / "tiny"), reports=reports)


def run(subject: Subject) -> Audit:
    return audit(subject, rules.rules(), TABLE)


def blocking(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.blocks]


def test_a_sound_package_achieves_l1_and_hears_what_l2_lacks(subject: Subject) -> None:
    """L1 is achieved; the next level's open requirements are listed with their reasons."""
    report = run(subject).report
    assert report.verdict == "pass"
    assert report.findings == ()
    assert (report.facts["claimed_level"], report.facts["achieved_level"]) == ("L1", "L1")
    assert report.facts["next_level"] == "L2"
    lacking = {item["id"]: item for item in report.facts["lacking"]}
    assert {"COV-1", "SEC-6", "FUZ-1"} <= set(lacking)
    assert all(item["status"] == "not-evaluated" for item in lacking.values())
    assert "XAI-1" not in lacking


def test_a_claim_above_what_is_achieved_blocks(subject: Subject) -> None:
    """Claiming L2 fails on every requirement that nobody evaluated, by name."""
    packages.edit_json(subject.folder / "manifest.json", compliance_level="L2")
    report = run(cases.again(subject)).report
    assert blocking(report) == ["compliance.level-claim"]
    (finding,) = report.findings
    assert "claims L2 (production ready), L1 is achieved" in finding.message
    assert "COV-1" in finding.evidence["missing"]


def test_a_target_that_demands_more_blocks(subject: Subject) -> None:
    """A package may claim little; the target still gets what it demands or nothing."""
    stricter = dataclasses.replace(subject.policy, level="L3")
    report = run(dataclasses.replace(subject, policy=stricter)).report
    assert blocking(report) == ["compliance.level-demand"]


def test_a_missing_licence_blocks_and_says_what_to_write(subject: Subject) -> None:
    """The planted package fails on its licence, and on the level it therefore misses."""
    plants.unlicensed(subject.folder)
    report = run(cases.again(subject)).report
    assert "compliance.model-licence" in blocking(report)
    assert report.facts["achieved_level"] is None
    finding = next(item for item in report.findings if item.rule == "compliance.model-licence")
    assert "expected an SPDX expression, got nothing" in finding.message
    assert "Apache-2.0" in finding.remedy
    assert "LIC-1" in next(f for f in report.findings if f.location == "L1").evidence["missing"]


def test_rules_above_the_claimed_level_inform_only(subject: Subject) -> None:
    """An undecided library does not block L1, and is told all the same."""
    library = dataclasses.replace(cases.SOUND, license=cases.BUSINESS)
    report = run(dataclasses.replace(subject, libraries=(library,))).report
    assert report.verdict == "pass"
    assert [(item.rule, item.severity) for item in report.findings] == [
        ("compliance.dependency-licences", "low")
    ]


def test_other_stages_count(subject: Subject) -> None:
    """A failed stage costs the level; a skipped one is not evaluated, which L1 bears."""
    bad = Finding("verify.x", "tiny", "here", "high", "m", "r")
    failed = {**subject.reports, "verify": conclude("verify", "tiny", [bad])}
    report = run(dataclasses.replace(subject, reports=failed)).report
    assert blocking(report) == ["compliance.level-claim"]
    skip = {**subject.reports, "verify": skipped("verify", "tiny", "no reference")}
    report = run(dataclasses.replace(subject, reports=skip)).report
    standing = {item["id"]: item for item in report.facts["requirements"]}["FUN-1"]
    assert (standing["status"], standing["reason"]) == ("not-evaluated", "no reference")
    assert report.verdict == "pass"


def test_documents_are_deterministic_and_named_by_digest(subject: Subject) -> None:
    """Two audits give equal bytes, and the report names each document by its digest."""
    first, second = run(subject), run(subject)
    assert first == second
    assert set(first.documents) == {"audit.json", "audit.sarif", "bom.cdx.json"}
    for name, data in first.documents.items():
        assert first.report.facts["documents"][name] == digest.of_bytes(data)
    plain = json.loads(first.documents["audit.json"])
    assert plain["evidence"]["verify"] == subject.reports["verify"].digest
    assert plain["achieved_level"] == "L1"


def test_findings_reach_sarif_with_stable_fingerprints(subject: Subject) -> None:
    """A finding's fingerprint in SARIF is that of the finding."""
    plants.unlicensed(subject.folder)
    result = run(cases.again(subject))
    results = json.loads(result.documents["audit.sarif"])["runs"][0]["results"]
    expected = {finding.fingerprint for finding in result.report.findings}
    assert {item["partialFingerprints"]["caisson/v0"] for item in results} == expected


def test_a_rule_that_cannot_read_its_input_fails(subject: Subject) -> None:
    """Input a rule cannot read breaks the rule; it is never passed over."""

    def check(subject: Subject) -> Outcome:
        raise InputError("unreadable", location="somewhere")

    rule = Rule("odd", "L1", "Odd", "high", "Mend it.", check)
    table = (Requirement("ODD-1", "L1", "Odd", "rule:odd", "Mend it."),)
    result = audit(subject, [rule], table)
    assert result.report.facts["requirements"][0]["status"] == "fail"
    assert {finding.rule for finding in result.report.findings} >= {"compliance.odd"}
    assert any("somewhere: unreadable" in item.message for item in result.report.findings)


def test_without_a_valid_bill_there_is_no_bill(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bill that is not strictly valid is refused and not stored."""
    monkeypatch.setattr("tasks.compliance.bom.validate", lambda document: "wrong")
    result = run(subject)
    assert "compliance.bill-of-materials" in blocking(result.report)
    assert "bom.cdx.json" not in result.documents


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"requirements": [{"id": "A"}]}',
        '{"requirements": [{"id":"A","level":"L9","title":"t","evidence":"none:x","remedy":"r"}]}',
        '{"requirements": [{"id":"A","level":"L1","title":"t","evidence":"hope:x","remedy":"r"}]}',
    ],
)
def test_a_malformed_level_table_is_refused(tmp_path: Path, text: str) -> None:
    """Levels are data, and data is checked."""
    path = tmp_path / "table.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="level table"):
        requirements.load(path)


def test_levels_are_cumulative() -> None:
    """A package that meets L2 but not L1 has achieved nothing."""
    table = [
        Requirement("A", "L1", "a", "rule:a", "r"),
        Requirement("B", "L2", "b", "rule:b", "r"),
        Requirement("C", "L2", "c", "none:later", "r"),
    ]
    good, bad = Outcome("pass"), Outcome("fail", "why")

    def level(a: Outcome, b: Outcome, rows: list[Requirement]) -> Any:
        return requirements.achieved(requirements.stand(rows, {"a": a, "b": b}, {}))

    assert level(bad, good, table[:2]) is None
    assert level(good, bad, table[:2]) == "L1"
    assert level(good, good, table) == "L1"
    assert level(good, good, table[:2]) == "L2"


def test_the_stage_stores_what_it_names_and_runs_once(root: Path, tmp_path: Path) -> None:
    """The documents lie in the object store; a second run is a reuse, until one is lost."""
    workspace = Workspace(home=tmp_path / "home", root=root).prepare()
    subject = cases.subject(tmp_path / "source")
    code = packages.write_runtime(tmp_path / "code")
    package = building.build(
        layouts.read_source(subject.folder),
        carried.read_code(code),
        LayoutStore(workspace.packages("tiny")),
        "tiny",
    )
    policy = policies.load(root / "infra/policies", "local")
    reports = [passed(stage) for stage in STAGES]

    def stage() -> Report:
        return steps.audit.function(workspace, package, reports, policy)

    first = stage()
    assert first.findings == ()
    assert first.facts["achieved_level"] == "L1"
    for name in first.facts["documents"].values():
        assert content.has(workspace.objects, name)
    assert stage().measurements["unchanged"] is True
    workspace.objects.delete(content.key_of(first.facts["documents"]["audit.json"]))
    assert "unchanged" not in stage().measurements
    assert content.has(workspace.objects, first.facts["documents"]["audit.json"])


def test_importing_the_area_is_cheap(root: Path) -> None:
    """Without its steps the area loads nothing heavy."""
    code = (
        "import sys, tasks.compliance.audit, tasks.compliance.collect, tasks.compliance.rules as r;"
        "r.rules();"
        "heavy = {'torch','onnx','cyclonedx','license_expression','prefect','numpy','jinja2'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
