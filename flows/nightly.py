"""Nightly: validate every source, snapshot features, retrain what asks for it, register candidates.

One source's or model's failure never stops another's; what failed is in the report, and what
depends on it is left out with that reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from prefect import flow

from contracts.base import clock
from contracts.base.errors import CaissonError
from contracts.base.report import Report, skipped
from contracts.catalog import Catalog
from contracts.features import declaration
from contracts.sources import files
from flows import context, retraining
from flows.context import Context
from flows.summary import conclude_all
from flows.waves import Outcome, tried, wave
from tasks.drift.steps import measure_drift
from tasks.ledger.record import Pointer
from tasks.release.steps import reverify_release
from tasks.snapshot.steps import Selection, Window, snapshot_features, window
from tasks.validate.steps import validate_batch

_SIDE_BY_SIDE = 2


@dataclass
class Night:
    """What a run has found so far.

    Attributes:
        outcomes: How every stage ended.
        verdicts: What was said of batches; rows in quarantine stay out of bundles.
        spoiled: Sources with a batch that was refused or could not be judged, with the reason.
            What reads them is left out.
        bundles: Versions made, by definition: training, hold-out and new.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    verdicts: list[Report] = field(default_factory=list)
    spoiled: dict[str, str] = field(default_factory=dict)
    bundles: dict[str, tuple[str, str, str]] = field(default_factory=dict)


@flow(name="nightly", persist_result=False)
async def nightly(as_of: str | None = None, target: str | None = None) -> Report:
    """Take every source and every model that asks for it through the whole chain.

    Args:
        as_of: Logical time; today if not given. Freshness of the newest batches is judged by it.
        target: Target whose policy counts for candidates.
    """
    return await run(context.current(as_of), target)


async def run(here: Context, target: str | None = None) -> Report:
    """Do the work of a night as of a context's moment; what fails is in the report.

    Args:
        here: The run's context.
        target: Target whose policy counts for candidates.
    """
    night = Night()
    await _validate(here, night)
    for definition in declaration.names(here.contracts):
        await _snapshot(here, night, definition)
    for model in retraining.published(here):
        night.outcomes += await retraining.retrain(here, model, night.bundles, target)
    for pointer in here.ledger.pointers():
        place = f"{pointer.model}/{pointer.target}"
        night.outcomes += await wave({"reverify": partial(_reverify, here, pointer)}, place)
    moment = clock.to_text(here.as_of)
    facts = {
        "as_of": moment,
        "bundles": {name: list(made) for name, made in night.bundles.items()},
        "releases": retraining.released(night.outcomes),
    }
    report = conclude_all("nightly", moment, night.outcomes, facts)
    here.ledger.append("nightly", moment, {"verdict": report.verdict, "report": report.digest})
    return report


def _reverify(here: Context, pointer: Pointer) -> Report:
    return reverify_release(here.workspace, pointer, here.policy(pointer.target), here.as_of)


async def _validate(here: Context, night: Night) -> None:
    """Judge every batch that was delivered; those judged before are recognised by digest."""
    limit = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(name: str, batch: str, moment: datetime | None) -> None:
        call = partial(validate_batch, here.workspace, name, batch, moment, "nightly")
        async with limit:
            (outcome,) = await wave({"validate": call}, f"{name}#{batch}")
        night.outcomes.append(outcome)
        if outcome.report is not None:
            night.verdicts.append(outcome.report)
        if outcome.blocks(["validate"]):
            night.spoiled[name] = f"batch {batch} of {name} was not accepted"

    async def all_of(name: str) -> None:
        batches = await tried(asyncio.to_thread(_delivered, here, name))
        if isinstance(batches, CaissonError):
            night.outcomes.append(Outcome("validate", None, batches, about=name))
            night.spoiled[name] = f"the batches of {name} cannot be told"
        else:
            await asyncio.gather(*(one(name, batch, moment) for batch, moment in batches))

    await asyncio.gather(*(all_of(name) for name in Catalog(here.contracts).names()))


def _delivered(here: Context, name: str) -> list[tuple[str, datetime | None]]:
    """Return the batches of a source, and by which moment each is judged.

    The newest must be fresh today; an older one was fresh enough if it was when it came.
    """
    contract = Catalog(here.contracts).load(name)
    known = files.delivered(here.workspace.sources, contract.location, here.as_of)
    return [(batch, here.as_of if batch == known[-1] else None) for batch in known]


async def _snapshot(here: Context, night: Night, definition: str) -> None:
    """Freeze the three bundles of a definition and compare the new one with the training one."""
    chosen = await tried(asyncio.to_thread(_chosen, here, night, definition))
    if isinstance(chosen, CaissonError):
        night.outcomes.append(Outcome("snapshot", None, chosen, about=definition))
        return
    if isinstance(chosen, str):
        night.outcomes.append(Outcome("snapshot", skipped("snapshot", definition, chosen), None))
        return
    made: list[str] = []
    for selection in (chosen.training, chosen.holdout, chosen.new):
        freeze = partial(_freeze, here, night, definition, selection)
        (outcome,) = await wave({"snapshot": freeze}, definition)
        night.outcomes.append(outcome)
        if outcome.report is None or outcome.blocks(["snapshot"]):
            return
        made.append(str(outcome.report.facts["feature_version"]))
    night.bundles[definition] = (made[0], made[1], made[2])
    drift = partial(measure_drift, here.workspace, definition, made[0], made[2])
    night.outcomes += await wave({"drift": drift}, definition)


def _chosen(here: Context, night: Night, definition: str) -> Window | str:
    """Return the batches of a definition, or why none can be chosen tonight."""
    read = {item.source for item in declaration.load(here.contracts, definition).inputs}
    reasons = [night.spoiled[source] for source in sorted(read & set(night.spoiled))]
    return "; ".join(reasons) or window(here.workspace, definition, here.as_of)


def _freeze(here: Context, night: Night, definition: str, selection: Selection) -> Report:
    batches: Mapping[str, Sequence[str]] = selection.batches
    return snapshot_features(here.workspace, definition, batches, selection.as_of, night.verdicts)
