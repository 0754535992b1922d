"""Rollback: bring back the release that was live before, from bytes kept on the target."""

from __future__ import annotations

from prefect import flow

from contracts.base.report import Report
from flows import context, person, traffic
from flows.waves import aside
from tasks.release.steps import RollbackOptions, open_target, rollback_target


@flow(name="rollback", flow_run_name="rollback-{model}", persist_result=False)
async def rollback(model: str, target: str | None = None, reason: str = "") -> Report:
    """Make the release before the live one live again.

    It needs neither registry nor MLflow; `caisson rollback` does the same without Prefect.

    Args:
        model: Name of the model.
        target: Where it runs.
        reason: Why, for the ledger.
    """
    here = context.current()
    place = open_target(here.workspace, here.policy(target).target, while_locked=traffic.owner())
    options = RollbackOptions(reason=reason, by=person.name())
    return await aside(rollback_target, here.workspace, model, place, options)
