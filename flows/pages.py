"""The gate's page and its machine-readable siblings, written beside the recorded reports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from contracts.base import canonical, clock, files
from contracts.base.digest import short
from contracts.base.report import Report, conclude
from contracts.objects import content
from flows.context import Context
from flows.sources import Source
from flows.summary import could_not
from flows.waves import Outcome
from model_packages.oci.reference import PackageRef
from tasks.pages.document import Link, ReportDocument
from tasks.pages.gather import gather
from tasks.pages.junit import junit
from tasks.pages.render import render
from tasks.pages.sarif import sarif
from tasks.pages.summary import summary_markdown

PAGE = "report.html"

_LIMIT = 64 * 2**20


async def publish_page(
    here: Context, source: Source, ref: PackageRef | None, outcomes: Sequence[Outcome]
) -> Path:
    """Write report.html, junit.xml, findings.sarif, summary.md and reports.json; return the page.

    The summary also becomes an artifact of the present Prefect flow.
    """
    folder = folder_of(here, source)
    shown = [_shown(outcome) for outcome in outcomes]
    document = document_of(here, source, ref, shown)
    markdown = summary_markdown(shown, title=document.title)
    await asyncio.to_thread(_write, folder, gather(document), shown)
    files.write_atomic(folder / "summary.md", markdown.encode())
    await _artifact(source.manifest.name, markdown)
    return folder / PAGE


def folder_of(here: Context, source: Source) -> Path:
    """Return the folder of a package source's page."""
    return here.workspace.reports / "gate" / short(source.tree, 16)


def recorded(here: Context, source: Source) -> tuple[Report, ...]:
    """Return what the last gate of a package source said.

    Raises:
        InputError: If it was never judged, or the record cannot be read.
    """
    path = folder_of(here, source) / "reports.json"
    found = canonical.loads(files.read_bounded(path, _LIMIT), limit=_LIMIT, where=str(path))
    return tuple(Report.from_dict(item) for item in found)


def document_of(
    here: Context, source: Source, ref: PackageRef | None, reports: Sequence[Report]
) -> ReportDocument:
    """Return the document of a package source, with what its training measured on top."""
    return ReportDocument(
        title=f"{source.manifest.name} {source.manifest.version}",
        reports=(*_training(here, source), *reports),
        subject=source.manifest.description,
        identities=_identities(source, ref),
        links=_links(here),
        made_at=clock.to_text(here.workspace.clock.now()),
    )


def _write(folder: Path, document: ReportDocument, shown: Sequence[Report]) -> None:
    files.write_atomic(folder / PAGE, render(document))
    files.write_atomic(folder / "junit.xml", junit(shown))
    files.write_atomic(
        folder / "findings.sarif",
        sarif([finding for report in shown for finding in report.findings]),
    )
    reports = [report.to_dict() for report in shown]
    files.write_atomic(folder / "reports.json", canonical.dumps(reports) + b"\n")


def _shown(outcome: Outcome) -> Report:
    """Return what a stage said, with its seconds; one that raised shows as a failure with why."""
    said = outcome.report
    if said is None:
        said = conclude(outcome.stage, outcome.subject or outcome.stage, [could_not(outcome)])
    return replace(said, measurements={"seconds": round(outcome.seconds, 3), **said.measurements})


def _training(here: Context, source: Source) -> tuple[Report, ...]:
    """Return the report of the training that made a source; none if it was trained elsewhere."""
    for record in reversed(here.ledger.records("trained", source.manifest.name)):
        if record.body["feature_version"] == source.training.feature_version:
            data = content.get_bytes(
                here.workspace.objects, record.body["report"], limit=16 * 2**20
            )
            return (Report.from_dict(canonical.loads(data)),)
    return ()


def _identities(source: Source, ref: PackageRef | None) -> tuple[tuple[str, str], ...]:
    training = source.training
    rows = [
        ("package source", source.tree),
        ("feature definition", training.definition),
        ("trained on", training.feature_version),
        ("judged on", training.holdout_version),
    ]
    if ref is not None:
        rows = [("package", ref.digest), ("package content", ref.set_digest), *rows]
    return tuple(rows)


def _links(here: Context) -> tuple[Link, ...]:
    names = ("summary.md", "junit.xml", "findings.sarif", "reports.json")
    runbooks = here.workspace.root / "infra" / "runbooks"
    return (
        *(Link(name, name, "the same, for machines") for name in names),
        *(Link(path.stem, path.as_uri(), "runbook") for path in sorted(runbooks.glob("*.md"))),
    )


async def _artifact(model: str, markdown: str) -> None:
    from prefect.context import FlowRunContext

    if FlowRunContext.get() is not None:
        from prefect.artifacts import acreate_markdown_artifact

        await acreate_markdown_artifact(markdown=markdown, key=f"gate-{model}")
