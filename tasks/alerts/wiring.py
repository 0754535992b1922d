"""Builds the outbox of a workspace: its file, and the services its owner configured."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.alerts.interface import Sink
from tasks.alerts.outbox import FileSink, Outbox
from tasks.workspace import Workspace


def outbox(workspace: Workspace, sinks: Sequence[Sink] = ()) -> Outbox:
    """Return the outbox of a workspace.

    Args:
        workspace: Where ``reports/alerts.jsonl`` and what waits for delivery are.
        sinks: Services beside the file, made by ``webhook.pagerduty``, ``webhook.slack`` or
            ``webhook.Webhook``.
    """
    file = FileSink(workspace.reports / "alerts.jsonl")
    return Outbox(workspace.reports / "alerts", (file, *sinks))
