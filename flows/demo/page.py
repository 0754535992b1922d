"""The demo's one page: the gate of the live release, its deployment, an answer's lineage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from contracts.base import files
from contracts.base.errors import InputError
from contracts.base.report import Report
from flows.context import Context
from flows.demo.passengers import Answers
from flows.pages import PAGE, document_of, folder_of, recorded
from flows.sources import Source
from model_packages.oci.reference import PackageRef
from tasks.lineage import show
from tasks.lineage.tree import Node
from tasks.pages.document import LineageStep, Link
from tasks.pages.gather import gather, latency
from tasks.pages.render import render

_PATIENCE_S = 5.0
_SHOWN = ("answer", "deployment", "package", "record", "bundle", "contract", "commit")


def write(
    here: Context,
    source: Source,
    ref: PackageRef,
    deployed: Sequence[Report],
    answers: Answers,
) -> Path:
    """Write the page and return its path.

    Args:
        here: The run's context.
        source: The package source of the live release.
        ref: The live release.
        deployed: Reports of its deployment and of the rollback to it.
        answers: What December's flights were answered.
    """
    gate = folder_of(here, source)
    document = document_of(here, source, ref, [*recorded(here, source), *deployed])
    request = answers.last.request_id if answers.last else ""
    known = [
        Link(item.title, f"../gate/{gate.name}/{item.target}", item.detail)
        if "/" not in item.target
        else item
        for item in document.links
    ]
    document = replace(
        document,
        latencies=(
            latency(
                "December over HTTP",
                answers.percentiles(),
                len(answers.seconds),
                "one flight a request, eight connections",
            ),
        ),
        lineage=tuple(_steps(here, request)),
        links=(Link("lineage of an answer", "", f"caisson lineage {request}"), *known),
    )
    path = here.workspace.reports / "demo" / PAGE
    files.write_atomic(path, render(gather(document)))
    return path


def _why(here: Context, request: str) -> Node:
    """Return where an answer came from; the decision log is written a moment after the answer."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return show.why(here.workspace, request)
        except InputError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _steps(here: Context, request: str) -> Iterator[LineageStep]:
    """Yield the chain from an answer back to the contracts; batches are in the lineage command."""
    for node in _why(here, request).walk():
        if node.kind in _SHOWN:
            yield LineageStep(node.kind, node.name, node.digest, node.missing)
