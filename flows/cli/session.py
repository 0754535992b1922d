"""Runs a flow for a command: settings, Prefect server, progress, and no work done twice."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import Any

from contracts.base.report import Report
from flows import context, recall
from flows.cli import console
from flows.context import Context


def run(flow: str, *, quiet: bool = False, **parameters: Any) -> Any:
    """Run a flow against the local Prefect server and return what it returns.

    Args:
        flow: Its module and name, such as ``flows.release.release``; imported while the server
            starts, because importing Prefect takes seconds too.
        quiet: Show no progress.
        parameters: The flow's own.
    """
    from flows import server

    here = context.current(parameters.get("as_of"))
    level = here.settings.log_level.upper()
    with (
        console.progress(quiet=quiet) as reporter,
        context.watched(reporter),
        server.ensure(here.workspace, here.settings.linger),
    ):
        module, _, name = flow.rpartition(".")
        function = getattr(importlib.import_module(module), name)
        _quieten(level)
        return asyncio.run(function(**parameters))


def once(flow: str, **parameters: Any) -> Report:
    """Run a flow unless the same work has been done, which is decided before a server starts.

    A second command with the same work waits for the first and reports the same result.
    """
    here: Context = context.current(parameters.get("as_of"))
    return recall.once(here, flow, parameters, lambda: run(flow, **parameters))


def _quieten(level: str) -> None:
    """Let Prefect's own lines through only from the level the settings ask for."""
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).setLevel("CRITICAL" if level == "WARNING" else level)
