"""Reports as JUnit XML, the format every CI system shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from contracts.base.report import Report

# Characters XML 1.0 cannot carry, even escaped.
_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(reports: Sequence[Report], *, name: str = "caisson gate") -> bytes:
    """Return one test suite with one case a stage.

    Args:
        reports: The stages in the order they ran.
        name: Name of the suite.
    """
    failed = sum(report.verdict == "fail" for report in reports)
    skipped = sum(report.verdict == "skip" for report in reports)
    seconds = sum(_seconds(report) for report in reports)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites><testsuite name={_attribute(name)} "
        f'tests="{len(reports)}" failures="{failed}" skipped="{skipped}" errors="0" '
        f'time="{seconds:.3f}">',
        *(_case(report) for report in reports),
        "</testsuite></testsuites>\n",
    ]
    return "\n".join(lines).encode("utf-8")


def _case(report: Report) -> str:
    head = (
        f"<testcase classname={_attribute(f'caisson.{report.stage}')} "
        f'name={_attribute(report.subject)} time="{_seconds(report):.3f}"'
    )
    if report.verdict == "skip":
        return f"{head}><skipped message={_attribute(report.reason)}/></testcase>"
    if report.verdict == "fail":
        blocking = [finding for finding in report.findings if finding.blocks]
        message = blocking[0].message if blocking else report.reason or "failed"
        text = "\n".join(
            f"{item.severity} {item.rule} {item.location}: {item.message} {item.remedy}"
            for item in report.findings
        )
        return f"{head}><failure message={_attribute(message)}>{_text(text)}</failure></testcase>"
    return f"{head}/>"


def _seconds(report: Report) -> float:
    value = report.measurements.get("seconds", 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _attribute(text: str) -> str:
    return quoteattr(_UNPRINTABLE.sub("�", text))


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("�", text))
