"""Loading: each of the six stages fails by its own name, with cause and remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.base import digest
from contracts.base.clock import SystemClock
from contracts.base.errors import LoadFailed
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.backends.interface import Backend
from model_packages.runtime.backends.onnx import OnnxBackend
from model_packages.runtime.load.model import STAGES, LoadedModel, PackageSource
from model_packages.runtime.load.stages import load
from tests.fakes import packages, serving
from tests.fakes.serving import Sums

_PLENTY = 2**40
_PLAIN = Sums()


def load_it(
    source: PackageSource, backend: Backend | None = None, *, free: int = _PLENTY
) -> LoadedModel:
    return load(source, backend or FakeBackend(), SystemClock(), free=lambda: free)


def test_a_real_package_passes_all_six_stages(tmp_path: Path) -> None:
    """Each stage leaves its seconds and its figures."""
    source = serving.source_of(packages.write_source(tmp_path / "model"))
    seen: list[str] = []
    model = load(source, OnnxBackend(), SystemClock(), watch=seen.append)
    assert tuple(seen) == STAGES
    assert tuple(record.stage for record in model.records) == STAGES
    assert all(record.seconds > 0 for record in model.records)
    assert model.records[0].figures["cases"] == 2
    assert model.records[3].figures["backend"] == "onnx"
    assert model.platform == "onnxruntime_onnx"
    assert (model.spec.name, model.spec.version) == ("tiny", "1.0.0")
    assert model.session.facts["threads"] == 1
    model.session.close()


@dataclass(frozen=True)
class Spoiled:
    """One way in which a package cannot be loaded.

    Attributes:
        stage: The stage that must refuse it.
        message: What the error must say.
        sums: The package.
        spoil: What is done to its folder after it was built.
        backend: What opens it.
        free: Bytes of memory that are left.
    """

    stage: str
    message: str
    sums: Sums = _PLAIN
    spoil: Callable[[Path], Any] = lambda folder: None
    backend: Callable[[], Backend] = FakeBackend
    free: int = _PLENTY


def _session(**fields: Any) -> Callable[[], Backend]:
    return lambda: FakeBackend([FakeSession(**fields)])


def _fault(inputs: Any) -> None:
    raise ValueError(f"bad {sorted(inputs)}")


_X = TensorSpec("x", "FP32", (-1,))
_VALUE = TensorSpec("value", "FP32", (-1,))
_SUM = TensorSpec("sum", "FP32", (-1,))


def _change(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no grapx")


_BF16 = {"inputs": [{"name": "value", "datatype": "BF16", "shape": [-1]}]}
_H100 = {"hardware": {"devices": ["h100"]}}
_LARGE = {"hardware": {"devices": ["cpu"], "memory_mb": 9}}

SPOILED = {
    "one changed byte": Spoiled("metadata", "not those of the package", spoil=_change),
    "a missing folder": Spoiled(
        "metadata", "not a folder", spoil=lambda f: f.rename(f.with_name("gone"))
    ),
    "a datatype the engine lacks": Spoiled("metadata", "BF16 is not supported", Sums(fields=_BF16)),
    "an empty weight file": Spoiled("weights", "cannot be mapped"),
    "another device": Spoiled("placement", "no device of this machine", Sums(fields=_H100)),
    "more memory than is left": Spoiled("placement", "than is left", Sums(fields=_LARGE), free=1),
    "a graph the library refuses": Spoiled(
        "graph", "no opset 99", backend=lambda: FakeBackend(refusal="no opset 99")
    ),
    "another input": Spoiled(
        "graph", "input x of the graph is not declared", backend=_session(inputs=(_VALUE, _X))
    ),
    "a missing output": Spoiled(
        "graph", "declared output sum is not in the graph", backend=_session(outputs=(_X,))
    ),
    "another datatype": Spoiled(
        "graph",
        "declared FP32, graph has FP64",
        backend=_session(inputs=(replace(_VALUE, datatype="FP64"),)),
    ),
    "a fixed number of rows": Spoiled(
        "graph", "declared shape", backend=_session(inputs=(replace(_VALUE, shape=(1,)),))
    ),
    "a run that fails": Spoiled("memory", "ValueError: bad", backend=_session(fault=_fault)),
    "wrong golden answers": Spoiled("health", "1 of 1 golden cases failed", Sums(golden=4.0)),
}


@pytest.mark.parametrize("name", SPOILED)
def test_each_stage_refuses_what_it_must(name: str, tmp_path: Path) -> None:
    """The stage, the cause and a remedy are named, and the session is closed again."""
    case = SPOILED[name]
    folder = tmp_path / "model"
    source = serving.write_sums(folder, case.sums)
    if name == "an empty weight file":
        (folder / "model.onnx").write_bytes(b"")
        source = serving.source_of(folder)
    case.spoil(folder)
    backend = case.backend()
    with pytest.raises(LoadFailed, match=case.message) as caught:
        load_it(source, backend, free=case.free)
    assert caught.value.stage == case.stage
    assert caught.value.remedy
    assert isinstance(backend, FakeBackend)
    assert all(session.closed for session in list(backend.sessions)[: len(backend.opened)])


def test_a_model_that_takes_more_than_it_may_is_refused(tmp_path: Path) -> None:
    """What it really took is compared with its settings."""
    taken: list[bytearray] = []

    def greedy(inputs: Any) -> None:
        taken.append(bytearray(b"x" * (40 * 2**20)))

    source = serving.write_sums(tmp_path / "model", Sums(memory_mb=16))
    with pytest.raises(LoadFailed, match="took more memory") as caught:
        load_it(source, FakeBackend([FakeSession(fault=greedy)]))
    assert caught.value.stage == "memory"


@dataclass
class _Odd(FakeSession):
    answer: Any = None

    def run(self, inputs: Any) -> list[Any]:
        return [self.answer(len(inputs["value"]))]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda rows: np.zeros(rows + 1, np.float32), "float32 .3."),
        (lambda rows: np.zeros((rows, 1), np.float32), "float32 .2, 1."),
        (np.zeros, "float64"),
        (lambda rows: np.full(rows, np.nan, np.float32), "not finite"),
    ],
)
def test_an_input_of_ones_must_be_answered_as_declared(
    answer: Any, found: str, tmp_path: Path
) -> None:
    """Shape, type and finiteness are checked before any case."""
    source = serving.write_sums(tmp_path / "model")
    with pytest.raises(LoadFailed, match=found) as caught:
        load_it(source, FakeBackend([_Odd(answer=answer)]))
    assert caught.value.stage == "health"


def test_outputs_come_in_the_order_of_the_manifest(tmp_path: Path) -> None:
    """Whatever order the graph has."""
    fields = {"outputs": [{"name": "sum", "datatype": "FP32", "shape": [-1]}]}
    source = serving.write_sums(tmp_path / "model", Sums(fields=fields))
    session = FakeSession(outputs=(TensorSpec("other", "BYTES", (-1,)), _SUM))
    model = load_it(source, FakeBackend([session]))
    (found,) = model.session.run({"value": np.array([3], np.float32)})
    assert found.dtype == np.float32


def test_weights_beside_the_graph_are_mapped_too(tmp_path: Path) -> None:
    """External data counts to the bytes of the model."""
    source = serving.write_sums(tmp_path / "model")
    (tmp_path / "model" / "model.onnx.data").write_bytes(b"w" * 100)
    model = load_it(serving.source_of(source.folder))
    assert model.records[1].figures == {
        "files": {"model.onnx": 8, "model.onnx.data": 100},
        "bytes": 108,
        "external": True,
    }


def test_text_inputs_are_filled_with_a_known_category(tmp_path: Path) -> None:
    """An input of ones has a meaning for text as well."""
    source = serving.source_of(packages.write_source(tmp_path / "model"))
    seen: list[Any] = []
    inputs = (TensorSpec("carrier", "BYTES", (-1,)), TensorSpec("distance", "FP32", (-1,)))

    def note(given: Any) -> None:
        seen.append(given["carrier"][0])

    session = FakeSession(inputs=inputs, outputs=(TensorSpec("score", "FP32", (-1,)),), fault=note)
    with pytest.raises(LoadFailed, match="golden cases failed"):
        load_it(source, FakeBackend([session]))
    assert seen[0] == "AA"


def test_a_wrong_set_digest_is_refused(tmp_path: Path) -> None:
    """The files must be those that were signed."""
    source = serving.write_sums(tmp_path / "model")
    with pytest.raises(LoadFailed, match="not those of the package") as caught:
        load_it(replace(source, set_digest=digest.of_bytes(b"other")))
    assert caught.value.stage == "metadata"
