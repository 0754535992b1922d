"""Packages for tests of this room; see tests/fakes/packages.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base import failpoint
from model_packages.oci.keys import PublicKey
from tests.fakes import packages
from tests.fakes.packages import BuiltPackage


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return packages.write_source(tmp_path / "source")


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> BuiltPackage:
    return packages.build(tmp_path_factory.mktemp("template") / "built")


@pytest.fixture
def built(_template: BuiltPackage, tmp_path: Path) -> BuiltPackage:
    """Return a package of one's own; building it once and copying it is quicker."""
    folder = shutil.copytree(_template.layout.parent, tmp_path / "built")
    return replace(
        _template, layout=folder / "layout", source=folder / "source", code=folder / "code"
    )


@pytest.fixture(scope="session")
def _signed_template(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[BuiltPackage, PublicKey]:
    return packages.build_signed(tmp_path_factory.mktemp("template") / "built")


@pytest.fixture
def signed(
    _signed_template: tuple[BuiltPackage, PublicKey], tmp_path: Path
) -> tuple[BuiltPackage, PublicKey]:
    """Return a signed package of one's own, and the key it was signed with."""
    template, key = _signed_template
    folder = shutil.copytree(template.layout.parent, tmp_path / "signed")
    own = replace(
        template, layout=folder / "layout", source=folder / "source", code=folder / "code"
    )
    return own, key


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoint.configure("")
