"""The gate: every stage judges a package source, in waves; a blocking report stops the next wave.

Wave 1: contract, bundles and package. Wave 2: trust. Then hardware and verify, each alone because
they measure. Last compliance, which reads what the others said and states the achieved level.
"""

from __future__ import annotations

from prefect import flow

from flows import context, sources, stages
from flows.context import Context
from flows.judgement import GATE, Judgement
from flows.pages import publish_page
from flows.sources import Source
from flows.waves import Outcome, wave
from model_packages.oci.reference import PackageRef
from tasks import reuse
from tasks.policy import TargetPolicy


@flow(name="gate", flow_run_name="gate-{model}", persist_result=False)
async def gate(
    model: str, source: str | None = None, target: str | None = None, as_of: str | None = None
) -> Judgement:
    """Judge a package source by every stage, without signing or pushing it.

    Args:
        model: Name of the model.
        source: Digest or folder of the package source; the newest trained if not given.
        target: Target whose policy counts.
        as_of: Logical time; today if not given.
    """
    here = context.current(as_of)
    found = sources.resolve(here, model, source)
    ref, outcomes = await run_waves(here, found, here.policy(target))
    for outcome in outcomes:
        if outcome.report is not None:
            reuse.keep(here.workspace, outcome.report)
    page = await publish_page(here, found, ref, outcomes)
    return Judgement(model, found.tree, ref, tuple(outcomes), page)


async def run_waves(
    here: Context, source: Source, policy: TargetPolicy
) -> tuple[PackageRef | None, list[Outcome]]:
    """Run the stages that judge a source, in waves; outside a flow no server is needed.

    Args:
        here: The run's context.
        source: What is judged.
        policy: What the target demands.

    Returns:
        The package if it was built, and how every stage that was reached ended.
    """
    return await through(stages.Calls(here, source, policy))


async def through(calls: stages.Calls) -> tuple[PackageRef | None, list[Outcome]]:
    """Run waves until one blocks; every stage of a wave that began is reported."""
    outcomes = await wave(calls.first())
    ref = calls.package(outcomes)
    if ref is None or any(item.blocks(GATE) for item in outcomes):
        return ref, outcomes
    for following in (calls.trust, calls.hardware, calls.verify):
        outcomes += await wave(following(ref))
        if any(item.blocks(GATE) for item in outcomes):
            return ref, outcomes
    reports = [item.report for item in outcomes if item.report is not None]
    outcomes += await wave(calls.compliance(ref, reports))
    return ref, outcomes
