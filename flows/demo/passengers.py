"""December's flights as requests: who asks the deployed model, over HTTP, and what came back."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from contracts.base.errors import RuntimeFault
from contracts.features import reader
from flows.context import Context
from flows.sources import Source
from model_packages.runtime.serve.client import Call, InferenceClient, Prediction
from tasks import sample
from tasks.release.targets.interface import Target
from tasks.sample import Sample
from tasks.trust.scores import roc_auc

_CONNECTIONS = 8
_AT_ONCE = 100


@dataclass
class Answers:
    """What came back.

    Attributes:
        seconds: Latency of each answer, as the client saw it.
        packages: Answers by package digest.
        scores: What was answered, by row of the sample.
        errors: Requests that were not answered, by kind of error.
        last: The newest answer.
    """

    seconds: list[float] = field(default_factory=list)
    packages: Counter[str] = field(default_factory=Counter)
    scores: dict[int, float] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    last: Prediction | None = None

    def percentiles(self) -> dict[str, float]:
        """Return latency percentiles in milliseconds."""
        if not self.seconds:
            return {}
        values = np.percentile(np.array(self.seconds) * 1000, [50, 95, 99])
        return {
            name: round(float(value), 3)
            for name, value in zip(("p50", "p95", "p99"), values, strict=True)
        }


class Passengers:
    """Sends rows of a bundle to a target, each as a request of its own."""

    def __init__(self, here: Context, source: Source, version: str, target: Target) -> None:
        """Read the rows once."""
        bundle = reader.open_version(here.workspace.objects, source.training.definition, version)
        specs = source.manifest.inputs
        self._rows: Sample = sample.draw(
            bundle.table(), specs, source.training.label, rows=5000, seed=0
        )
        self._model = source.manifest.name
        self._target = target
        self._next: Iterator[int] = itertools.cycle(range(len(self._rows)))
        self._client: InferenceClient | None = None
        self.answers = Answers()

    def pump(self) -> None:
        """Send the next hundred requests; for the time of a canary."""
        self.send(_AT_ONCE)

    def send(self, count: int) -> None:
        """Send the next ``count`` requests over several connections and note every answer."""
        client = self._client or InferenceClient(self._target.state().url)
        self._client = client
        rows = list(itertools.islice(self._next, count))
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(lambda row: self._ask(client, row), rows))

    def accuracy(self) -> tuple[int, float]:
        """Return how many rows were answered and the ROC AUC of the answers."""
        rows = sorted(self.answers.scores)
        label = self._rows.label[rows]
        scores = np.array([self.answers.scores[row] for row in rows])
        return len(rows), roc_auc(label, scores)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, client: InferenceClient, row: int) -> None:
        inputs = {name: values[row : row + 1] for name, values in self._rows.inputs.items()}
        start = time.monotonic()
        try:
            answer = client.infer(self._model, Call(inputs))
        except RuntimeFault as err:
            self.answers.errors[err.code] += 1
            return
        self.answers.seconds.append(time.monotonic() - start)
        self.answers.packages[answer.package_digest] += 1
        self.answers.scores[row] = float(answer.outputs["probability"].ravel()[0])
        self.answers.last = answer
