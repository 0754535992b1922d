"""Which models a night retrains; what keeps one from it never stops another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from contracts.base.errors import InputError, ManifestInvalid
from contracts.base.report import Report
from flows import retraining
from flows.context import Context
from flows.waves import Outcome
from tests.fakes import calls, world

BUNDLES = {world.DEFINITION: ("learned", "judged", "new")}


class Flows:
    """Training and release without work."""

    def __init__(self, trained: Report | Exception, released: Report | Exception) -> None:
        self.said: Mapping[str, Report | Exception] = {"train": trained, "release": released}
        self.called: list[tuple[object, ...]] = []

    async def train(self, *arguments: object) -> Report:
        return self._tell("train", arguments)

    async def release(self, *arguments: object) -> Report:
        return self._tell("release", arguments)

    def _tell(self, flow: str, arguments: tuple[object, ...]) -> Report:
        self.called.append((flow, *arguments))
        said = self.said[flow]
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> Flows:
    facts = {**calls.REF.to_dict(), "model": world.MODEL, "source": "tree"}
    fake = Flows(world.report("train", source_tree="tree"), world.report("release", **facts))
    monkeypatch.setattr(retraining, "train", fake.train)
    monkeypatch.setattr(retraining, "release", fake.release)
    return fake


def retrain(here: Context, model: str = world.MODEL) -> list[Outcome]:
    return asyncio.run(retraining.retrain(here, model, BUNDLES, "local"))


def test_a_model_is_trained_on_tonights_bundles_and_released(here: Context, flows: Flows) -> None:
    """Training gets the night's versions, the release what was trained, both the night's moment."""
    outcomes = retrain(here)
    assert [(item.stage, item.verdict) for item in outcomes] == [
        ("train", "pass"),
        ("release", "pass"),
    ]
    moment = here.as_of.isoformat()
    assert flows.called == [
        ("train", world.MODEL, "learned", "judged", moment),
        ("release", world.MODEL, "tree", "local", moment),
    ]
    assert retraining.released(outcomes) == [
        {"model": world.MODEL, "source": "tree", **calls.REF.to_dict()}
    ]


@pytest.mark.parametrize("said", [Report("train", "s", "fail"), InputError("no such bundle")])
def test_a_training_that_failed_is_not_released(
    here: Context, flows: Flows, said: Report | Exception
) -> None:
    """What training said or raised is the outcome; nothing is released."""
    flows.said = {**flows.said, "train": said}
    (outcome,) = retrain(here)
    assert (outcome.stage, outcome.blocks([])) == ("train", True)
    assert retraining.released([outcome]) == []


def test_a_refused_release_is_an_outcome(here: Context, flows: Flows) -> None:
    """The gate's refusal does not leave the night without a report."""
    flows.said = {**flows.said, "release": InputError("refused")}
    outcomes = retrain(here)
    assert [item.verdict for item in outcomes] == ["pass", "error"]
    assert outcomes[1].subject == world.MODEL
    assert retraining.released(outcomes) == []


def test_only_who_asks_is_retrained(here: Context, flows: Flows) -> None:
    """A model that is trained by hand is left alone."""
    world.publish_model(here, "by-hand", retrain="manual")
    assert retraining.published(here) == ["by-hand", world.MODEL]
    assert retrain(here, "by-hand") == []
    assert flows.called == []


def test_a_malformed_manifest_is_an_outcome(here: Context, flows: Flows) -> None:
    """It names the model and what is wrong, and raises nothing."""
    (here.models / "broken").mkdir()
    (here.models / "broken" / "manifest.json").write_text("{")
    assert retraining.published(here) == ["broken", world.MODEL]
    (outcome,) = retrain(here, "broken")
    assert isinstance(outcome.error, InputError)
    assert (outcome.verdict, outcome.subject) == ("error", "broken")
    assert flows.called == []


def test_an_unknown_definition_is_an_error(here: Context, flows: Flows) -> None:
    """A model that can never be retrained as it asks is not passed over in silence."""
    world.publish_model(here, "lost", definition="small/trips/unknown")
    (outcome,) = retrain(here, "lost")
    assert isinstance(outcome.error, ManifestInvalid)
    assert world.DEFINITION in str(outcome.error)


def test_without_bundles_a_model_is_skipped_with_the_reason(here: Context, flows: Flows) -> None:
    """What its data lacked is said once, where it failed; here stands why nothing was trained."""
    (outcome,) = asyncio.run(retraining.retrain(here, world.MODEL, {}, None))
    assert outcome.verdict == "skip"
    assert outcome.report is not None
    assert "were not made tonight" in outcome.report.reason
    assert flows.called == []
