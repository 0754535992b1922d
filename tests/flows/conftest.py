"""What tests of flows share: no server, no environment of the developer, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flows.context import Context
from tests.fakes import world
from tests.fakes.reference import Reference, reference


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no setting of the developer decide a test."""
    for name in [name for name in os.environ if name.startswith("CAISSON_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def here(tmp_path: Path) -> Context:
    """A small installation of one's own."""
    return world.build(tmp_path)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """An installation after one whole demo, made once for all processes of a test run."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder
    found = reference(shared)
    assert found.ended.status == 0, found.ended.err
    return found
