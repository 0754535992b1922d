"""The gate's page and its siblings for machines."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from contracts.base.errors import InputError
from contracts.base.report import Finding, conclude
from flows import pages, sources
from flows.context import Context
from flows.sources import Source
from flows.waves import Outcome
from tests.fakes import calls, packages, world
from tests.flows.test_sources import trained

NAMES = {"report.html", "junit.xml", "findings.sarif", "summary.md", "reports.json"}


@pytest.fixture
def source(here: Context, tmp_path: Path) -> Source:
    return sources.resolve(here, "tiny", str(packages.write_source(tmp_path / "source")))


@pytest.fixture
def outcomes() -> list[Outcome]:
    leak = Finding("trust.leak", "s", "column <b>", "high", "knows the answer", "take it out")
    return [
        world.passed("validate"),
        Outcome("trust", conclude("trust", "s", [leak]), None, 1.5),
        Outcome("verify", None, InputError("no such device"), 0.5),
    ]


def test_everything_is_written_beside_the_page(
    here: Context, source: Source, outcomes: list[Outcome]
) -> None:
    """A page for people and four files for machines, under the digest of what was judged."""
    page = asyncio.run(pages.publish_page(here, source, calls.REF, outcomes))
    assert page.parent == pages.folder_of(here, source)
    assert {path.name for path in page.parent.iterdir()} == NAMES
    text = page.read_text(encoding="utf-8")
    assert calls.REF.digest in text
    assert "column &lt;b&gt;" in text
    assert not re.search(r'(src|href)="https?://', text)
    assert "knows the answer" in (page.parent / "summary.md").read_text(encoding="utf-8")


def test_machines_see_that_a_stage_could_not_judge(
    here: Context, source: Source, outcomes: list[Outcome]
) -> None:
    """A stage that raised is a failure with its error in JUnit and SARIF, never a skip."""
    page = asyncio.run(pages.publish_page(here, source, None, outcomes))
    junit = ElementTree.parse(page.with_name("junit.xml")).getroot()
    assert len(junit.findall(".//failure")) == 2
    assert junit.findall(".//skipped") == []
    found = json.loads(page.with_name("findings.sarif").read_text())["runs"][0]["results"]
    assert {item["ruleId"] for item in found} == {"trust.leak", "verify.could-not-check"}


def test_what_was_written_can_be_read_back(
    here: Context, source: Source, outcomes: list[Outcome]
) -> None:
    """The last gate's reports come back with their seconds; a source never judged says so."""
    with pytest.raises(InputError, match="missing"):
        pages.recorded(here, source)
    asyncio.run(pages.publish_page(here, source, calls.REF, outcomes))
    found = pages.recorded(here, source)
    assert [item.stage for item in found] == ["validate", "trust", "verify"]
    assert found[1].measurements["seconds"] == 1.5
    assert found[1].digest == outcomes[1].require().digest


def test_training_is_on_the_page(here: Context, source: Source) -> None:
    """What training measured on these versions is shown with what the gate says."""
    assert pages.document_of(here, source, calls.REF, []).reports == ()
    sources.remember(here, trained(source.tree))
    document = pages.document_of(here, source, None, [world.report("trust")])
    assert [report.stage for report in document.reports] == ["train", "trust"]
    assert ("package source", source.tree) in document.identities
    assert not any(name == "package" for name, _ in document.identities)
