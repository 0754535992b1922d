"""Deploy: bring the candidate into a target through golden cases and canary, or undo it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from prefect import flow

from contracts.base.errors import UnavailableError
from contracts.base.report import Finding, Report
from flows import context, person, traffic
from flows.candidates import candidate
from flows.summary import seconds
from flows.waves import Outcome, aside, attempt
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
    options = DeployOptions(share=canary_share, by=person.name())
    ended = threading.Event()
    pump = partial(_pump, ended, traffic.pump() or options.pump)
    work = aside(
        deploy_package,
        here.workspace,
        ref,
        place,
        policy,
        replace(options, pump=pump),
        stop=ended.set,
    )
    deployed = await attempt("deploy", work)
    report = deployed.require()
    mirrored = await attempt("lineage", aside(reconcile_lineage, here.workspace, model))
    took = seconds([deployed, mirrored])
    return replace(
        report,
        findings=(*report.findings, *_behind(report, mirrored)),
        measurements={**report.measurements, "seconds": took},
    )


def _behind(report: Report, mirrored: Outcome) -> Iterator[Finding]:
    """Yield that MLflow was not told: the ledger has what is true, so nothing is undone."""
    if mirrored.error is not None:
        yield Finding(
            rule="deploy.lineage-behind",
            subject=report.subject,
            location="mlflow",
            severity="low",
            message=f"MLflow does not show this deployment yet: {mirrored.error.message}",
            remedy="Remove the cause; the next deployment of the model writes it too.",
            evidence=mirrored.error.to_dict(),
        )


def _pump(ended: threading.Event, pump: Callable[[], None]) -> None:
    """Do what happens between two looks at a canary, unless the command was interrupted."""
    if ended.is_set():
        raise UnavailableError("deployment was interrupted; the target stays as it was")
    pump()
