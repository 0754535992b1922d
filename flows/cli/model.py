"""``caisson train``, ``gate``, ``release`` and ``nightly``: for model owners and schedules."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli import console

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Model = Annotated[str, typer.Argument(help="Name of a published model.")]
AsOf = Annotated[str | None, typer.Option(help="Logical time; today if not given.")]
Source = Annotated[
    str | None, typer.Option(help="Package source: digest or folder; newest trained if not given.")
]
Target = Annotated[str | None, typer.Option(help="Target; CAISSON_TARGET if not given.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (train, gate, release, nightly):
        app.command()(command)


def train(
    model: Model,
    feature_version: Annotated[
        str | None, typer.Option(help="Bundle to learn from; the manifest's if not given.")
    ] = None,
    holdout_version: Annotated[
        str | None, typer.Option(help="Bundle to be judged on; the manifest's if not given.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Train a published model on one pinned feature version."""
    from flows.cli import session

    report = session.run(
        "flows.train.train",
        model=model,
        feature_version=feature_version,
        holdout_version=holdout_version,
    )
    console.flow(report, as_json=as_json)
    return console.status(report)


def gate(
    model: Model,
    source: Source = None,
    target: Target = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> int:
    """Judge a package source by every stage, without signing or pushing it."""
    from flows.cli import session

    judgement = session.run(
        "flows.gate.gate", model=model, source=source, target=target, as_of=as_of
    )
    report = judgement.to_report()
    console.flow(report, as_json=as_json)
    console.note(f"report: {judgement.page}")
    return console.status(report)


def release(
    model: Model,
    source: Source = None,
    target: Target = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> int:
    """Gate, sign, push by digest and register as candidate; the same release twice is a no-op."""
    from flows.cli import session

    report = session.once(
        "flows.release.release", model=model, source=source, target=target, as_of=as_of
    )
    console.flow(report, as_json=as_json)
    console.note(f"report: {report.measurements['page']}")
    if source is None:
        _say_what_changed(model)
    return console.status(report)


def _say_what_changed(model: str) -> None:
    """Tell who edited published files that the release is of those trained before."""
    from flows import context, sources

    here = context.current()
    changed = sources.changed_since(here, model, sources.resolve(here, model, None))
    if changed:
        console.note(
            f"not in this release, because changed since training: {', '.join(changed)};"
            f" run `caisson train {model}` first to include them"
        )


def nightly(as_of: AsOf = None, target: Target = None, as_json: Json = False) -> int:
    """Validate every source, snapshot features, retrain, register candidates."""
    from flows.cli import session

    report = session.once("flows.nightly.nightly", as_of=as_of, target=target)
    console.flow(report, as_json=as_json)
    return console.status(report)
