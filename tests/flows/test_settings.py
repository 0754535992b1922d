from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.base.errors import InputError
from flows import settings, wiring
from flows.settings import ROOT, VARIABLES, load
from tests.fakes.clock import FixedClock


def test_without_any_variable_the_defaults_hold() -> None:
    """Nothing needs to be set, and everything made lies in the checkout's .caisson."""
    found = load({"PATH": "/bin", "OTHER_CAISSON_X": "1"})
    assert found.home == ROOT / ".caisson"
    assert found.sources == ROOT / ".caisson" / "sources"
    assert (found.linger, found.target, found.log_level) == (120.0, "local", "warning")
    assert found.failpoints == ""


def test_every_variable_is_read(tmp_path: Path) -> None:
    """Each documented variable changes its setting."""
    given = {
        "CAISSON_HOME": str(tmp_path / "hôme"),
        "CAISSON_SOURCES": str(tmp_path / "data"),
        "CAISSON_LINGER": "0.5",
        "CAISSON_TARGET": "edge-1",
        "CAISSON_LOG_LEVEL": "INFO",
        "CAISSON_FAILPOINTS": "ledger.append.before:2",
    }
    assert set(given) == {variable.name for variable in VARIABLES}
    found = load(given)
    assert found.home == tmp_path / "hôme"
    assert found.sources == tmp_path / "data"
    assert (found.linger, found.target, found.log_level) == (0.5, "edge-1", "info")
    assert found.failpoints == "ledger.append.before:2"


def test_sources_follow_the_home_folder(tmp_path: Path) -> None:
    """Only the home folder set, the sources lie in it."""
    assert load({"CAISSON_HOME": str(tmp_path)}).sources == tmp_path / "sources"


def test_an_empty_variable_is_as_good_as_none() -> None:
    """CI systems set variables to nothing; that means the default."""
    assert load({"CAISSON_LINGER": " "}).linger == 120.0


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Every wrong variable is named in one message, with what was expected."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError) as caught:
        load(
            {
                "CAISSON_HOME": "relative/path",
                "CAISSON_SOURCES": str(file),
                "CAISSON_LINGER": "soon",
                "CAISSON_TARGET": "a b",
                "CAISSON_LOG_LEVEL": "loud",
                "CAISSON_FAILPOINTS": "x:y",
                "CAISSON_LINGR": "1",
            }
        )
    message = str(caught.value)
    for variable in VARIABLES:
        assert variable.name in message
    assert "CAISSON_LINGR: unknown variable; did you mean CAISSON_LINGER?" in message
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("text", ["-1", "1e9", "nan", "inf"])
def test_a_linger_out_of_range_is_refused(text: str) -> None:
    """A time that makes no sense is refused."""
    with pytest.raises(InputError, match="LINGER"):
        load({"CAISSON_LINGER": text})


@pytest.mark.parametrize("text", ["/" + "x" * 300, "~no-such-user-anywhere/x"])
def test_a_home_that_can_never_be_is_refused(text: str) -> None:
    """What the system does not take for a path is malformed input, no fault of ours."""
    with pytest.raises(InputError, match="CAISSON_HOME: cannot be a folder"):
        load({"CAISSON_HOME": text})


def test_checking_failpoints_arms_none() -> None:
    """Reading the settings has no effect; only the wiring arms failpoints."""
    from contracts.base import failpoint

    load({"CAISSON_FAILPOINTS": "settings.test"})
    failpoint.hit("settings.test")


def test_the_wiring_makes_a_workspace(tmp_path: Path) -> None:
    """The workspace lies where the settings say and is ready to be written to."""
    clock = FixedClock()
    found = load({"CAISSON_HOME": str(tmp_path / "h"), "CAISSON_SOURCES": str(tmp_path / "s")})
    place = wiring.workspace(found, clock=clock)
    assert (place.home, place.sources, place.root) == (tmp_path / "h", tmp_path / "s", ROOT)
    assert place.reports.is_dir()
    assert wiring.ledger(place).append("nightly", "x", {}).number == 1


def test_reading_makes_nothing(tmp_path: Path) -> None:
    """A command that only reads leaves no trace on a fresh machine."""
    place = wiring.reading(load({"CAISSON_HOME": str(tmp_path / "h")}))
    assert wiring.ledger(place).records() == []
    assert place.sources == tmp_path / "h" / "sources"
    assert not (tmp_path / "h").exists()


def test_importing_flows_is_cheap_and_silences_telemetry(root: Path) -> None:
    """The settings cost no heavy import, and no library can phone home afterwards."""
    code = (
        "import sys, os; import flows.settings, flows.wiring;"
        "heavy = {'pydantic', 'prefect', 'mlflow', 'numpy', 'duckdb', 'rfc3987_syntax'};"
        "assert not [name for name in heavy if sys.modules.get(name)];"
        "from tasks.telemetry import OFF;"
        "assert all(os.environ[name] == value for name, value in OFF.items())"
    )
    environment = {"PYTHONPATH": str(root), "PATH": os.environ["PATH"], "DO_NOT_TRACK": "false"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_every_variable_is_documented() -> None:
    """Each one says what it decides, in a sentence, and what holds without it."""
    for variable in settings.VARIABLES:
        assert variable.help.endswith(".")
        assert variable.default
