"""Reports as a Markdown table, for Prefect artifacts and the step summaries of CI systems."""

from __future__ import annotations

import re
from collections.abc import Sequence

from contracts.base.report import Report

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def summary_markdown(reports: Sequence[Report], *, title: str = "") -> str:
    """Return a table of the stages, then every finding that blocks.

    Args:
        reports: The stages in the order they ran.
        title: Heading; none if empty.
    """
    lines = [f"## {_plain(title)}", ""] if title else []
    lines += ["| stage | verdict | seconds | findings |", "|---|---|---:|---|"]
    lines += [_row(report) for report in reports]
    blocking = [(r.stage, item) for r in reports for item in r.findings if item.blocks]
    if blocking:
        lines += ["", "### What blocks", ""]
        lines += [
            f"- **{_plain(stage)}** `{item.rule}` {_plain(item.location)}: "
            f"{_plain(item.message)} {_plain(item.remedy)}".rstrip()
            for stage, item in blocking
        ]
    return "\n".join(lines) + "\n"


def _row(report: Report) -> str:
    seconds = report.measurements.get("seconds")
    shown = f"{seconds:.1f}" if isinstance(seconds, int | float) else ""
    counts = [
        f"{sum(item.severity == severity for item in report.findings)} {severity}"
        for severity in dict.fromkeys(item.severity for item in report.findings)
    ]
    note = _plain(report.reason) or ", ".join(counts)
    unchanged = " (unchanged)" if report.measurements.get("unchanged") is True else ""
    return f"| {_plain(report.stage)} | {report.verdict}{unchanged} | {shown} | {note} |"


def _plain(text: str) -> str:
    """Escape what Markdown or HTML would interpret, and keep the row on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
