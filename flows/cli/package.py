"""``caisson package``: for model owners who want to look before they release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli import console

app = typer.Typer(
    help="Model packages: check a source, build, inspect and verify.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Model = Annotated[str, typer.Argument(help="Name of the model.")]
Package = Annotated[
    str | None, typer.Option(help="Digest of a release; the newest candidate if not given.")
]


@app.command()
def build(
    model: Model,
    source: Annotated[
        str | None, typer.Option(help="Package source: digest or folder; newest trained if absent.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check a package source and build it into an OCI layout; nothing is signed or pushed."""
    from flows import context, sources
    from tasks.package.package import package

    here = context.current()
    found = sources.resolve(here, model, source)
    report = package(here.workspace, found.tree, model)
    console.reports("package", [report], as_json=as_json)
    return console.status(report)


@app.command()
def inspect(model: Model, package: Package = None, as_json: Json = False) -> int:
    """Show what a released package holds: identities, files, graph, manifest."""
    from flows import candidates, context
    from model_packages.oci import unpack

    here = context.current()
    ref = candidates.candidate(here, model, package)
    cache = here.workspace.objects_path / "unpacked"
    tree = unpack.open_package(here.workspace.registry(model), ref.digest, cache)
    facts = {**ref.to_dict(), "labels": dict(tree.labels), "graph": dict(tree.graph)}
    if as_json:
        console.emit({**facts, "manifest": tree.manifest.to_dict()}, as_json=True)
    else:
        console.pairs(f"{model} {tree.manifest.version}", {**facts, **tree.manifest.to_dict()})
    return 0


@app.command()
def verify(
    model: Model,
    target: Annotated[
        str | None, typer.Option(help="Target whose policy counts; CAISSON_TARGET if not given.")
    ] = None,
    package: Package = None,
    as_json: Json = False,
) -> int:
    """Verify every byte and the signature of a released package against a target's policy today."""
    from flows import candidates, context
    from tasks.release import admission

    here = context.current()
    ref = candidates.candidate(here, model, package)
    admitted = admission.admit(here.workspace, here.ledger, ref, here.policy(target))
    facts = {
        **ref.to_dict(),
        "signed by": [signer.to_dict() for signer in admitted.signers],
        "statement": admitted.statement,
    }
    if as_json:
        console.emit(facts, as_json=True)
    else:
        console.pairs(f"{model}: verified", facts)
    return 0


@app.command()
def export(
    model: Model,
    folder: Annotated[Path, typer.Argument(help="New folder for the /model tree.")],
    package: Package = None,
) -> int:
    """Write the files of a released package into a new folder, every byte verified."""
    from flows import candidates, context
    from model_packages.oci import unpack
    from model_packages.oci.store import LayoutStore

    here = context.current()
    ref = candidates.candidate(here, model, package)
    unpack.unpack(LayoutStore(here.workspace.registry(model)), ref.digest, folder.absolute())
    console.note(f"{ref.digest} is in {folder}")
    return 0
