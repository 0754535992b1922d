"""Which models a nightly run retrains, and how: train, gate, register as candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flows.context import Context
from flows.release import release
from flows.train import train
from flows.waves import Outcome, attempt
from model_packages.format import manifest as manifests


def due(here: Context) -> list[str]:
    """Return the published models that ask to be retrained nightly, sorted."""
    found = []
    for path in sorted(here.models.glob("*/manifest.json")):
        training = manifests.load(path).training
        if training is not None and training.retrain == "nightly":
            found.append(path.parent.name)
    return found


async def retrain(
    here: Context,
    model: str,
    bundles: Mapping[str, tuple[str, str, str]],
    target: str | None,
) -> list[Outcome]:
    """Train a model on the bundles of the night and register what passes the gate.

    Returns:
        How training and release ended; nothing if its bundles were not made.
    """
    training = manifests.load(here.models / model / "manifest.json").training
    if training is None or training.definition not in bundles:
        return []
    learned, judged, _ = bundles[training.definition]
    trained = await attempt("train", train(model, learned, judged, _as_of(here)))
    if trained.report is None or trained.blocks(["train"]):
        return [trained]
    tree = str(trained.report.facts["source_tree"])
    return [trained, await attempt("release", release(model, tree, target, _as_of(here)))]


def _as_of(here: Context) -> str:
    return here.as_of.isoformat()


def released(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return what was registered, for the report of the night."""
    names = ("model", "source", "repository", "digest", "set_digest")
    return [
        {name: outcome.report.facts[name] for name in names}
        for outcome in outcomes
        if outcome.stage == "release" and outcome.report and outcome.verdict == "pass"
    ]
