"""One planted fault for every stage: that stage refuses, no other does, and nothing is left.

Faults are planted in a home folder of their own whose objects and reports are hard links to the
real ones, so what was judged before is not judged again and the real home cannot be touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.base.digest import Digest
from contracts.base.errors import CaissonError
from contracts.base.report import Report
from contracts.objects import content
from flows import sources
from flows.context import Context
from flows.demo.subject import MODEL, TARGET
from flows.gate import run_waves
from flows.sources import Source
from flows.waves import Outcome, aside
from model_packages.oci.reference import PackageRef
from tasks.demo import compliance, hardware, models, release, spoil
from tasks.demo import package as packages
from tasks.release import deploy
from tasks.release.targets.table import open_target
from tasks.validate import validate

_SPINE = "nyc/flights"


@dataclass(frozen=True)
class Fault:
    """A fault and what it met.

    Attributes:
        planted: What was done, in words.
        stage: The stage that has to refuse.
        refused: The stages that did.
        passed: The stages that did not mind.
        message: What a person reads.
        remedy: What the person is told to do.
    """

    planted: str
    stage: str
    refused: tuple[str, ...]
    passed: tuple[str, ...]
    message: str
    remedy: str

    @property
    def caught(self) -> bool:
        """Whether the right stage refused, and it alone."""
        return self.refused == (self.stage,)


@dataclass(frozen=True)
class Good:
    """What the faults are planted in.

    Attributes:
        source: The package source that passed.
        package: The package that was released.
        version: Feature version it was trained on.
        holdout: Feature version it was judged on.
    """

    source: Source
    package: PackageRef
    version: str
    holdout: str


async def plant_all(here: Context, good: Good, tell: Callable[[Fault, float], None]) -> list[Fault]:
    """Plant every fault, one after the other, and tell of each as soon as it is known."""
    found: list[Fault] = []
    for plant in (
        _renamed_column,
        _stale_batch,
        _changed_cell,
        _changed_byte,
        _leaked_label,
        _oversized,
        _unlicensed,
        _changed_weight,
        _unsigned,
    ):
        start = time.monotonic()
        with _scratch(here) as scratch:
            fault = await plant(scratch, good)
        found.append(fault)
        tell(fault, time.monotonic() - start)
    return found


def inventory(here: Context) -> dict[str, int]:
    """Return the size of every file that a fault could leave something in or take from."""
    place = here.workspace
    roots = (place.objects_path, place.home / "registry", place.keys, place.targets, place.sources)
    found = {
        str(path): path.stat().st_size
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in {".log", ".json"}
    }
    return {**found, "ledger": len(here.ledger.records())}


async def _renamed_column(here: Context, good: Good) -> Fault:
    del good
    spoiled = here.workspace.tmp / "sources"
    spoil.renamed_column(
        here.workspace.sources,
        _SPINE,
        "2013-12",
        column="carrier",
        to="airline",
        into=spoiled,
    )
    return _validated(here, spoiled, "column carrier of December renamed to airline")


async def _stale_batch(here: Context, good: Good) -> Fault:
    del good
    spoiled = here.workspace.tmp / "sources"
    spoil.stale_batch(here.workspace.sources, _SPINE, "2013-12", days=31, into=spoiled)
    return _validated(here, spoiled, "December delivered once more as if it were January")


def _validated(here: Context, spoiled: Path, planted: str) -> Fault:
    place = replace(here.workspace, batches=spoiled)
    report = validate.validate(place, _SPINE, "2013-12", None, "demo")
    return _fault(planted, "validate", [Outcome(report.stage, report, None, 0.0)])


async def _changed_cell(here: Context, good: Good) -> Fault:
    definition = good.source.training.definition
    spoil.changed_cell(
        here.workspace.objects, definition, good.version, column="distance", row=70_000
    )
    return await _gated(
        here, good.source.tree, "one distance in the training bundle changed", "snapshot"
    )


async def _changed_byte(here: Context, good: Good) -> Fault:
    packages.changed_byte(here.workspace.packages(good.package.repository), good.package.digest)
    return await _gated(here, good.source.tree, "one byte of the built package changed", "package")


async def _leaked_label(here: Context, good: Good) -> Fault:
    tree, reference = await aside(models.leaked_label, here.workspace, good.source.tree)
    planted = "the delay at departure, known only later, among the inputs"
    return await _gated(here, tree, planted, "trust", reference=reference)


async def _oversized(here: Context, good: Good) -> Fault:
    tree = _edited(here, good, lambda folder: hardware.oversized(folder, memory_mb=8 * 2**20))
    return await _gated(here, tree, "8 TiB of memory demanded", "hardware")


async def _unlicensed(here: Context, good: Good) -> Fault:
    return await _gated(
        here, _edited(here, good, compliance.unlicensed), "licence taken out", "compliance"
    )


async def _changed_weight(here: Context, good: Good) -> Fault:
    tree = models.changed_weight(here.workspace, good.source.tree)
    return await _gated(here, tree, "one weight of the shipped graph changed", "verify")


async def _unsigned(here: Context, good: Good) -> Fault:
    ref = release.unsigned(here.workspace, good.package)
    place = open_target(here.workspace, TARGET)
    try:
        report = deploy.deploy(here.workspace, ref, place, here.policy(TARGET))
    except CaissonError as err:
        return _fault("package without a signature", "deploy", [Outcome("deploy", None, err, 0.0)])
    return _fault("package without a signature", "deploy", [Outcome("deploy", report, None, 0.0)])


def _edited(here: Context, good: Good, edit: Callable[[Path], object]) -> Digest:
    folder = content.checkout_tree(
        here.workspace.objects, good.source.tree, here.workspace.tmp / "edited"
    )
    edit(folder)
    return content.put_tree(here.workspace.objects, folder)


async def _gated(
    here: Context, tree: Digest, planted: str, stage: str, reference: Digest | None = None
) -> Fault:
    source = sources.resolve(here, MODEL, tree)
    if reference is not None:
        source = replace(source, reference=reference)
    _, outcomes = await run_waves(here, source, here.policy(TARGET))
    return _fault(planted, stage, outcomes)


def _fault(planted: str, stage: str, outcomes: list[Outcome]) -> Fault:
    refused = [item for item in outcomes if item.verdict != "pass"]
    message, remedy = _said(refused[0]) if refused else ("nothing was noticed", "")
    return Fault(
        planted=planted,
        stage=stage,
        refused=tuple(item.stage for item in refused),
        passed=tuple(item.stage for item in outcomes if item.verdict == "pass"),
        message=message,
        remedy=remedy,
    )


def _said(outcome: Outcome) -> tuple[str, str]:
    if outcome.error is not None:
        return str(outcome.error), outcome.error.remedy
    report: Report | None = outcome.report
    first = next(iter(report.findings), None) if report else None
    if first is None:
        return (report.reason if report else "", "")
    return first.message, first.remedy


@contextlib.contextmanager
def _scratch(here: Context) -> Iterator[Context]:
    """Yield a context whose home is a throw-away copy by hard links."""
    real = here.workspace
    home = real.tmp / ".faults.part"
    shutil.rmtree(home, ignore_errors=True)
    try:
        for part in ("objects", "reports", "keys"):
            shutil.copytree(real.home / part, home / part, copy_function=_link, symlinks=True)
        shutil.copy2(real.ledger_path, home / "ledger.db")
        (home / "environments").symlink_to(real.environments, target_is_directory=True)
        aside = replace(real, home=home, batches=real.sources)
        yield replace(here, workspace=aside, as_of=here.as_of).prepared()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _link(source: str, target: str) -> str:
    os.link(source, target)
    return target
