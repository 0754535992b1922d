"""``caisson deploy``, ``rollback``, ``status``, ``lineage`` and ``ui``: for those who operate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.base import files
from contracts.base.errors import InputError
from flows.cli import console

if TYPE_CHECKING:
    from tasks.lineage.tree import Node
    from tasks.workspace import Workspace

_NOTHING = "nothing is registered yet: `caisson demo` shows the whole chain"

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Model = Annotated[str, typer.Argument(help="Name of a released model.")]
Target = Annotated[str | None, typer.Option(help="Target; CAISSON_TARGET if not given.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (deploy, rollback, status, lineage, ui, stop):
        app.command()(command)


def deploy(
    model: Model,
    target: Target = None,
    package: Annotated[
        str | None, typer.Option(help="Digest of a release; the newest candidate if not given.")
    ] = None,
    canary_share: Annotated[
        float | None, typer.Option(help="Share for the candidate; the policy's if not given.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Bring a release live through golden cases and canary, or leave the target as it was."""
    from flows.cli import session

    report = session.run(
        "flows.deploy.deploy",
        model=model,
        target=target,
        package=package,
        canary_share=canary_share,
    )
    console.flow(report, as_json=as_json)
    canary = report.facts.get("canary", {})
    if not as_json and canary:
        console.note(f"package {report.facts['package_digest']}")
        console.note(f"canary {canary['outcome']}: {canary.get('reason') or _counted(canary)}")
    if not as_json and report.measurements.get("url"):
        console.note(f"answers at {report.measurements['url']}")
    return console.status(report)


def _counted(canary: Mapping[str, Any]) -> str:
    return f"{canary['answers']} answers of the candidate, {canary['needed']} needed"


def rollback(
    model: Model,
    target: Target = None,
    reason: Annotated[str, typer.Option(help="Why, for the ledger; nothing if not given.")] = "",
    as_json: Json = False,
) -> int:
    """Bring back the release before; needs neither registry, Prefect nor MLflow."""
    from flows import context, person
    from tasks.release import cutover
    from tasks.release import rollback as going_back
    from tasks.release.targets.table import open_target

    here = context.current()
    place = open_target(here.workspace, here.policy(target).target)
    options = going_back.RollbackOptions(reason=reason, by=person.name())
    with files.locked(cutover.lock_path(here.workspace.locks, place.name), wait=False) as free:
        if not free:
            console.note("waiting for a deployment to this target to end or to be stopped")
    report = going_back.rollback(here.workspace, model, place, options)
    console.reports("rollback", [report], as_json=as_json)
    if not as_json:
        console.note(f"live again: {report.facts['package_digest']}")
    return console.status(report)


def status(as_json: Json = False) -> int:
    """Show every model in every target: live, candidate, previous, age, level, health."""
    from flows import context
    from tasks.release import show

    here = context.reading()
    rows = show.status(here.workspace)
    if as_json:
        console.emit([row.to_dict() for row in rows], as_json=True)
        return 0
    if not rows:
        console.emit(None, as_json=False, text=_NOTHING)
        return 0
    columns = [
        "model",
        "target",
        "live",
        "previous",
        "candidate",
        "level",
        "since",
        "health",
        "url",
    ]
    console.table(
        "",
        columns,
        [
            [
                row.model,
                row.target,
                console.shorten(row.live or "-"),
                console.shorten(row.previous or "-"),
                console.shorten(row.candidate or "-"),
                row.level or "-",
                row.since or "-",
                row.health,
                row.url or "-",
            ]
            for row in rows
        ],
    )
    return 0


def lineage(
    subject: Annotated[
        str,
        typer.Argument(
            help="A request id, package digest, feature version, contract, batch digest or commit."
        ),
    ],
    full: Annotated[bool, typer.Option(help="Print digests whole.")] = False,
    as_json: Json = False,
) -> int:
    """Print what something came from and what came of it, with every digest looked up again."""
    from flows import context
    from tasks.lineage import tree

    found = _both_ways(context.reading().workspace, subject)
    text = "\n".join(f"{title}\n{tree.render(node, full=full)}" for title, node in found.items())
    console.emit(
        {title: node.to_dict() for title, node in found.items()}, as_json=as_json, text=text
    )
    return 0


def _both_ways(place: Workspace, subject: str) -> dict[str, Node]:
    """Return what a subject came from and what came of it, as far as each is on record."""
    from tasks.lineage import show

    found: dict[str, Node] = {}
    unknown: InputError | None = None
    for title, look in (("came from", show.why), ("came of it", show.impact)):
        try:
            found[title] = look(place, subject)
        except InputError as err:
            unknown = err
    if not found and unknown is not None:
        raise unknown
    return found


def stop(target: Target = None) -> int:
    """Stop a target's runtime; what is live stays on record and starts again with deploy."""
    from flows import context
    from tasks.release.targets.table import open_target

    here = context.current()
    open_target(here.workspace, here.policy(target).target).stop()
    console.note("stopped")
    return 0


def ui() -> int:
    """Serve Prefect's and MLflow's pages on loopback until interrupted."""
    import signal

    from flows import context, server

    here = context.current()
    with server.pages(here.workspace) as (prefect, mlflow):
        console.emit(
            None,
            as_json=False,
            text=f"Prefect {prefect.url} (sign in with {prefect.auth})\nMLflow  {mlflow}",
        )
        console.note("Press Ctrl-C to end.")
        signal.pause()
    return 0
