"""The page: whole, offline, safe, deterministic, and readable with any part missing."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.pages.document import Link, MatrixCell, ReportDocument
from tasks.pages.render import render
from tests.tasks.pages import samples

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Checker(HTMLParser):
    """Follows tags, collects ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [str(found["id"])] if "id" in found else []
        if tag == "a":
            self.links.append(str(found.get("href")))
        self.sources += [str(found[name]) for name in ("src", "srcset", "data") if name in found]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(page: bytes) -> Checker:
    checker = Checker()
    checker.feed(page.decode("utf-8"))
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def page() -> bytes:
    return render(samples.document())


def test_every_part_is_on_the_page(page: bytes) -> None:
    """Verdict, levels, stages, findings, plots, matrix, lineage and links are shown."""
    text_of_page = page.decode()
    for text in (
        "flight-delay 1.0.0", "Stages", "Findings", "Lower it.", "Feature importance",
        "Numerical error by output", "Latency percentiles", "Calibration on the hold-out",
        "Slices of the hold-out", "Hardware matrix", "predicted: fails", "Lineage",
        "Where to look further", "an earlier stage blocks", "unchanged", samples.DIGEST,
    ):  # fmt: skip
        assert text in text_of_page, text
    assert page.count(b"<svg") == 4


def test_the_page_is_well_formed_and_needs_nothing_else(page: bytes) -> None:
    """Tags close, ids are unique, and nothing is loaded from anywhere."""
    found = check(page)
    assert len(found.ids) == len(set(found.ids))
    assert found.sources == []
    assert not found.tags & {"script", "link", "iframe", "object", "img"}
    assert {link for link in found.links if link.startswith("#")} <= {f"#{i}" for i in found.ids}
    assert re.findall(rb"url\((?!#)|@import|<script", page) == []
    assert b"default-src 'none'" in page


def test_equal_documents_give_equal_bytes(page: bytes) -> None:
    """No time, random id or order of memory reaches the page."""
    assert render(samples.document()) == page
    assert b"DejaVu" not in page


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(ReportDocument)][1:])
def test_any_part_may_be_missing(name: str) -> None:
    """Without any single part the rest still renders."""
    empty = "" if isinstance(getattr(samples.document(), name), str) else ()
    plots = {} if name in samples.NO_PLOTS else samples.NO_PLOTS
    check(render(samples.document(**{**plots, name: empty})))


def test_a_gate_that_never_ran_renders() -> None:
    """A document with a title and nothing else is a page."""
    document = ReportDocument("nothing", ())
    assert document.verdict == "incomplete"
    assert b"None." in render(document)


def test_the_verdict_is_that_of_the_stages() -> None:
    """One failed stage fails the page; skips alone are incomplete."""
    every = samples.reports()
    assert samples.document().verdict == "fail"
    assert samples.document(reports=every[:2]).verdict == "pass"
    assert samples.document(reports=every[3:]).verdict == "incomplete"


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=60) | st.just(samples.EVIL))
def test_text_stays_text(text: str) -> None:
    """Whatever a finding, name or reason says, it does not become markup."""
    found = samples.finding(text=text)
    report = dataclasses.replace(samples.reports()[2], findings=(found,), subject=text)
    links = (Link(text, text, text),)
    document = samples.document(
        title=text, subject=text, reports=(report,), identities=((text, text),), links=links,
        **samples.NO_PLOTS,
    )  # fmt: skip
    checker = check(render(document))
    assert "script" not in checker.tags


def test_text_in_a_plot_stays_text() -> None:
    """A feature named like markup is drawn as text."""
    row = dataclasses.replace(samples.document().importance[0], name=samples.EVIL[:24])
    page = render(samples.document(importance=(row,)))
    assert "script" not in check(page).tags


@pytest.mark.parametrize(
    ("target", "linked"),
    [
        ("audit.json", True),
        ("#stages", True),
        ("http://127.0.0.1:5000", True),
        ("file:///tmp/runbook.md", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//example.org", False),
        ("http://[broken", False),
        ("", False),
    ],
)
def test_only_safe_targets_are_linked(target: str, linked: bool) -> None:
    """Relative, http, file and fragment targets are links; all others are shown as text."""
    page = check(render(samples.document(links=(Link("there", target),), **samples.NO_PLOTS)))
    assert (target in page.links) is linked


def test_a_device_nobody_asked_for_takes_one_cell() -> None:
    """Where nothing was run for one reason, the reason is said once."""
    cells = [
        MatrixCell("a100", check, "not-run", None, "nobody asks") for check in ("memory", "latency")
    ]
    cells.append(MatrixCell("cpu", "memory", "measured", True, "3 MB"))
    page = render(samples.document(matrix=tuple(cells), **samples.NO_PLOTS)).decode()
    assert page.count("nobody asks") == 1
    assert 'colspan="2"' in page
