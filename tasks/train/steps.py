"""The training stage as a task of a flow."""

from __future__ import annotations

from contracts.base.report import Report
from tasks import reuse
from tasks.engine import stage
from tasks.train.options import TrainOptions
from tasks.train.train import STAGE, Versions, exists, train
from tasks.workspace import Workspace

__all__ = ["TrainOptions", "train_model"]


@stage(STAGE)
def train_model(
    workspace: Workspace,
    model: str,
    feature_version: str,
    holdout_version: str,
    options: TrainOptions,
) -> Report:
    """Train a published model on one pinned feature version and store its package source."""
    folder = options.folder(workspace.root, model)
    versions = Versions(feature_version, holdout_version)
    inputs = {
        **options.inputs(folder),
        "model": model,
        "feature_version": feature_version,
        "holdout_version": holdout_version,
    }
    return reuse.once(
        workspace,
        STAGE,
        inputs,
        lambda: train(workspace, folder, versions, options),
        areas=["tasks/train", "tasks/child.py", "tasks/launcher.py"],
        exists=lambda report: exists(workspace, report),
    )
