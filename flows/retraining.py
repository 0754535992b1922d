"""Retrains what asks for it in a nightly run: train, gate, register as candidate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base.errors import CaissonError, ManifestInvalid
from contracts.base.report import skipped
from contracts.features import declaration
from flows.context import Context
from flows.release import release
from flows.train import train
from flows.waves import Outcome, attempt, tried
from model_packages.format import manifest as manifests
from model_packages.format.manifest import Training


def published(here: Context) -> list[str]:
    """Return the names of all published models, sorted."""
    return sorted(path.parent.name for path in here.models.glob("*/manifest.json"))


async def retrain(
    here: Context,
    model: str,
    bundles: Mapping[str, tuple[str, str, str]],
    target: str | None,
) -> list[Outcome]:
    """Train a model on the bundles of the night and register what passes the gate.

    Returns:
        How training and release ended; nothing if the model does not ask to be retrained nightly.
        What kept it from being trained is an outcome too: it is never raised.
    """
    training = await tried(asyncio.to_thread(_nightly, here, model))
    if training is None:
        return []
    if isinstance(training, CaissonError):
        return [Outcome("train", None, training, about=model)]
    if training.definition not in bundles:
        reason = f"the bundles of {training.definition} were not made tonight"
        return [Outcome("train", skipped("train", model, reason), None)]
    learned, judged, _ = bundles[training.definition]
    trained = await attempt("train", train(model, learned, judged, _as_of(here)), model)
    if trained.report is None or trained.blocks(["train"]):
        return [trained]
    tree = str(trained.report.facts["source_tree"])
    return [trained, await attempt("release", release(model, tree, target, _as_of(here)), model)]


def released(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return what was registered, for the report of the night."""
    names = ("model", "source", "repository", "digest", "set_digest")
    return [
        {name: outcome.report.facts[name] for name in names}
        for outcome in outcomes
        if outcome.stage == "release" and outcome.report and outcome.verdict == "pass"
    ]


def _nightly(here: Context, model: str) -> Training | None:
    """Return what a model says about its training if it asks for it nightly.

    Raises:
        ManifestInvalid: If its manifest is malformed, or names a definition nobody published.
    """
    path = here.models / model / "manifest.json"
    training = manifests.load(path).training
    if training is None or training.retrain != "nightly":
        return None
    known = declaration.names(here.contracts)
    if training.definition not in known:
        raise ManifestInvalid(
            "model asks to be retrained on a feature definition that is not published",
            expected=f"one of {', '.join(known) or 'none, no definition is published'}",
            found=training.definition,
            location=str(path),
            remedy="Publish the definition, or correct training.definition.",
        )
    return training


def _as_of(here: Context) -> str:
    return here.as_of.isoformat()
