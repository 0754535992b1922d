"""``caisson features``: versions of feature bundles."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli import console

app = typer.Typer(help="Feature bundles: list and inspect versions.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command("list")
def list_(as_json: Json = False) -> int:
    """List the published feature versions."""
    from flows import context
    from tasks.snapshot import show

    rows = show.versions(context.reading().workspace)
    if as_json:
        console.emit(rows, as_json=True)
    else:
        columns = ["definition", "version", "as of", "rows", "root"]
        console.table(
            "",
            columns,
            [
                [
                    row["definition"],
                    row["version"],
                    row["as_of"],
                    row["rows"],
                    console.shorten(row["root"]),
                ]
                for row in rows
            ],
        )
    return 0


@app.command("show")
def show_(
    definition: Annotated[str, typer.Argument(help="Such as nyc/flights/arrival-delay.")],
    version: Annotated[str, typer.Argument(help="Such as 20131101-0123456789ab.")],
    as_json: Json = False,
) -> int:
    """Show what one version holds and what it was made from."""
    from flows import context
    from tasks.snapshot import show

    found = show.version(context.reading().workspace, definition, version)
    if as_json:
        console.emit(found, as_json=True)
    else:
        console.pairs(f"{definition} {version}", found)
    return 0


@app.command()
def snapshot(
    definition: Annotated[str, typer.Argument(help="Such as nyc/flights/arrival-delay.")],
    as_of: Annotated[str | None, typer.Option(help="Logical time; today if not given.")] = None,
    as_json: Json = False,
) -> int:
    """Freeze the training, hold-out and new bundle of a definition, as nightly does."""
    from flows import context
    from tasks.snapshot import snapshot as freezing
    from tasks.snapshot.window import window

    here = context.current(as_of)
    chosen = window(here.workspace, definition, here.as_of)
    reports = [
        freezing.snapshot(here.workspace, definition, part.batches, part.as_of)
        for part in (chosen.training, chosen.holdout, chosen.new)
    ]
    console.reports("snapshot", reports, as_json=as_json)
    return max(console.status(report) for report in reports)
