from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base.errors import DigestMismatch, InputError, UnavailableError
from contracts.base.report import Finding, Report, conclude, skipped
from tasks import reuse
from tasks.workspace import Workspace
from tests.fakes.waiting import until

AREAS = ["tasks/demo"]
INPUTS = {"data": "sha256:aa", "as_of": "2013-12-01"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    code = tmp_path / "code"
    for name in ("tasks/demo", "contracts/base", "model_packages"):
        (code / name).mkdir(parents=True)
        (code / name / "work.py").write_text("x = 1\n")
    return Workspace(tmp_path / "home", code).prepare()


class Work:
    """Work that counts how often it is done."""

    def __init__(self, make: Callable[[], Report] = lambda: conclude("demo", "s", [])) -> None:
        self.times = 0
        self._make = make

    def __call__(self) -> Report:
        self.times += 1
        return self._make()


def once(workspace: Workspace, work: Work, inputs: object = None, **options: object) -> Report:
    return reuse.once(workspace, "demo", inputs or INPUTS, work, areas=AREAS, **options)  # type: ignore[arg-type] # short hand of this test


def record_of(workspace: Workspace) -> Path:
    (path,) = (workspace.reports / "demo").glob("*.json")
    return path


def test_the_same_work_is_done_once(workspace: Workspace) -> None:
    """The second call returns the first one's report and says that nothing was done."""
    work = Work(lambda: conclude("demo", "s", [], facts={"rows": 3}, measurements={"seconds": 2}))
    first = once(workspace, work)
    second = once(workspace, work)
    assert work.times == 1
    assert second.digest == first.digest
    assert second.measurements == {"seconds": 2, "unchanged": True}
    assert "unchanged" not in first.measurements


def test_other_inputs_are_other_work(workspace: Workspace) -> None:
    """A changed input is a miss."""
    work = Work()
    once(workspace, work)
    once(workspace, work, {**INPUTS, "as_of": "2013-11-01"})
    assert work.times == 2


@pytest.mark.parametrize("changed", ["tasks/demo", "contracts/base", "model_packages"])
def test_other_code_is_other_work(workspace: Workspace, tmp_path: Path, changed: str) -> None:
    """A changed line in the area, the contracts or the model packages is a miss."""
    work = Work()
    once(workspace, work)
    moved = workspace.root.rename(tmp_path / "changed")
    (moved / changed / "work.py").write_text("x = 2\n")
    once(replace(workspace, root=moved), work)
    assert work.times == 2


def test_unrelated_files_do_not_count(workspace: Workspace, tmp_path: Path) -> None:
    """Owners' files, documentation and compiled code do not make work new."""
    work = Work()
    once(workspace, work)
    moved = workspace.root.rename(tmp_path / "same")
    for name in ("published/m/train.py", "README.md", "__pycache__/work.pyc"):
        path = moved / "model_packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("other")
    once(replace(workspace, root=moved), work)
    assert work.times == 1


@pytest.mark.parametrize(
    "report",
    [
        conclude("demo", "s", [Finding("r", "s", "", "high", "bad", "mend")]),
        skipped("demo", "s", "no device"),
    ],
    ids=["fail", "skip"],
)
def test_only_a_pass_is_reused(workspace: Workspace, report: Report) -> None:
    """A failure or a skip is looked at again, because its cause may be gone."""
    work = Work(lambda: report)
    once(workspace, work)
    once(workspace, work)
    assert work.times == 2


def test_a_hit_counts_only_while_what_it_names_exists(workspace: Workspace) -> None:
    """When the artifact is gone or cannot be reached, the work is done again."""

    def broken(report: Report) -> bool:
        raise UnavailableError(f"{report.subject} cannot be reached")

    work = Work()
    once(workspace, work)
    once(workspace, work, exists=lambda report: report.subject != "s")
    once(workspace, work, exists=broken)
    assert work.times == 3


def test_changed_bytes_are_refused_not_made_again(workspace: Workspace) -> None:
    """Making a damaged artifact again in silence would hide who or what damaged it."""

    def changed(report: Report) -> bool:
        raise DigestMismatch(f"{report.subject} was changed")

    work = Work()
    once(workspace, work)
    with pytest.raises(DigestMismatch):
        once(workspace, work, exists=changed)
    assert work.times == 1


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"key":"x","report":{},"report_digest":"y"}',
        b'{"report":[1],"key":"x"}',
    ],
    ids=["empty", "torn", "list", "no report", "fields missing"],
)
def test_a_record_that_cannot_be_read_is_a_miss(workspace: Workspace, damage: bytes) -> None:
    """A damaged record never stops a run and is never believed."""
    work = Work()
    once(workspace, work)
    record_of(workspace).write_bytes(damage)
    once(workspace, work)
    assert work.times == 2


def test_a_record_that_was_edited_is_a_miss(workspace: Workspace) -> None:
    """A fact changed by hand no longer fits the report's digest."""
    work = Work(lambda: conclude("demo", "s", [], facts={"auc": 0.5}))
    once(workspace, work)
    path = record_of(workspace)
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.9"))
    assert once(workspace, work).facts == {"auc": 0.5}
    assert work.times == 2


def test_a_record_under_another_key_is_a_miss(workspace: Workspace) -> None:
    """A record copied to the place of other work is not taken for it."""
    work = Work()
    once(workspace, work)
    first = record_of(workspace)
    once(workspace, work, {"other": 1})
    (second,) = (path for path in first.parent.glob("*.json") if path != first)
    second.write_bytes(first.read_bytes())
    once(workspace, work, {"other": 1})
    assert work.times == 3


def test_peek_tells_without_doing(workspace: Workspace) -> None:
    """Peek returns what once would reuse, and None where it would work."""
    assert reuse.peek(workspace, "demo", INPUTS, areas=AREAS) is None
    once(workspace, Work())
    found = reuse.peek(workspace, "demo", INPUTS, areas=AREAS)
    assert found is not None
    assert found.measurements["unchanged"] is True


def test_find_returns_a_report_by_its_digest(workspace: Workspace) -> None:
    """Every recorded report, failed ones too, can be found by what a release binds: its digest."""
    bad = conclude("demo", "s", [Finding("r", "s", "", "high", "bad", "mend")])
    once(workspace, Work(lambda: bad))
    assert reuse.find(workspace, bad.digest) == bad
    assert reuse.find(workspace, conclude("demo", "t", []).digest) is None


def test_code_that_does_not_exist_is_refused(workspace: Workspace) -> None:
    """A misspelt area is an error, not an empty digest."""
    with pytest.raises(InputError, match="does not exist"):
        reuse.digest_of_code(workspace.root, ["tasks/demos"])


SCRIPT = """
import sys
import time
from pathlib import Path
from contracts.base import failpoint
from contracts.base.report import conclude
from tasks import reuse
from tasks.workspace import Workspace

home, code, marks, name, points = sys.argv[1:]
failpoint.configure(points)

def work():
    Path(marks, "begun-" + name).touch()
    while not Path(marks, "go").exists():
        time.sleep(0.02)
    Path(marks, "done-" + name).touch()
    return conclude("demo", "s", [])

workspace = Workspace(Path(home), Path(code))
report = reuse.once(workspace, "demo", {"a": 1}, work, areas=["tasks/demo"])
print(bool(report.measurements.get("unchanged")))
"""


def start(
    workspace: Workspace, root: Path, marks: Path, name: str, points: str = ""
) -> subprocess.Popen[str]:
    arguments = [str(workspace.home), str(workspace.root), str(marks), name, points]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={"PYTHONPATH": str(root), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_do_the_work_once(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    """While one works the other waits, and then reports the same result."""
    first = start(workspace, root, tmp_path, "first")
    until((tmp_path / "begun-first").exists)
    second = start(workspace, root, tmp_path, "second")
    (tmp_path / "go").touch()
    assert first.communicate()[0].strip() == "False"
    assert second.communicate()[0].strip() == "True"
    assert not (tmp_path / "begun-second").exists()


def test_a_killed_worker_leaves_the_work_to_the_next(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    """After kill -9 in the middle of the work the waiting process does it."""
    first = start(workspace, root, tmp_path, "first")
    until((tmp_path / "begun-first").exists)
    second = start(workspace, root, tmp_path, "second")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    (tmp_path / "go").touch()
    assert second.communicate()[0].strip() == "False"
    assert (tmp_path / "done-second").exists()


@pytest.mark.parametrize("point", ["before", "inside", "after"])
def test_killed_while_recording_leaves_nothing_half(
    workspace: Workspace, root: Path, tmp_path: Path, point: str
) -> None:
    """Killed around the record, the next run finds a whole record or none."""
    (tmp_path / "go").touch()
    killed = start(workspace, root, tmp_path, "first", f"reuse.record.{point}")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    second = start(workspace, root, tmp_path, "second")
    assert second.communicate()[0].strip() == str(point == "after")
    for path in workspace.reports.rglob("*.json"):
        json.loads(path.read_text())
