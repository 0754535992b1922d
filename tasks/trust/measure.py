"""The measuring process of the trust stage: ``python -m tasks.trust.measure request.json``.

It opens the package's graph as the runtime does, treats it as a black box, and writes the two
halves on which another detector may give its opinion. It judges nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contracts.base import files
from contracts.base.errors import CaissonError
from model_packages.runtime import backends
from model_packages.runtime.backends.interface import Session, SessionOptions
from tasks import sample as samples
from tasks.sample import Sample
from tasks.trust import alarms, importance, leakage, sensitivity
from tasks.trust.importance import Predict
from tasks.trust.leakage import LeakageLimits
from tasks.trust.scores import Array

_THREADS = 2
_DRAWS = 10


def measure(
    request: Mapping[str, Any], progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Measure a package and return what was found, as plain data.

    Args:
        request: ``model`` (file), ``sample`` (file), ``halves`` (two files to write) and the
            fields of ``TrustOptions`` in ``options``.
        progress: Hears how many inputs are done.
    """
    options = request["options"]
    session = backends.create("onnx").open(Path(request["model"]), SessionOptions(threads=_THREADS))
    rows = samples.read(Path(request["sample"]))
    predict = black_box(session)
    seed = int(options["seed"])
    ranking = importance.rank(
        predict,
        rows,
        repeats=options["repeats"],
        bootstraps=options["bootstraps"],
        seed=seed,
        progress=progress,
    )
    limits = LeakageLimits(options["leak_share"], options["leak_auc"], options["leak_auc_alone"])
    moved = sensitivity.measure(predict, rows, radius=options["radius"], draws=_DRAWS, seed=seed)
    watched = alarms.watch(rows, splits=options["splits"], seed=seed)
    _write_halves(rows, seed, request["halves"])
    return {
        "rows": len(rows),
        "importance": ranking.to_dict(),
        "leakage": [item.to_dict() for item in leakage.look(rows, ranking, limits, seed)],
        "sensitivity": moved.to_dict(),
        "alarms": watched.to_dict(),
    }


def black_box(session: Session) -> Predict:
    """Return the session's first output as a function of columns; one number a row."""

    def predict(inputs: Mapping[str, Array]) -> Array:
        answer = session.run(inputs)[0]
        return np.asarray(answer, dtype=np.float64).reshape(len(answer), -1)[:, 0]

    return predict


def _write_halves(rows: Sample, seed: int, paths: list[str]) -> None:
    columns = alarms.numbers(rows)
    table = np.stack(list(columns.values()), axis=1) if columns else np.empty((len(rows), 0))
    for path, half in zip(paths, alarms.halves(len(rows), seed), strict=True):
        np.save(path, table[half], allow_pickle=False)


def main(path: str) -> None:
    """Answer one request file."""
    request = files.read_json(Path(path))

    def report(done: int, total: int) -> None:
        line = {"stage": "trust", "done": done, "total": total, "unit": "inputs"}
        os.write(request["progress"], (json.dumps(line) + "\n").encode())

    try:
        answer = measure(request, report)
    except CaissonError as err:
        answer = {"error": err.to_dict()}
    files.write_json(Path(request["answer"]), answer)


if __name__ == "__main__":
    main(sys.argv[1])
