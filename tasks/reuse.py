"""Work done once: a stage whose inputs and code are unchanged is not run again.

The key of a piece of work is the digest of its stage, its inputs (which are digests, options and
``as_of``) and the code that does it. One lock file a key, so two commands that need the same work
do it once; the lock is free again when its holder ends, however it ends. Only a ``pass`` is
reused, and only while ``exists`` says that all it names is still there.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contracts.base import digest, failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, InputError, IntegrityError
from contracts.base.report import Report
from tasks.workspace import Workspace

Exists = Callable[[Report], bool]

_SHARED = ("contracts", "model_packages", "requirements.lock")
_SKIPPED = frozenset({"__pycache__", "published"})


def always(report: Report, /) -> bool:
    """Say that what a report names exists; for reports that name nothing outside themselves."""
    del report
    return True


def once(
    workspace: Workspace,
    stage: str,
    inputs: Mapping[str, Any],
    produce: Callable[[], Report],
    *,
    areas: Sequence[str],
    exists: Exists = always,
) -> Report:
    """Return the recorded report of this work, or do the work and record it.

    Args:
        workspace: Where reports and locks are.
        stage: Name of the stage.
        inputs: Everything the result depends on besides the code, as plain data.
        produce: Does the work.
        areas: Folders of the checkout whose code does it, such as ``tasks/trust``; contracts,
            model_packages and the lock file always count.
        exists: Says whether everything a recorded report names is still there.

    Returns:
        The report; ``measurements`` holds ``unchanged: true`` if nothing was done.
    """
    with claimed(workspace, stage, inputs, areas=areas, exists=exists) as claim:
        return claim.recorded or claim.record(produce())


@contextlib.contextmanager
def claimed(
    workspace: Workspace,
    stage: str,
    inputs: Mapping[str, Any],
    *,
    areas: Sequence[str],
    exists: Exists = always,
) -> Iterator[Claim]:
    """Hold a piece of work for the time of a block; who else needs it waits.

    Args:
        workspace: Where reports and locks are.
        stage: Name of the stage.
        inputs: Everything the result depends on besides the code, as plain data.
        areas: Folders of the checkout whose code does it.
        exists: Says whether everything a recorded report names is still there.

    Yields:
        What is on record, or the place to record what the block makes.
    """
    key = _key(workspace, stage, inputs, areas)
    with files.locked(workspace.locks / f"{stage}-{digest.short(key, 32)}"):
        yield Claim(workspace, stage, key, _recorded(workspace, stage, key, exists))


@dataclass(frozen=True)
class Claim:
    """A piece of work that nobody else does meanwhile.

    Attributes:
        workspace: Where it is recorded.
        stage: Name of the stage.
        key: Identity of the work.
        recorded: The report on record, marked unchanged; None if it has to be done.
    """

    workspace: Workspace
    stage: str
    key: Digest
    recorded: Report | None

    def record(self, report: Report) -> Report:
        """Write down what the work came to, and return it."""
        failpoint.hit("reuse.record.before")
        record = _record(self.key, report)
        files.write_json(_by_digest(self.workspace, report.digest), record)
        failpoint.hit("reuse.record.inside")
        files.write_json(_path(self.workspace, self.stage, self.key), record)
        failpoint.hit("reuse.record.after")
        return report


def peek(
    workspace: Workspace,
    stage: str,
    inputs: Mapping[str, Any],
    *,
    areas: Sequence[str],
    exists: Exists = always,
) -> Report | None:
    """Return the report that ``once`` would reuse, or None if it would do the work."""
    return _recorded(workspace, stage, _key(workspace, stage, inputs, areas), exists)


def keep(workspace: Workspace, report: Report) -> None:
    """Keep a report to be found by its digest, for work that is done anew every time."""
    path = _by_digest(workspace, report.digest)
    if not path.is_file():
        files.write_json(path, _record(report.digest, report))


def find(workspace: Workspace, identity: Digest) -> Report | None:
    """Return the recorded report with a digest, whatever its verdict, or None."""
    report, _ = _read(_by_digest(workspace, identity))
    return report if report is not None and report.digest == identity else None


def digest_of_code(root: Path, areas: Sequence[str]) -> Digest:
    """Return the digest over the code in folders and files of a checkout.

    Owners' files under ``published`` do not count: what a stage reads of them is among its inputs.

    Raises:
        InputError: If a folder does not exist.
    """
    return _digest_of_code(root, tuple(sorted({*areas, *_SHARED})))


@functools.lru_cache(maxsize=64)
def _digest_of_code(root: Path, areas: tuple[str, ...]) -> Digest:
    """Hash once a process: the code that runs was loaded once too."""
    listed: dict[str, str] = {}
    for area in areas:
        path = root / area
        if path.is_dir():
            for file in _code_files(path):
                listed[file.relative_to(root).as_posix()] = digest.of_file(file)
        elif path.is_file():
            listed[area] = digest.of_file(path)
        elif area not in _SHARED:
            raise InputError("code folder does not exist", location=str(path))
    return digest.of_json(listed)


def _code_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        found += [Path(parent, name) for name in names if not name.endswith((".pyc", ".md"))]
    return found


def _key(
    workspace: Workspace, stage: str, inputs: Mapping[str, Any], areas: Sequence[str]
) -> Digest:
    code = digest_of_code(workspace.root, areas)
    return digest.of_json({"stage": stage, "inputs": inputs, "code": code})


def _path(workspace: Workspace, stage: str, key: Digest) -> Path:
    return workspace.reports / stage / f"{key.removeprefix('sha256:')}.json"


def _record(key: Digest, report: Report) -> dict[str, Any]:
    return {"key": key, "report": report.to_dict(), "report_digest": report.digest}


def _by_digest(workspace: Workspace, identity: Digest) -> Path:
    return workspace.reports / "digests" / f"{identity.removeprefix('sha256:')}.json"


def _recorded(workspace: Workspace, stage: str, key: Digest, exists: Exists) -> Report | None:
    """Return what a key's record says if it may be used again."""
    report, recorded_key = _read(_path(workspace, stage, key))
    if report is None or recorded_key != key:
        return None
    if report.verdict != "pass" or not _still(exists, report):
        return None
    return replace(report, measurements={**report.measurements, "unchanged": True})


def _read(path: Path) -> tuple[Report | None, str]:
    """Read a record; one that cannot be read, or was changed, is none."""
    if not path.is_file():
        return None, ""
    try:
        record = files.read_json(path)
        report = Report.from_dict(record["report"])
        genuine = record["report_digest"] == report.digest
        return (report, str(record["key"])) if genuine else (None, "")
    except (InputError, KeyError, TypeError, AttributeError):
        return None, ""


def _still(exists: Exists, report: Report) -> bool:
    """Ask whether all that a report names is there; what cannot be read is not.

    Raises:
        IntegrityError: If it is there and not what was recorded. Making it again in silence would
            hide a failing disk or somebody's hand.
    """
    try:
        return exists(report)
    except IntegrityError:
        raise
    except CaissonError:
        return False
