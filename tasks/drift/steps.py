"""The drift step as a task of a flow; the only file here that knows Prefect."""

from __future__ import annotations

from contracts.base.report import Report
from tasks.drift import measure
from tasks.engine import stage
from tasks.workspace import Workspace

__all__ = ["measure_drift"]


@stage(measure.STAGE)
def measure_drift(workspace: Workspace, definition: str, reference: str, current: str) -> Report:
    """Compare the bundle of new data with the bundle a model was trained on."""
    return measure.measure(workspace, definition, reference, current)
