"""``caisson demo``: for everybody's first minute."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli import console


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(demo)


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Let the target go on; stop it with `caisson stop`.")
    ] = False,
    faults: Annotated[
        bool, typer.Option(help="Plant a fault for every stage and show who refuses.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> int:
    """Take a real model on real data through every stage, then plant a fault for each."""
    from flows import context
    from flows.demo import run

    with console.progress(quiet=as_json) as reporter, context.watched(reporter):
        report = run.run(run.DemoOptions(keep=keep, faults=faults, quiet=as_json))
    if as_json:
        console.emit(report.to_dict(), as_json=True)
        return 0
    columns = ["stage", "verdict", "seconds", "result", "look further"]
    rows = [
        [row["name"], row["verdict"], f"{row['seconds']:.1f}", row["note"], row["look"]]
        for row in report.facts["table"]
    ]
    console.table("", columns, rows)
    level = report.facts["level"]
    console.note(
        f"level     claimed {level['claimed_level']}, achieved {level['achieved_level']};"
        f" {level['next_level']} lacks: {', '.join(level['lacking'])}"
    )
    console.note(f"report    file://{report.facts['page']}")
    console.note(f"lineage   caisson lineage {report.facts['request_id']}")
    console.note(
        f"answers   {report.measurements['url']}"
        + ("" if keep else " (ends with the demo; --keep lets it live)")
    )
    return 0
