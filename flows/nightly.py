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
from contracts.base.report import Report
from contracts.catalog import Catalog
from contracts.features import declaration
from contracts.sources import files
from flows import context, retraining
from flows.context import Context
from flows.summary import conclude_all
from flows.waves import Outcome, wave
from tasks.drift.steps import measure_drift
from tasks.snapshot.steps import Selection, snapshot_features, window
from tasks.validate.steps import validate_batch

_SIDE_BY_SIDE = 2


@dataclass
class Night:
    """What a run has found so far.

    Attributes:
        outcomes: How every stage ended.
        verdicts: What was said of batches; rows in quarantine stay out of bundles.
        spoiled: Sources with a batch that was refused or could not be judged, with the reason.
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
    here = context.current(as_of)
    night = Night()
    await _validate(here, night)
    for definition in declaration.names(here.contracts):
        await _snapshot(here, night, definition)
    for model in retraining.due(here):
        night.outcomes += await retraining.retrain(here, model, night.bundles, target)
    moment = clock.to_text(here.as_of)
    facts = {
        "as_of": moment,
        "bundles": {name: list(made) for name, made in night.bundles.items()},
        "releases": retraining.released(night.outcomes),
    }
    report = conclude_all("nightly", moment, night.outcomes, facts)
    here.ledger.append("nightly", moment, {"verdict": report.verdict, "report": report.digest})
    return report


async def _validate(here: Context, night: Night) -> None:
    """Judge every batch that was delivered; those judged before are recognised by digest."""
    limit = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(name: str, batch: str, moment: datetime | None) -> None:
        call = partial(validate_batch, here.workspace, name, batch, moment, "nightly")
        async with limit:
            outcomes = await wave({"validate": call})
        night.outcomes += outcomes
        for outcome in outcomes:
            if outcome.report is not None:
                night.verdicts.append(outcome.report)
            if outcome.blocks(["validate"]):
                night.spoiled[name] = f"batch {batch} of {name} was not accepted"

    batches = [
        one(name, batch, moment)
        for name in Catalog(here.contracts).names()
        for batch, moment in _delivered(here, name)
    ]
    await asyncio.gather(*batches)


def _delivered(here: Context, name: str) -> list[tuple[str, datetime | None]]:
    """Return the batches of a source, and by which moment each is judged.

    The newest must be fresh today; an older one was fresh enough if it was when it came.
    """
    contract = Catalog(here.contracts).load(name)
    found = [
        files.open_batch(here.workspace.sources, contract, batch)
        for batch in files.list_batches(here.workspace.sources, contract.location)
    ]
    known = sorted(
        (batch.logical_time, batch.name) for batch in found if batch.logical_time <= here.as_of
    )
    return [
        (batch, here.as_of if place == len(known) else None)
        for place, (_, batch) in enumerate(known, start=1)
    ]


async def _snapshot(here: Context, night: Night, definition: str) -> None:
    """Freeze the three bundles of a definition and compare the new one with the training one."""
    read = {item.source for item in declaration.load(here.contracts, definition).inputs}
    if read & set(night.spoiled):
        return
    chosen = await asyncio.to_thread(window, here.workspace, definition, here.as_of)
    made: list[str] = []
    for selection in (chosen.training, chosen.holdout, chosen.new):
        outcomes = await wave({"snapshot": partial(_freeze, here, night, definition, selection)})
        night.outcomes += outcomes
        if outcomes[0].report is None or outcomes[0].blocks(["snapshot"]):
            return
        made.append(str(outcomes[0].report.facts["feature_version"]))
    night.bundles[definition] = (made[0], made[1], made[2])
    drift = partial(measure_drift, here.workspace, definition, made[0], made[2])
    night.outcomes += await wave({"drift": drift})


def _freeze(here: Context, night: Night, definition: str, selection: Selection) -> Report:
    batches: Mapping[str, Sequence[str]] = selection.batches
    return snapshot_features(here.workspace, definition, batches, selection.as_of, night.verdicts)
