"""Which flows need not run again, decided from recorded digests before any server starts.

A finished flow is recorded like a stage: by the digests of all it reads and of the code. It is
recalled only while everything it made is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contracts.base import clock, digest
from contracts.base.digest import Digest
from contracts.base.report import Report
from contracts.catalog import Catalog
from contracts.sources import files as batches
from flows import sources
from flows.context import Context
from model_packages.oci.store import LayoutStore
from tasks import reuse

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
    stage = f"flow-{flow.rpartition('.')[2].replace('_', '-')}"
    inputs = {**_inputs(here, stage, parameters), "as_of": clock.to_text(here.as_of)}
    return reuse.once(
        here.workspace,
        stage,
        inputs,
        produce,
        areas=_AREAS,
        exists=lambda report: _still_there(here, report),
    )


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
        return {**named, "data": _data(here), "published": _published(here)}
    source = sources.resolve(here, str(named["model"]), named.get("source"))
    policy = here.policy(named.get("target"))
    return {"model": named["model"], "source": source.tree, "policy": policy.digest}


def _data(here: Context) -> dict[str, dict[str, Digest]]:
    """Return the digest of every delivered batch by source."""
    catalog = Catalog(here.contracts)
    found: dict[str, dict[str, Digest]] = {}
    for name in catalog.names():
        contract = catalog.load(name)
        listed = batches.list_batches(here.workspace.sources, contract.location)
        found[name] = {
            batch: batches.open_batch(here.workspace.sources, contract, batch).digest
            for batch in listed
        }
    return found


def _published(here: Context) -> dict[str, Digest]:
    """Return the digest of every file that owners published."""
    return {
        path.relative_to(folder).as_posix(): digest.of_file(path)
        for folder in (here.contracts, here.models)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _still_there(here: Context, report: Report) -> bool:
    """Whether every release a flow registered is still in the registry and the ledger."""
    made = report.facts.get("releases", [report.facts])
    known = {record.subject for record in here.ledger.records("candidate")}
    return all(
        item["digest"] in known and _pushed(here.workspace.registry(item["repository"]), item)
        for item in made
    )


def _pushed(layout: Path, item: Mapping[str, Any]) -> bool:
    return layout.is_dir() and LayoutStore(layout).holds(Digest(str(item["digest"])))
