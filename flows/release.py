"""Release: the gate, then sign, push by digest, register as candidate, record lineage."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from contracts.base import provenance
from contracts.base.errors import RefusedError
from contracts.base.report import Report, conclude
from flows import context, person
from flows.context import Context
from flows.gate import gate
from flows.judgement import Judgement
from flows.summary import measured, seconds
from flows.waves import Outcome, aside, attempt
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
    return await publish(here, await gate(model, source, target, as_of))


async def publish(here: Context, judgement: Judgement) -> Report:
    """Sign, push, register and record what the gate passed; each step is done once.

    Raises:
        CaissonError: What kept a stage of the gate, or a step, from being done.
        ReleaseRefused: If a stage of the gate refused.
    """
    ref = judgement.require()
    place, reports = here.workspace, judgement.reports
    origin = _origin(here, judgement)
    signed = await attempt("sign", aside(sign_package, place, ref, origin, reports))
    facts = signed.require().facts
    pushed = await attempt("push", aside(push_package, place, ref))
    pushed.require()
    work = aside(register_candidate, place, ref, facts, reports, by=person.name())
    registered = await attempt("register", work)
    registered.require()
    recorded = await attempt("lineage", aside(record_lineage, place, ref, reports))
    recorded.require()
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


def _report(judgement: Judgement, ref: PackageRef, steps: Sequence[Outcome]) -> Report:
    whole = judgement.to_report()
    outcomes = [*judgement.outcomes, *steps]
    findings = [finding for item in outcomes for finding in item.require().findings]
    audited = judgement.report("compliance") or whole
    facts = {
        **whole.facts,
        **ref.to_dict(),
        "stages": {item.stage: item.verdict for item in outcomes},
        "achieved_level": audited.facts.get("achieved_level"),
    }
    measurements = {
        **measured(steps),
        "seconds": seconds(outcomes),
        "page": str(judgement.page),
    }
    return conclude("release", str(ref), findings, facts=facts, measurements=measurements)
