"""What commands show: results on stdout as a table or JSON, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from contracts.base.progress import STAGE, Progress, Reporter, silent
from contracts.base.report import Report

# The order of the work, for tables; what is not named here comes last.
_ORDER = (
    "validate",
    "snapshot",
    "drift",
    "train",
    "package",
    "trust",
    "hardware",
    "verify",
    "compliance",
    "sign",
    "push",
    "register",
    "release",
    "deploy",
    "lineage",
)
_WORST = ("error", "fail", "skip", "pass")
_COLOURS = {"pass": "green", "fail": "red", "error": "red", "skip": "yellow"}


def emit(value: Any, *, as_json: bool, text: str = "") -> None:
    """Write a result: canonical-looking JSON for machines, else text for people."""
    if as_json:
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """Say on stderr what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stdout; plain where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else 140, highlight=False)
    grid = Table(title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(str(cell), style=_COLOURS.get(str(cell), "")) for cell in row))
    console.print(grid)


def reports(title: str, found: Sequence[Report], *, as_json: bool) -> None:
    """Show reports: a line a stage, then every finding with its remedy; one as one JSON object."""
    if as_json:
        plain = [report.to_dict() for report in found]
        emit(plain[0] if len(plain) == 1 else plain, as_json=True)
        return
    table(title, ["stage", "verdict", "subject", "note"], [_row(report) for report in found])
    findings(found)


def flow(report: Report, *, as_json: bool) -> None:
    """Show what a flow came to: its stages with their seconds, then every finding."""
    if as_json:
        emit(report.to_dict(), as_json=True)
        return
    columns = ["stage", "verdict", "seconds", "note"]
    _, verdict, subject, note = _row(report)
    sys.stdout.write(f"{report.stage} {verdict}: {subject}{f' ({note})' if note else ''}\n")
    table("", columns, stages(report))
    findings([report])


def stages(report: Report) -> list[tuple[str, str, str, str]]:
    """Return a row a stage of a flow: its name, worst verdict, seconds, and how many subjects."""
    said = report.facts.get("stages", {report.stage: report.verdict})
    if isinstance(said, Mapping):
        said = [{"stage": stage, "verdict": verdict} for stage, verdict in said.items()]
    took = report.measurements.get("seconds", {})
    verdicts: dict[str, list[str]] = {stage: [] for stage in took}
    for item in said:
        verdicts.setdefault(item["stage"], []).append(item["verdict"])
    rows = []
    for stage in sorted(verdicts, key=_place):
        counted = {name: verdicts[stage].count(name) for name in _WORST}
        worst = next((name for name in _WORST if counted[name]), "pass")
        several = len(verdicts[stage]) > 1
        note = ", ".join(f"{count} {name}" for name, count in counted.items() if count and several)
        rows.append((stage, worst, f"{took[stage]:.1f}" if stage in took else "", note))
    return rows


def _place(stage: str) -> tuple[int, str]:
    return (_ORDER.index(stage) if stage in _ORDER else len(_ORDER)), stage


def findings(found: Sequence[Report]) -> None:
    """Print every finding with what to do about it; what is said of many subjects only once."""
    said: dict[tuple[str, ...], list[str]] = {}
    for finding in (finding for report in found for finding in report.findings):
        rule = f"{finding.severity}: {finding.rule}"
        key = (rule, finding.location, finding.message, finding.remedy)
        said.setdefault(key, []).append(finding.subject)
    for (rule, location, message, remedy), subjects in said.items():
        where = shorten(subjects[0]) if len(subjects) == 1 else f"{len(subjects)} subjects"
        place = f" at {location}" if location and location != subjects[0] else ""
        sys.stdout.write(f"{rule}{place} in {where}\n    {message}\n    {remedy}\n")


def _row(report: Report) -> tuple[str, str, str, str]:
    unchanged = "unchanged" if report.measurements.get("unchanged") else ""
    return report.stage, report.verdict, shorten(report.subject), report.reason or unchanged


def shorten(text: str) -> str:
    """Return text with every sha256 cut to twelve digits, for tables."""
    head, mark, tail = text.partition("sha256:")
    return f"{head}{mark}{tail[:12]}{shorten(tail[64:])}" if mark else text


def pairs(title: str, values: Mapping[str, Any]) -> None:
    """Print names and values on stdout."""
    table(title, ["", ""], [(name, shorten(str(value))) for name, value in values.items()])


def _began(step: Progress, /) -> None:
    """Write one line as a stage begins, for logs."""
    if step.unit == STAGE and not step.done:
        note(f"· {step.stage}")


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Reporter]:
    """Show a progress bar a stage on stderr; where that is no terminal, a line as it begins."""
    if quiet or not sys.stderr.isatty():
        yield silent if quiet else _began
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    shown: dict[str, Any] = {}

    def report(step: Progress, /) -> None:
        if step.stage not in shown:
            shown[step.stage] = bars.add_task(step.stage, total=None, unit="")
        if step.unit == STAGE:
            if step.done:
                bars.update(shown[step.stage], total=1, completed=1, unit="")
            return
        bars.update(
            shown[step.stage], completed=step.done, total=step.total or None, unit=step.unit
        )

    with bars:
        yield report


def status(report: Report) -> int:
    """Return the exit status a report stands for: 0 passed, 1 refused, 2 could not be judged."""
    from flows import summary

    return summary.exit_status(report)


def records(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Show rows with the same names as a table or as JSON."""
    if as_json:
        emit(list(rows), as_json=True)
    elif not rows:
        sys.stdout.write(f"{title or 'rows'}: none\n")
    else:
        columns = list(rows[0])
        table(title, columns, [[shorten(str(row[name])) for name in columns] for row in rows])
