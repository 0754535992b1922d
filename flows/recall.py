"""Which flows need not run again, decided from recorded digests before any server starts.

A finished flow is recorded like a stage: by the digests of all it reads and of the code. It is
recalled only while everything it made is still there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts.base import clock, digest
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError
from contracts.base.report import Report
from contracts.catalog import Catalog
from contracts.features import pointer
from contracts.sources import files as batches
from contracts.sources.interface import Batch
from flows import sources
from flows.context import Context
from model_packages.oci import image
from model_packages.oci.store import LayoutStore
from tasks import reuse
from tasks.reuse import Claim

_AREAS = ("flows", "tasks", "infra/policies", "infra/hardware")


def once(
    here: Context, flow: str, parameters: Mapping[str, Any], produce: Callable[[], Report]
) -> Report:
    """Return the recorded result of a flow, or run it and record the result if it passed.

    Args:
        here: The run's context.
        flow: Module and name of the flow.
        parameters: What it is called with.
        produce: Runs it.
    """
    with claimed(here, flow, parameters) as claim:
        return claim.recorded or claim.record(produce())


@contextlib.contextmanager
def claimed(here: Context, flow: str, parameters: Mapping[str, Any]) -> Iterator[Claim]:
    """Hold a flow's work for the time of a block, for those who run it in a loop of their own."""
    stage = f"flow-{flow.rpartition('.')[2].replace('_', '-')}"
    inputs = {**_inputs(here, stage, parameters), "as_of": clock.to_text(here.as_of)}
    with reuse.claimed(
        here.workspace,
        stage,
        inputs,
        areas=_AREAS,
        exists=lambda report: _still_there(here, report),
    ) as claim:
        yield claim


def demo(here: Context, produce: Callable[[], Report], *, faults: bool) -> Report:
    """Return the recorded end of the demo, or run it and record how it ended."""
    return reuse.once(
        here.workspace,
        "flow-demo",
        {"faults": faults, "data": _data(here), "published": _published(here)},
        produce,
        areas=_AREAS,
        exists=lambda report: _still_there(here, report),
    )


def _inputs(here: Context, stage: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in parameters.items() if name != "as_of"}
    if stage == "flow-nightly":
        live = {f"{item.model}/{item.target}": item.digest for item in here.ledger.pointers()}
        state = {"data": _data(here), "published": _published(here), "fuses": _fuses(here)}
        return {**named, **state, "live": live}
    source = sources.resolve(here, str(named["model"]), named.get("source"))
    policy = here.policy(named.get("target"))
    return {"model": named["model"], "source": source.tree, "policy": policy.digest}


def _data(here: Context) -> dict[str, dict[str, str]]:
    """Return the digest of every delivered batch by source.

    Of a source or batch that cannot be read it is what is wrong: the flow says so, and a flow that
    does not pass is never recorded.
    """
    found: dict[str, dict[str, str]] = {}
    for name in Catalog(here.contracts).names():
        try:
            found[name] = _batches(here, name)
        except CaissonError as err:
            found[name] = {"": str(err)}
    return found


def _batches(here: Context, name: str) -> dict[str, str]:
    contract = Catalog(here.contracts).load(name)
    place = here.workspace.sources
    return {
        batch: _delivery(batches.open_batch(place, contract, batch))
        for batch in batches.list_batches(place, contract.location)
    }


def _delivery(batch: Batch) -> str:
    """Return what identifies a delivery: its data, the moment it is for, and who made it."""
    said = {"moment": clock.to_text(batch.logical_time), "lineage": dict(batch.lineage)}
    return digest.of_json({"data": batch.digest, **said})


def _fuses(here: Context) -> dict[str, str]:
    """Return what every fuse is; a run that met an open one never stands for one that does not."""
    store = here.workspace.objects
    return {info.key: info.etag for info in store.list("fuses/")}


def _published(here: Context) -> dict[str, Digest]:
    """Return the digest of every file that owners published."""
    return {
        path.relative_to(folder).as_posix(): digest.of_file(path)
        for folder in (here.contracts, here.models)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _still_there(here: Context, report: Report) -> bool:
    """Whether all a flow made is there: releases in registry and ledger, bundles, its page."""
    made = report.facts.get("releases", [report.facts])
    known = {record.subject for record in here.ledger.records("candidate")}
    bundles = report.facts.get("bundles", {})
    page = Path(report.measurements.get("page") or report.facts.get("page") or here.workspace.home)
    return (
        all(item["digest"] in known for item in made)
        and all(_pushed(here.workspace.registry(item["repository"]), item) for item in made)
        and all(_frozen(here, name, version) for name, all_ in bundles.items() for version in all_)
        and page.exists()
    )


def _frozen(here: Context, definition: str, version: str) -> bool:
    found = pointer.read(here.workspace.objects, definition, version)
    return here.workspace.objects.head(found.archive) is not None


def _pushed(layout: Path, item: Mapping[str, Any]) -> bool:
    """Whether the registry shows a package whole; if not, the flow runs and pushes it again."""
    try:
        image.verify(LayoutStore(layout), Digest(str(item["digest"])))
    except CaissonError:
        return False
    return True
