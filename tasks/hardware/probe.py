"""The program of the dynamic stage: opens a model in a process of its own and times it.

Called by ``dynamic.py`` through ``tasks/child.py`` with the path of a JSON request.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.errors import CaissonError
from model_packages.format import cases, settings
from model_packages.format.tensors import TensorSpec
from model_packages.runtime import backends
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Array, Session, SessionOptions

_LEAST_RUNS = 12


def measure(request: dict[str, Any], report: Any) -> dict[str, Any]:
    """Open the model, run every batch size, and return the figures.

    Args:
        request: ``folder`` (the /model tree), ``batch_sizes``, ``seconds`` per batch size and
            ``backend``.
        report: Called with (done, total) after each batch size.
    """
    folder = Path(request["folder"])
    limits = settings.load(folder / "config.yaml")
    started = time.monotonic()
    backend = backends.create(request["backend"])
    if hasattr(backend, "prepare"):
        backend.prepare()  # the library's own memory is not the package's
    before = _status("VmRSS")
    session = backend.open(folder / "model.onnx", SessionOptions(threads=limits.threads))
    opened = time.monotonic()
    row = _inputs(folder, session)
    session.run(_grown(row, 1))
    cold = time.monotonic() - started
    curve = []
    for done, size in enumerate(request["batch_sizes"], start=1):
        curve.append(_point(session, _grown(row, size), size, request["seconds"]))
        report(done, len(request["batch_sizes"]))
    session.close()
    return {
        "cold_start_s": cold,
        "open_s": opened - started,
        "curve": curve,
        "memory_mb": max(0, _status("VmHWM") - before) / 2**20,
        "process_mb": _status("VmHWM") / 2**20,
        "cpu": processor(),
        "threads": limits.threads,
    }


def _inputs(folder: Path, session: Session) -> dict[str, Array]:
    """Return the first golden case's inputs as arrays."""
    case = cases.load(folder / "test_cases")[0]
    given = {tensor.name: tensor for tensor in case.inputs}
    arrays = {}
    for spec in session.inputs:
        tensor = given[spec.name]
        shaped = TensorSpec(spec.name, tensor.datatype, spec.shape, nullable=True)
        arrays[spec.name] = tensors.from_json(shaped, tensor.shape, list(tensor.data))
    return arrays


def _grown(row: dict[str, Array], size: int) -> dict[str, Array]:
    """Repeat the rows until there are ``size``."""
    return {
        name: array.take([index % len(array) for index in range(size)], axis=0)
        for name, array in row.items()
    }


def _point(session: Session, inputs: dict[str, Array], size: int, seconds: float) -> dict[str, Any]:
    for _ in range(3):
        session.run(inputs)
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < _LEAST_RUNS or time.monotonic() < end:
        start = time.perf_counter()
        session.run(inputs)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    return {
        "batch": size,
        "runs": len(times),
        "p50_ms": _rank(times, 0.50),
        "p95_ms": _rank(times, 0.95),
        "p99_ms": _rank(times, 0.99),
        "rows_per_s": round(size * len(times) / (sum(times) / 1000), 1),
    }


def _rank(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def _status(name: str) -> int:
    """Return a memory figure of this process in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def processor() -> str:
    """Return the name of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return "unknown"


def main() -> None:
    """Answer the request named on the command line."""
    request = files.read_json(Path(sys.argv[1]))

    def report(done: int, total: int) -> None:
        line = {"stage": "hardware", "done": done, "total": total, "unit": "batch sizes"}
        os.write(request["progress"], json.dumps(line).encode() + b"\n")

    try:
        answer = measure(request, report)
    except CaissonError as err:
        answer = {"error": err.to_dict()}
    files.write_json(Path(request["answer"]), answer)


if __name__ == "__main__":
    main()
