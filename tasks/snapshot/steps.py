"""The snapshot steps as tasks of a flow; the only file here that knows Prefect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from contracts.base.report import Report
from tasks.engine import stage
from tasks.snapshot import audit, snapshot
from tasks.snapshot.window import Selection, Window, window
from tasks.workspace import Workspace

__all__ = [
    "Selection",
    "Window",
    "review_training",
    "snapshot_features",
    "verify_bundles",
    "window",
]


@stage(snapshot.STAGE)
def snapshot_features(
    workspace: Workspace,
    definition_name: str,
    batches: Mapping[str, Sequence[str]],
    as_of: datetime,
    verdicts: Sequence[Report] | None = None,
) -> Report:
    """Freeze the features of named batches as a bundle, unless that has been done."""
    return snapshot.snapshot(workspace, definition_name, batches, as_of, verdicts)


@stage(audit.REVIEW)
def review_training(workspace: Workspace, definition: str, training: str, holdout: str) -> Report:
    """Judge whether the data a model learned from and was judged on may be used."""
    return audit.review(workspace, definition, training, holdout)


@stage(audit.VERIFY)
def verify_bundles(workspace: Workspace, definition: str, training: str, holdout: str) -> Report:
    """Verify every cell of the bundles a model learned from and was judged on."""
    return audit.verify(workspace, definition, training, holdout)
