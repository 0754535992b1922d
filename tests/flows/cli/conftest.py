"""What tests of commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from tests.fakes import house
from tests.fakes.house import House


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Caisson = Callable[..., Ended]


@pytest.fixture
def caisson(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Caisson:
    """Runs a command in this process with a home of its own, and says how it ended."""
    monkeypatch.setenv("CAISSON_HOME", str(tmp_path / "hôme folder"))

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        status = main.execute(list(arguments))
        said = capsys.readouterr()
        return Ended(status, said.out, said.err)

    return run


@pytest.fixture
def released(tmp_path: Path, root: Path) -> House:
    """A home in which a model was released, deployed and asked."""
    made = house.build(tmp_path / "hôme folder", root)
    first = house.release(made, "first")
    made.ledger.move_pointer(
        house.MODEL, house.TARGET, expected=None, new=first, body={"to": first}
    )
    house.answer(made, "request-1", first)
    return made
