"""Release: the gate, then sign, push by digest, register as candidate, record lineage."""

from __future__ import annotations

import asyncio
import getpass

from prefect import flow

from contracts.base import provenance
from contracts.base.errors import RefusedError
from contracts.base.report import Report, conclude
from flows import context
from flows.context import Context
from flows.gate import gate
from flows.judgement import Judgement
from model_packages.oci.reference import PackageRef
from tasks.lineage.steps import record_lineage
from tasks.release.steps import Origin, push_package, register_candidate, sign_package


@flow(name="release", flow_run_name="release-{model}", persist_result=False)
async def release(
    model: str, source: str | None = None, target: str | None = None, as_of: str | None = None
) -> Report:
    """Gate a package source, sign it, push it by digest and register it as candidate.

    Running the same release again changes nothing and says so.

    Args:
        model: Name of the model.
        source: Digest or folder of the package source; the newest trained if not given.
        target: Target whose policy counts.
        as_of: Logical time; today if not given.
    """
    here = context.current(as_of)
    judgement = await gate(model, source, target, as_of)
    ref = judgement.require()
    reports = judgement.reports
    origin = _origin(here, judgement)
    signed = await asyncio.to_thread(sign_package, here.workspace, ref, origin, reports)
    pushed = await asyncio.to_thread(push_package, here.workspace, ref)
    registered = await asyncio.to_thread(
        register_candidate, here.workspace, ref, signed.facts, reports, by=getpass.getuser()
    )
    recorded = await asyncio.to_thread(record_lineage, here.workspace, ref, reports)
    return _report(judgement, ref, [signed, pushed, registered, recorded])


def _origin(here: Context, judgement: Judgement) -> Origin:
    validated = judgement.report("validate")
    audited = judgement.report("compliance")
    built = judgement.report("package")
    if validated is None or audited is None or built is None:
        raise RefusedError("the gate passed without all its stages; nothing is signed")
    contracts = validated.facts["contracts"]
    spine = str(validated.facts["definition"]).rpartition("/")[0]
    contract = next(name for name in contracts if name.partition("@")[0] == spine)
    commit, dirty = provenance.commit_of(here.workspace.root)
    return Origin(
        contract=contract,
        schema_hash=contracts[contract],
        feature_version=validated.facts["feature_version"],
        git_commit=f"{commit}-dirty" if dirty else commit,
        runtime_version=built.facts["runtime_version"],
        achieved_level=audited.facts["achieved_level"],
    )


def _report(judgement: Judgement, ref: PackageRef, steps: list[Report]) -> Report:
    whole = judgement.to_report()
    every = [*judgement.reports, *steps]
    unchanged = all(report.measurements.get("unchanged") for report in every)
    return conclude(
        "release",
        str(ref),
        [finding for report in every for finding in report.findings],
        facts={
            **whole.facts,
            **ref.to_dict(),
            "achieved_level": (judgement.report("compliance") or whole).facts.get("achieved_level"),
        },
        measurements={
            "seconds": whole.measurements["seconds"],
            "page": str(judgement.page),
            **({"unchanged": True} if unchanged else {}),
        },
    )
