"""Bundles of a small world, built once and copied."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.features.store import FeatureVersion, snapshot
from contracts.objects.folder import FolderStore
from tests.fakes import observations

AS_OF = datetime(2020, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FeatureVersion]:
    base = tmp_path_factory.mktemp("bundle")
    made = snapshot(
        observations.definition(),
        observations.inputs(base / "data", observations.ordinary()),
        as_of=AS_OF,
        store=FolderStore(base / "objects"),
        provenance={"host": "here"},
    )
    return base / "objects", made


@pytest.fixture
def published(_built: tuple[Path, FeatureVersion]) -> FeatureVersion:
    return _built[1]


@pytest.fixture
def store(_built: tuple[Path, FeatureVersion], tmp_path: Path) -> FolderStore:
    """Return a store of one's own that holds the published bundle."""
    shutil.copytree(_built[0], tmp_path / "objects")
    return FolderStore(tmp_path / "objects")
