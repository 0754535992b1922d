"""Backends: the table, the fake one and ONNX Runtime behind the same interface."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from contracts.base.errors import InputError
from model_packages.format.tensors import TensorSpec
from model_packages.runtime import backends
from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.backends.interface import BackendFailed, SessionOptions
from model_packages.runtime.backends.onnx import OnnxBackend
from tests.fakes import packages


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "model.onnx"
    packages.write_model(path)
    return path


@pytest.mark.parametrize("name", sorted(backends.TABLE))
def test_every_backend_of_the_table_can_be_made(name: str) -> None:
    """A line in the table that imports nothing useful is noticed here."""
    assert backends.create(name).name == name


def test_an_unknown_backend_is_refused() -> None:
    """The message lists those there are."""
    with pytest.raises(InputError, match="fake, onnx"):
        backends.create("abacus")


def test_onnx_answers_what_the_graph_computes(graph: Path) -> None:
    """Names, types and values come out as they were put in."""
    session = OnnxBackend().open(graph, SessionOptions())
    assert session.inputs == (
        TensorSpec("carrier", "BYTES", (-1,)),
        TensorSpec("distance", "FP32", (-1,)),
    )
    assert session.outputs == (TensorSpec("score", "FP32", (-1,)),)
    assert session.facts["providers"] == ["CPUExecutionProvider"]
    found = session.run(
        {
            "carrier": np.array(["AA", "ZZ"], dtype=object),
            "distance": np.array([1.0, np.nan], dtype=np.float32),
        }
    )
    assert found[0].tolist() == [packages.score("AA", 1.0), packages.score("ZZ", None)]


def test_onnx_telemetry_is_off_before_the_library_is_loaded() -> None:
    """The library looks at this variable once, at import."""
    OnnxBackend().prepare()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_onnx_refusals_carry_its_words(graph: Path, tmp_path: Path) -> None:
    """A graph that is none, and inputs that do not fit."""
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no graph")
    with pytest.raises(BackendFailed, match=r"broken\.onnx"):
        OnnxBackend().open(broken, SessionOptions())
    session = OnnxBackend().open(graph, SessionOptions())
    with pytest.raises(BackendFailed):
        session.run({"carrier": np.array(["AA"], dtype=object)})
    session.close()
    with pytest.raises(BackendFailed):
        session.run({})


def test_the_fake_sums_rows() -> None:
    """Its answers can be checked by hand."""
    outputs = (
        TensorSpec("plain", "FP32", (-1,)),
        TensorSpec("text", "BYTES", (-1,)),
        TensorSpec("wide", "FP64", (-1, 2)),
    )
    session = FakeSession(outputs=outputs)
    found = session.run(
        {"word": np.array(["é", "ab"], dtype=object), "number": np.array([[1, 2], [3, 4]])}
    )
    assert found[0].tolist() == [5.0, 9.0]
    assert found[1].tolist() == ["5.0", "9.0"]
    assert found[2].tolist() == [[5.0, 5.0], [9.0, 9.0]]
    assert session.batches == [2]


def test_the_fake_refuses_when_told() -> None:
    """Tests need a backend that fails."""
    with pytest.raises(BackendFailed, match="no"):
        FakeBackend(refusal="no").open(Path("x"), SessionOptions())
