"""Deploy: bring the candidate into a target through golden cases and canary, or undo it."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace

from prefect import flow

from contracts.base.report import Report
from flows import context, traffic
from flows.candidates import candidate
from tasks.lineage.steps import reconcile_lineage
from tasks.release.steps import DeployOptions, deploy_package, open_target


@flow(name="deploy", flow_run_name="deploy-{model}", persist_result=False)
async def deploy(
    model: str,
    target: str | None = None,
    package: str | None = None,
    canary_share: float | None = None,
) -> Report:
    """Bring a registered release live in a target, or leave the target as it was.

    Args:
        model: Name of the model.
        target: Where it shall run.
        package: Digest of the release; the newest candidate if not given.
        canary_share: Share of requests the candidate answers at first; the policy's if not given.
    """
    here = context.current()
    policy = here.policy(target)
    ref = candidate(here, model, package)
    place = open_target(here.workspace, policy.target, while_locked=traffic.owner())
    options = DeployOptions(share=canary_share, by=getpass.getuser())
    pump = traffic.pump()
    report = await asyncio.to_thread(
        deploy_package,
        here.workspace,
        ref,
        place,
        policy,
        replace(options, pump=pump) if pump else options,
    )
    await asyncio.to_thread(reconcile_lineage, here.workspace, model)
    return report
