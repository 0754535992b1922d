"""Runs the demo: the whole story or what is left of it; unchanged, only the service starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.base import files
from contracts.base.report import Report, conclude
from flows import context, recall, server
from flows.candidates import candidate
from flows.context import Context
from flows.demo import timing
from flows.demo.chapters import Chapter, Chapters
from flows.demo.subject import AS_OF, MODEL, TARGET
from model_packages.runtime.serve.client import InferenceClient
from tasks.demo import data
from tasks.release import deploy as deploying
from tasks.release.targets.table import open_target

_STAGE = "flow-demo"


@dataclass(frozen=True)
class DemoOptions:
    """What the demo may be told.

    Attributes:
        keep: Whether the target goes on after the demo.
        faults: Whether faults are planted.
        quiet: Whether to say nothing while it runs.
    """

    keep: bool = False
    faults: bool = True
    quiet: bool = False


def run(options: DemoOptions) -> Report:
    """Run the demo and return what it came to; facts hold the table.

    Raises:
        CaissonError: If any chapter could not be finished.
    """
    here = context.current(AS_OF)
    with files.locked(here.workspace.locks / "demo"):
        return _run(here, options)


def _run(here: Context, options: DemoOptions) -> Report:
    chapters = Chapters(options.quiet)
    with _tied(here, options.keep) as owner:
        with chapters.telling("data: flights of New York 2013", flow=False) as chapter:
            made = data.prepare(here.workspace.sources, here.workspace.progress)
            found = made["sources"].values()
            rows = sum(item["rows"] for item in found)
            batches = sum(len(item["batches"]) for item in found)
            chapter.note = f"{rows:,} rows in {batches} batches"
        report = recall.demo(
            here, lambda: _first(here, chapters, owner, options), faults=options.faults
        )
        if report.measurements.get("unchanged"):
            return _again(here, chapters, owner, report)
        return report


def _first(here: Context, chapters: Chapters, owner: Path | None, options: DemoOptions) -> Report:
    start = time.monotonic()
    with server.ensure(here.workspace, 0.0 if not options.keep else here.settings.linger):
        from flows.demo.story import tell
        from tasks import engine

        for name in ("prefect", "prefect.flow_runs", "prefect.task_runs"):
            logging.getLogger(name).setLevel("CRITICAL")
        started = time.monotonic()
        engine.worked.clear()
        chapters.flows = 0.0
        told = asyncio.run(tell(here, chapters, owner, plant=options.faults))
        finished = time.monotonic()
    ended = time.monotonic()
    facts = {
        "releases": [told.package.to_dict()],
        "page": str(told.page),
        "level": told.level,
        "request_id": told.request_id,
        "table": [row.to_dict() for row in chapters.rows],
    }
    waited = round(started - start + ended - finished, 2)
    measurements = {
        "url": told.url,
        "seconds": round(ended - start, 2),
        "server": waited,
        "engines": timing.engines(engine.worked, flows=chapters.flows, server=waited),
        "stages": timing.by_stage(engine.worked),
    }
    return conclude(_STAGE, str(told.package), [], facts=facts, measurements=measurements)


def _again(here: Context, chapters: Chapters, owner: Path | None, known: Report) -> Report:
    """Start the target again with what is live, ask it once, and show the recorded table."""
    for row in known.facts["table"][1:]:
        chapters.rows.append(
            Chapter(**{**row, "note": f"unchanged: {row['note']}", "seconds": 0.0})
        )
    with chapters.telling("start the target again", "caisson status", flow=False) as chapter:
        ref = candidate(here, MODEL, known.facts["releases"][0]["digest"])
        target = open_target(here.workspace, TARGET, while_locked=owner)
        report = deploying.deploy(here.workspace, ref, target, here.policy(TARGET))
        url = str(report.measurements["url"])
        ready = InferenceClient(url).ready()
        chapter.note = f"{'ready' if ready else 'not ready'} at {url}"
    facts = {**known.facts, "table": [row.to_dict() for row in chapters.rows]}
    return Report(_STAGE, known.subject, "pass", (), facts, {"url": url, "unchanged": True})


@contextlib.contextmanager
def _tied(here: Context, keep: bool) -> Iterator[Path | None]:
    """Hold the lock that the target watches; with ``keep`` it is tied to nothing."""
    if keep:
        yield None
        return
    path = here.workspace.locks / "demo-target"
    with files.locked(path):
        yield path
