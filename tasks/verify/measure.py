"""The measuring process of verification: ``python -m tasks.verify.measure request.json``.

It opens the package's graph with ONNX Runtime exactly as the runtime does, answers the golden
cases, compares with the reference if there is one, and takes the load. It judges nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contracts.base import files
from contracts.base.errors import CaissonError
from model_packages.format import cases, settings
from model_packages.format import manifest as manifests
from model_packages.format.manifest import Manifest
from model_packages.runtime import backends
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array, BackendFailed, Session, SessionOptions
from tasks import sample
from tasks.sample import Sample
from tasks.verify import equivalence, load, reference

_ALONE = 32  # rows that are also asked one by one, because a batch must not change an answer


def measure(request: Mapping[str, Any]) -> dict[str, Any]:
    """Measure a package and return what was found, as plain data.

    Args:
        request: ``package`` (folder), ``sample`` (file), ``reference`` (file or None), and the
            fields of ``VerifyOptions`` in ``options``.
    """
    folder, options = Path(request["package"]), request["options"]
    manifest = manifests.load(folder / "manifest.json")
    limits = settings.load(folder / "config.yaml")
    begin = time.perf_counter()
    engine = SessionOptions(threads=limits.threads)
    session = backends.create("onnx").open(folder / "model.onnx", engine)
    opened = time.perf_counter() - begin
    rows = sample.read(Path(request["sample"]))
    answer: dict[str, Any] = {
        "cold_start_s": round(opened, 4),
        "golden": _golden(session, manifest, folder),
        "equivalence": None,
        "load": None,
    }
    if request["reference"]:
        answer["equivalence"] = _equivalence(
            session, rows, Path(request["reference"]), limits.max_batch_size
        )
    if options["load_s"] > 0:
        answer["load"] = _load(session, rows, options)
    return answer


def _golden(session: Session, manifest: Manifest, folder: Path) -> list[dict[str, Any]]:
    specs = {spec.name: spec for spec in manifest.inputs}
    found = []
    for case in cases.load(folder / "test_cases"):
        feeds = {
            tensor.name: tensors.from_json(specs[tensor.name], tensor.shape, list(tensor.data))
            for tensor in case.inputs
        }
        answers = {name: values.ravel().tolist() for name, values in _ask(session, feeds).items()}
        found.append(
            {"case": case.name, "rows": case.rows, "problems": cases.compare(case, answers)}
        )
    return found


def _equivalence(session: Session, rows: Sample, path: Path, batch: int) -> list[dict[str, Any]]:
    model = reference.load(path)
    parts = [_in_batches(session, rows, batch)]
    alone = rows.take(np.arange(min(_ALONE, len(rows))))
    parts.append(_in_batches(session, alone, 1))
    engine = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    asked = {
        name: np.concatenate([values, alone.inputs[name]]) for name, values in rows.inputs.items()
    }
    single, double = model.run(asked, double=False), model.run(asked, double=True)
    return [item.to_dict() for item in equivalence.compare(engine, single, double)]


def _in_batches(session: Session, rows: Sample, size: int) -> dict[str, Array]:
    parts = [
        _ask(session, rows.take(np.arange(start, min(start + size, len(rows)))).inputs)
        for start in range(0, len(rows), size)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _load(session: Session, rows: Sample, options: Mapping[str, Any]) -> dict[str, Any]:
    singles = [rows.take(np.array([index])).inputs for index in range(len(rows))]

    def ask(number: int) -> bool:
        try:
            session.run(singles[number % len(singles)])
        except BackendFailed:
            return False
        return True

    for number in range(_ALONE):
        ask(number)
    moments = load.arrivals(options["arrivals_per_s"], options["load_s"], options["seed"])
    return load.run(ask, moments, now=time.perf_counter, wait=time.sleep).to_dict()


def _ask(session: Session, feeds: Mapping[str, Array]) -> dict[str, Array]:
    names = [spec.name for spec in session.outputs]
    return dict(zip(names, session.run(feeds), strict=True))


def main(path: str) -> None:
    """Answer one request file."""
    request = files.read_json(Path(path))
    try:
        answer = measure(request)
    except CaissonError as err:
        answer = {"error": err.to_dict()}
    files.write_json(Path(request["answer"]), answer)


if __name__ == "__main__":
    main(sys.argv[1])
