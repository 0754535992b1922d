"""What every test shares."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# Examples are checked for what they promise, never for how long a loaded machine took.
settings.register_profile("caisson", deadline=None)
settings.load_profile("caisson")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write golden files anew instead of comparing"
    )


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-goldens"))
