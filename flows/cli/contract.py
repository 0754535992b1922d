"""``caisson contract``: for data owners."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli import console

app = typer.Typer(help="Data owners: check, compare and publish contracts.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def lint(
    path: Annotated[Path, typer.Argument(help="The contract file.")], as_json: Json = False
) -> int:
    """Check a contract file: every problem at once, nothing is written."""
    from contracts.catalog import Catalog
    from flows import context
    from tasks.validate import show

    report = show.lint(path, Catalog(context.reading().contracts))
    console.reports("lint", [report], as_json=as_json)
    return console.status(report)


@app.command("list")
def list_(as_json: Json = False) -> int:
    """List the published contracts."""
    from flows import context
    from tasks.validate import show

    console.records("", show.contracts(context.reading().workspace), as_json=as_json)
    return 0


@app.command("show")
def show_(
    name: Annotated[str, typer.Argument(help="owner/source, or owner/source@1.2.0.")],
    as_json: Json = False,
) -> int:
    """Show a published contract: terms, columns, rules, and the state of its fuses."""
    from flows import context
    from tasks.validate import show

    place = context.reading().workspace
    found = {**show.contract(place, name), "fuses": show.fuses(place, name)}
    if as_json:
        console.emit(found, as_json=True)
        return 0
    console.pairs(name, found["summary"])
    for part in ("columns", "rules", "fuses"):
        console.records(part, found[part], as_json=False)
    return 0


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help="A published contract or a file.")],
    new: Annotated[str, typer.Argument(help="A published contract or a file.")],
    as_json: Json = False,
) -> int:
    """Show what changed between two contracts, and which version step that demands."""
    from flows import context
    from tasks.validate import show

    found = show.diff(context.reading().workspace, old, new)
    if as_json:
        console.emit(found, as_json=True)
        return 0
    changes = found.pop("changes", [])
    console.pairs(f"{old} → {new}", found)
    console.records("changes", changes, as_json=False)
    return 0


@app.command("reset-fuse")
def reset_fuse(
    name: Annotated[str, typer.Argument(help="owner/source, or owner/source@1.2.0.")],
    consumer: Annotated[str, typer.Argument(help="Whose fuse, such as nightly.")],
    why: Annotated[str, typer.Option(help="Why it may be tried again; kept on record.")],
) -> int:
    """Let one batch be tried although the fuse of a contract and consumer is open."""
    from flows import context, person
    from tasks.validate import validate as judging

    here = context.current()
    state = judging.reset_fuse(here.workspace, name, consumer, who=person.name(), why=why)
    console.pairs(f"fuse of {name} for {consumer}", state.to_dict())
    return 0


@app.command()
def publish(
    path: Annotated[Path, typer.Argument(help="The contract file.")],
    batch: Annotated[
        str | None, typer.Option(help="A delivered batch that must keep the promise.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Publish a contract, after comparing it with every earlier version; never over another."""
    from flows.cli import session

    report = session.run("flows.publish_contract.publish_contract", path=str(path), batch=batch)
    console.reports("publish-contract", [report], as_json=as_json)
    return console.status(report)


@app.command()
def validate(
    name: Annotated[str, typer.Argument(help="owner/source, or owner/source@1.2.0.")],
    batch: Annotated[str, typer.Argument(help="Name of the delivered batch.")],
    as_of: Annotated[
        str | None, typer.Option(help="Logical time; the batch's own if not given.")
    ] = None,
    consumer: Annotated[str, typer.Option(help="Who loads it; has a fuse of its own.")] = "local",
    as_json: Json = False,
) -> int:
    """Judge one delivered batch and do what its contract says: fuse, quarantine, alert."""
    from flows import context
    from tasks.validate import validate as judging

    here = context.current(as_of)
    moment = here.as_of if as_of else None
    report = judging.validate(here.workspace, name, batch, moment, consumer)
    console.reports("validate", [report], as_json=as_json)
    return console.status(report)
