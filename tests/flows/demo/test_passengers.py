"""Rows of a bundle as requests: each is sent, every answer and every error is counted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.base import digest
from contracts.base.errors import Overloaded
from flows import sources
from flows.context import Context
from flows.demo import passengers
from flows.demo.passengers import Answers, Passengers
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.serve.client import Call, Prediction
from tasks.snapshot.snapshot import snapshot
from tasks.snapshot.window import window
from tests.fakes import packages, world
from tests.fakes.target import FakeTarget

PACKAGE = digest.of_bytes(b"package")


class Client:
    """Answers with the length of a trip; some requests are too many for it."""

    made: list[Client] = []

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.closed = False
        self.refuse: Callable[[int], bool] = lambda number: False
        self._lock = threading.Lock()
        Client.made.append(self)

    def infer(self, model: str, call: Call) -> Prediction:
        with self._lock:
            self.asked.append(dict(call.inputs))
            number = len(self.asked)
        assert model == "tiny"
        if self.refuse(number):
            raise Overloaded("come back later")
        score = np.asarray(call.inputs["length"], dtype=np.float32)
        return Prediction({"probability": score}, f"request-{number}", PACKAGE, "1")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def riders(here: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Passengers:
    """The trips of the newest day, for a model that takes where and how long."""
    part = window(here.workspace, world.DEFINITION, here.as_of).new
    version = snapshot(here.workspace, world.DEFINITION, part.batches, part.as_of).facts[
        "feature_version"
    ]
    source = sources.resolve(here, "tiny", str(packages.write_source(tmp_path / "source")))
    specs = (TensorSpec("place", "BYTES", (-1,)), TensorSpec("length", "FP32", (-1,)))
    training = replace(source.training, definition=world.DEFINITION, label="late")
    manifest = replace(source.manifest, inputs=specs, training=training)
    monkeypatch.setattr(passengers, "InferenceClient", Client)
    Client.made.clear()
    target = FakeTarget(tmp_path / "target")
    target.ensure()
    return Passengers(here, replace(source, manifest=manifest), version, target)


def test_every_row_is_a_request_of_its_own(riders: Passengers) -> None:
    """One row a request with the model's inputs; after the last row the first comes again."""
    riders.send(70)
    (client,) = Client.made
    assert client.url == "http://127.0.0.1:1"
    assert len(client.asked) == 70
    assert all(len(item["length"]) == 1 for item in client.asked)
    assert {name for item in client.asked for name in item} == {"place", "length"}
    assert len(riders.answers.scores) == 60
    assert riders.answers.packages == {PACKAGE: 70}
    assert riders.answers.last is not None
    assert set(riders.answers.percentiles()) == {"p50", "p95", "p99"}


def test_answers_are_compared_with_what_happened(riders: Passengers) -> None:
    """Accuracy is over the rows that were answered."""
    riders.send(60)
    rows, area = riders.accuracy()
    assert rows == 60
    assert area == pytest.approx(0.5)


def test_errors_are_counted_by_kind(riders: Passengers) -> None:
    """A request without an answer is no answer, and does not stop the others."""
    riders.pump()
    Client.made[0].refuse = lambda number: number % 2 == 0
    riders.send(10)
    assert riders.answers.errors == {"overloaded": 5}
    assert len(riders.answers.seconds) == 105


def test_connections_are_closed(riders: Passengers) -> None:
    """Closing twice does no harm; sending again connects again."""
    riders.send(1)
    riders.close()
    riders.close()
    assert Client.made[0].closed
    riders.send(1)
    assert len(Client.made) == 2


def test_without_answers_there_are_no_percentiles() -> None:
    """Nothing is made up."""
    assert Answers().percentiles() == {}
