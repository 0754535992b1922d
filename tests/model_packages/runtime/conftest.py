"""A target's home with two packages, and a worker that serves it; see tests/fakes/serving.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from model_packages.runtime.load.model import PackageSource
from tests.fakes import serving
from tests.fakes.serving import Running, Sums


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "ein Zuhause für Modelle"
    folder.mkdir()
    return folder


@pytest.fixture
def first(home: Path) -> PackageSource:
    return serving.write_sums(home / "packages" / "first" / "model")


@pytest.fixture
def second(home: Path) -> PackageSource:
    return serving.write_sums(home / "packages" / "second" / "model", Sums(version="1.1.0"))


@pytest.fixture
def running(home: Path) -> Iterator[Running]:
    with serving.serve(home) as worker:
        yield worker
