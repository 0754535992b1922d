"""Renders a document as one HTML file that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from contracts.base.report import SEVERITIES, Finding, Report
from tasks.pages import plots
from tasks.pages.document import Link, MatrixCell, ReportDocument

_FOLDER = Path(__file__).parent
_TITLES = {
    "stages": "Stages",
    "findings": "Findings",
    "level": "Level",
    "importance": "Importance",
    "errors": "Equivalence",
    "latencies": "Latency",
    "calibration": "Calibration",
    "slices": "Slices",
    "matrix": "Hardware",
    "lineage": "Lineage",
    "links": "Links",
}


@dataclass(frozen=True)
class _Stage:
    report: Report
    seconds: str
    share: float
    unchanged: bool


@dataclass(frozen=True)
class _Plot:
    name: str
    title: str
    caption: str
    svg: object


def render(document: ReportDocument) -> bytes:
    """Return the page of a document as UTF-8 bytes; equal documents give equal bytes."""
    import jinja2  # noqa: PLC0415 - loaded only where a page is made
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(identity=_identity, colour=_colour, safe_target=_safe_target)
    drawn = [_Plot(name, title, note, Markup(svg)) for name, title, note, svg in _plots(document)]  # noqa: S704 - our own SVG, whose text matplotlib escapes
    findings = _findings(document)
    text = environment.get_template("report.html.j2").render(
        document=document,
        css=Markup((_FOLDER / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        stages=list(_stages(document)),
        findings=findings,
        blockers=sum(finding.blocks for _, finding in findings),
        plots=drawn,
        checks=list(dict.fromkeys(cell.check for cell in document.matrix)),
        matrix=list(_matrix(document)),
        parts=_parts(document, {plot.name for plot in drawn}),
    )
    return text.encode("utf-8", "replace")


def _stages(document: ReportDocument) -> Iterator[_Stage]:
    seconds = [_seconds(report) for report in document.reports]
    longest = max([value for value in seconds if value is not None], default=0.0)
    for report, value in zip(document.reports, seconds, strict=True):
        share = round(100 * value / longest, 1) if value and longest else 0.0
        unchanged = report.measurements.get("unchanged") is True
        yield _Stage(report, "" if value is None else f"{value:.1f}", share, unchanged)


def _seconds(report: Report) -> float | None:
    value = report.measurements.get("seconds")
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _findings(document: ReportDocument) -> list[tuple[str, Finding]]:
    pairs = [(report.stage, item) for report in document.reports for item in report.findings]
    return sorted(pairs, key=lambda pair: SEVERITIES.index(pair[1].severity))


def _matrix(document: ReportDocument) -> Iterator[tuple[str, list[MatrixCell | None]]]:
    """Yield devices with their cells; one cell for all where nothing was run for one reason."""
    checks = list(dict.fromkeys(cell.check for cell in document.matrix))
    cells = {(cell.device, cell.check): cell for cell in document.matrix}
    known = {cell.device for cell in document.matrix if cell.status != "not-run"}
    devices = dict.fromkeys(cell.device for cell in document.matrix)
    for device in sorted(devices, key=lambda name: name not in known):
        row = [cells.get((device, check)) for check in checks]
        said = {(cell.status, cell.reason) for cell in row if cell}
        idle = len(row) > 1 and None not in row and len(said) == 1
        yield device, row[:1] if idle and row[0] and row[0].status == "not-run" else row


def _plots(document: ReportDocument) -> Iterator[tuple[str, str, str, str]]:
    if document.importance:
        note = "; ".join(dict.fromkeys(row.note for row in document.importance if row.note))
        yield "importance", "Feature importance", note, plots.importance(document.importance[:20])
    if document.errors:
        note = "A bar that stays left of its mark is within the limit."
        yield "errors", "Numerical error by output", note, plots.errors(document.errors[:24])
    if document.latencies:
        rows = document.latencies[:4]
        note = "; ".join(f"{row.name}: {row.count:,} answers {row.note}".strip() for row in rows)
        yield "latencies", "Latency percentiles", note, plots.latencies(rows)
    if document.calibration:
        note = "Point size follows the number of rows."
        yield (
            "calibration",
            "Calibration on the hold-out",
            note,
            plots.calibration(document.calibration),
        )


def _parts(document: ReportDocument, drawn: set[str]) -> list[tuple[str, str]]:
    shown = drawn | {"findings"}
    shown |= {"stages"} if document.reports else set()
    shown |= {"level"} if document.lacking or document.requirements else set()
    shown |= {name for name in ("slices", "matrix", "lineage", "links") if getattr(document, name)}
    return [(name, title) for name, title in _TITLES.items() if name in shown]


def _identity(text: str) -> str:
    """Shorten digests, wherever they stand in a text."""
    head, mark, tail = text.partition("sha256:")
    return f"{head}{mark}{tail[:12]}…{tail[64:]}" if mark and len(tail) >= 64 else text


def _colour(cell: MatrixCell) -> str:
    if cell.passed is False:
        return "fail"
    return "pass" if cell.status == "measured" and cell.passed else cell.status


def _safe_target(link: Link) -> bool:
    try:
        parts = urlsplit(link.target)
    except ValueError:
        return False
    return (
        bool(link.target)
        and parts.scheme in ("", "http", "https", "file")
        and not link.target.startswith("//")
    )
