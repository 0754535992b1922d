"""What a flow starts from, and who is at work in a home folder."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.base import files
from contracts.base.errors import InputError, UnavailableError
from contracts.base.progress import Progress
from flows import context, presence
from tests.fakes.clock import FixedClock


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "höme folder"
    monkeypatch.setenv("CAISSON_HOME", str(folder))
    return folder


def test_a_run_has_a_home_and_a_moment(home: Path) -> None:
    """Folders are made, the target's policy is there, and the moment is what was asked for."""
    here = context.current("2014-01-01")
    assert here.as_of == datetime(2014, 1, 1, tzinfo=UTC)
    assert (home / "objects").is_dir()
    assert here.policy().target == "local"
    assert here.ledger.records() == []
    with pytest.raises(InputError, match="local"):
        here.policy("elsewhere")


def test_the_moment_is_the_present_day_if_not_given() -> None:
    """The same command repeated on one day is the same work."""
    noon = FixedClock(datetime(2026, 3, 4, 12, 30, tzinfo=UTC))
    assert context.moment(None, noon) == datetime(2026, 3, 4, tzinfo=UTC)
    with pytest.raises(InputError, match="as_of"):
        context.moment("yesterday", noon)


def test_reading_makes_nothing(home: Path) -> None:
    """A command that only reads works without a home folder and leaves none."""
    assert context.reading().workspace.home == home
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the folder and the setting."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CAISSON_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(UnavailableError, match="Set CAISSON_HOME"):
        context.current()


def test_progress_goes_to_whoever_watches(home: Path) -> None:
    """Flows started in the block report there, and nowhere after it."""
    heard: list[Progress] = []
    step = Progress("train", 1, 2, "epochs")
    with context.watched(heard.append):
        context.current().workspace.progress(step)
        assert context.watcher() is not context.silent
    context.current().workspace.progress(step)
    assert heard == [step]


def test_the_first_at_work_sweeps(home: Path) -> None:
    """What killed commands left half-written is removed before the first write, once."""
    leftover = home / "objects" / "blobs" / ".x.0123456789ab.part"
    leftover.parent.mkdir(parents=True)
    leftover.touch()
    here = context.current()
    assert not leftover.exists()
    leftover.touch()
    context.current()
    assert leftover.exists()
    presence.leave(here.workspace)
    presence.leave(here.workspace)
    context.current()
    assert not leftover.exists()


def test_nobody_sweeps_while_another_works(home: Path) -> None:
    """A process at work keeps its half-written files; when it is killed they are swept."""
    here = context.current()
    presence.leave(here.workspace)
    holder = (
        "import sys, time; from pathlib import Path; from contracts.base import files\n"
        "with files.locked(Path(sys.argv[1]), shared=True):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(here.workspace.presence)]
    leftover = home / "registry" / ".blob.0123456789ab.part"
    leftover.touch()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        context.current()
        assert leftover.exists()
        presence.leave(here.workspace)
        other.kill()
    context.current()
    assert not leftover.exists()
    with files.locked(here.workspace.presence, wait=False) as alone:
        assert not alone
