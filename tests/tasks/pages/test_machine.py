"""What machines read: JUnit, SARIF and Markdown say what the reports say."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.report import SEVERITIES, Report, skipped
from tasks.pages.junit import junit
from tasks.pages.sarif import sarif
from tasks.pages.summary import summary_markdown
from tests.tasks.pages import samples


def test_junit_counts_what_ran() -> None:
    """One case a stage; failures and skips carry their reasons."""
    suite = ElementTree.fromstring(junit(samples.reports()))[0]
    assert suite.attrib["tests"] == "4"
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    assert suite.attrib["time"] == "5.750"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "8,192" in failure.attrib["message"]
    assert "Lower it." in str(failure.text)
    skip = suite.find("testcase/skipped")
    assert skip is not None
    assert skip.attrib["message"] == "an earlier stage blocks"


@given(st.text())
def test_junit_is_xml_whatever_is_said(text: str) -> None:
    """Control characters, quotes and markup do not break the file."""
    report = dataclasses.replace(
        samples.reports()[2], subject=text, findings=(samples.finding(text=text),)
    )
    assert ElementTree.fromstring(junit([report, skipped("a", text, text or "x")])) is not None


def test_sarif_has_what_code_hosts_need() -> None:
    """Rules, levels, locations and fingerprints are there for every severity."""
    findings = [samples.finding(severity) for severity in SEVERITIES]
    run = json.loads(sarif(findings))["runs"][0]
    assert [item["level"] for item in run["results"]] == ["error"] * 3 + ["warning", "note"]
    assert run["tool"]["driver"]["rules"] == [{"id": "hardware.memory", "name": "HardwareMemory"}]
    assert all(item["partialFingerprints"] for item in run["results"])
    assert sarif(findings) == sarif(list(findings))
    assert json.loads(sarif([]))["runs"][0]["results"] == []


def test_a_summary_lists_stages_and_blockers() -> None:
    """The table has a row a stage, and every blocking finding with its remedy."""
    text = summary_markdown(samples.reports(), title="Gate")
    assert text.startswith("## Gate\n")
    assert "| validate | pass | 1.2 |" in text
    assert "pass (unchanged)" in text
    assert "| compliance | skip |  | an earlier stage blocks |" in text
    assert "**hardware** `hardware.memory`" in text
    assert "What blocks" not in summary_markdown(samples.reports()[:2])


@pytest.mark.parametrize("text", ["a | b\nc", "<b>x</b>", "[x](javascript:y)"])
def test_a_summary_stays_a_table(text: str) -> None:
    """Bars, line breaks, markup and links in a message are escaped."""
    row = summary_markdown([Report("s", "x", "skip", reason=text)]).splitlines()[2]
    cells = row.replace("\\|", "").strip("|").split("|")
    assert len(cells) == 4
    assert "<b>" not in row
    assert "[x](" not in row
