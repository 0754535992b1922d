"""The real thing: ten months of flights become one known bundle, within its budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import compute

from contracts.features import reader
from tasks.demo import data
from tasks.drift.measure import measure
from tasks.snapshot.snapshot import snapshot
from tasks.snapshot.window import window
from tasks.workspace import Workspace

NAME = "nyc/flights/arrival-delay"
# Identity of the table alone: it depends neither on the Parquet writer nor on any host.
VALUES = "sha256:78bff8d65ac745cc0eecf9149a67ccf1fbaa7189e1df6865c45e9805daa639d0"


def _cpu(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return call(), time.process_time() - start


@pytest.mark.slow
def test_ten_months_of_flights(tmp_path: Path, root: Path) -> None:
    """Every labelled flight is there with its weather as of departure; the values are golden."""
    workspace = Workspace(home=tmp_path / "home", root=root).prepare()
    data.prepare(workspace.sources)
    chosen = window(workspace, NAME, datetime(2014, 1, 1, tzinfo=UTC))
    part = chosen.training
    report, spent = _cpu(lambda: snapshot(workspace, NAME, part.batches, part.as_of))
    assert spent < 6
    facts = report.facts
    assert facts["feature_version"].startswith("20131101-")
    assert (facts["rows"], facts["excluded_rows"]) == (273_355, 8_018)
    assert facts["values"] == VALUES
    bundle, spent = _cpu(
        lambda: reader.open_version(workspace.objects, NAME, facts["feature_version"])
    )
    assert spent < 3
    table = bundle.table()
    assert compute.sum(table["late"].cast("int64")).as_py() == 64_138
    assert table["temperature"].null_count == 17
    new = snapshot(workspace, NAME, chosen.new.batches, chosen.new.as_of)
    drift = measure(workspace, NAME, facts["feature_version"], new.facts["feature_version"])
    assert drift.verdict == "pass"
    assert "temperature" in {finding.location for finding in drift.findings}
