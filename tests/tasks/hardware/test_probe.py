"""The probe measures every batch size it is asked for, and its own memory honestly."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.base import files
from tasks.hardware import probe
from tests.fakes import packages


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return packages.write_source(tmp_path / "tiny")


def test_every_batch_size_is_a_point_of_the_curve(source: Path) -> None:
    """Each point has percentiles in order and a rate; progress counts to the end."""
    seen: list[tuple[int, int]] = []
    request = {"folder": str(source), "batch_sizes": [1, 5], "seconds": 0.0, "backend": "onnx"}
    found = probe.measure(request, lambda done, total: seen.append((done, total)))
    assert [point["batch"] for point in found["curve"]] == [1, 5]
    for point in found["curve"]:
        assert point["runs"] >= 12
        assert 0 < point["p50_ms"] <= point["p95_ms"] <= point["p99_ms"]
        assert point["rows_per_s"] > 0
    assert seen == [(1, 2), (2, 2)]
    assert found["cold_start_s"] >= found["open_s"] > 0
    assert found["process_mb"] > found["memory_mb"] >= 0
    assert found["cpu"]


def test_a_graph_that_does_not_load_is_answered_as_an_error(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program answers with the error's parts, so that the parent raises the same kind."""
    (source / "model.onnx").write_bytes(b"not a graph")
    asked = tmp_path / "request.json"
    request = {"folder": str(source), "batch_sizes": [1], "seconds": 0.0, "backend": "onnx"}
    files.write_json(asked, {**request, "answer": str(tmp_path / "answer.json"), "progress": 1})
    monkeypatch.setattr("sys.argv", ["probe", str(asked)])
    probe.main()
    assert files.read_json(tmp_path / "answer.json")["error"]["code"] == "backend-failed"
