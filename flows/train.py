"""Train one model on one pinned feature version; the result is a package source, by digest."""

from __future__ import annotations

from prefect import flow

from contracts.base.report import Report
from flows import context, sources
from flows.waves import aside
from tasks.train.steps import TrainOptions, train_model


@flow(name="train", flow_run_name="train-{model}", persist_result=False)
async def train(
    model: str,
    feature_version: str | None = None,
    holdout_version: str | None = None,
    as_of: str | None = None,
) -> Report:
    """Train a published model.

    Args:
        model: Name of a folder in model_packages/published.
        feature_version: Bundle to learn from; the one its manifest names if not given.
        holdout_version: Bundle to be judged on; the one its manifest names if not given.
        as_of: Logical time; today if not given.
    """
    here = context.current(as_of)
    training = sources.training_of(here, model, feature_version, holdout_version)
    report = await aside(
        train_model,
        here.workspace,
        model,
        training.feature_version,
        training.holdout_version,
        TrainOptions(),
    )
    if report.verdict == "pass":
        sources.remember(here, report)
    return report
