"""What tests of flows share: no server, no environment of the developer, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flows.context import Context
from tests.fakes import world


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no setting of the developer decide a test."""
    for name in [name for name in os.environ if name.startswith("CAISSON_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def here(tmp_path: Path) -> Context:
    """A small installation of one's own."""
    return world.build(tmp_path)
