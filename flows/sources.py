"""Which package source a flow is about: one just trained, the newest trained, or a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest
from contracts.base.digest import Digest, of_file
from contracts.base.errors import ManifestInvalid, RefusedError
from contracts.base.report import Report
from contracts.objects import content
from flows.context import Context
from model_packages.format import manifest as manifests
from model_packages.format.manifest import Manifest, Training


@dataclass(frozen=True)
class Source:
    """A package source.

    Attributes:
        tree: Digest of its files in the object store.
        manifest: Its manifest.
        reference: Digest of the float model it was exported from; None if it has none.
    """

    tree: Digest
    manifest: Manifest
    reference: Digest | None

    @property
    def training(self) -> Training:
        """What it was trained on.

        Raises:
            ManifestInvalid: If it names no feature version: what it learned cannot be traced.
        """
        training = self.manifest.training
        if training is None or not training.feature_version or not training.holdout_version:
            raise ManifestInvalid(
                "package names no feature version",
                expected="training.feature_version and training.holdout_version",
                found="none",
                location=f"{self.manifest.name}/manifest.json",
                remedy="Train it with `caisson train`, which writes both.",
            )
        return training


def training_of(
    here: Context,
    model: str,
    feature_version: str | None = None,
    holdout_version: str | None = None,
) -> Training:
    """Return what a published model says about its training, on the versions given or its own.

    Raises:
        InputError: If the model is unknown or its manifest malformed.
        ManifestInvalid: If neither the caller nor the manifest names the versions.
    """
    manifest = manifests.load(here.models / model / "manifest.json")
    said = manifest.training
    if said is None:
        raise ManifestInvalid("model is not trained here", location=f"{model}/manifest.json")
    named = replace(
        said,
        feature_version=feature_version or said.feature_version,
        holdout_version=holdout_version or said.holdout_version,
    )
    return Source(Digest(""), replace(manifest, training=named), None).training


def remember(here: Context, trained: Report) -> None:
    """Write a finished training into the ledger, once for the same result."""
    facts = trained.facts
    stored = content.put_bytes(here.workspace.objects, canonical.dumps(_lasting(trained)))
    body = {**{name: facts[name] for name in _REMEMBERED}, "report": stored}
    earlier = here.ledger.records("trained", str(facts["model"]))
    if not earlier or dict(earlier[-1].body) != body:
        here.ledger.append("trained", str(facts["model"]), body)


def _lasting(report: Report) -> dict[str, Any]:
    """Return a report without what varies from run to run."""
    return {**report.to_dict(), "measurements": {}}


def resolve(here: Context, model: str, source: str | None) -> Source:
    """Return a package source.

    Args:
        here: The run's context.
        model: Name of the model.
        source: A digest in the object store, a folder, or None for the newest trained.

    Raises:
        InputError: If there is no such source or it is malformed.
        RefusedError: If nothing was trained yet.
    """
    records = here.ledger.records("trained", model)
    if source is None:
        if not records:
            raise RefusedError(
                f"{model} was never trained here",
                location=str(here.workspace.home),
                remedy=f"Run `caisson train {model}` first, or name a folder with --source.",
            )
        tree = Digest(str(records[-1].body["source_tree"]))
    elif source.startswith("sha256:"):
        tree = digest.parse(source, where="source")
    else:
        tree = content.put_tree(here.workspace.objects, Path(source))
    manifest = _manifest(here, tree)
    if manifest.name != model:
        raise ManifestInvalid(
            "package source is of another model",
            expected=model,
            found=manifest.name,
            location=source or tree,
        )
    return Source(tree, manifest, _reference(here, tree, manifest))


def changed_since(here: Context, model: str, source: Source) -> list[str]:
    """Return the published files that differ from those a source was trained with, sorted.

    What training writes anew (manifest, answers of test cases, model card) does not count.
    """
    stored = {item.path: item for item in content.read_tree(here.workspace.objects, source.tree)}
    folder = here.models / model
    return [
        name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
        for name in [path.relative_to(folder).as_posix()]
        if name not in _WRITTEN and (name not in stored or stored[name].sha256 != of_file(path))
    ]


_WRITTEN = ("manifest.json", "docs/model_card.md")
_REMEMBERED = ("source_tree", "reference_digest", "feature_version", "holdout_version")


def _manifest(here: Context, tree: Digest) -> Manifest:
    for entry in content.read_tree(here.workspace.objects, tree):
        if entry.path == "manifest.json":
            data = content.get_bytes(here.workspace.objects, entry.sha256, limit=2**20)
            return manifests.parse(data, where=f"{tree}/manifest.json")
    raise ManifestInvalid("package source has no manifest.json", location=tree)


def _reference(here: Context, tree: Digest, manifest: Manifest) -> Digest | None:
    """Return the reference of the newest training of the same versions, whatever the graph is.

    A package whose weights were changed after training is then compared with what was trained.
    """
    training = manifest.training
    if training is None:
        return None
    wanted = (training.feature_version, training.holdout_version)
    for record in reversed(here.ledger.records("trained", manifest.name)):
        body = record.body
        if tree == body["source_tree"] or wanted == (
            body["feature_version"],
            body["holdout_version"],
        ):
            found = body["reference_digest"]
            return Digest(str(found)) if found else None
    return None
