"""Tells the whole story once: data, contract, features, model, package, deployment, faults.

Everything goes through the same flows that people and schedules use. A run that was killed is
continued by the next one, because every stage recognises by digest what has been done.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.digest import Digest, short
from contracts.base.errors import RefusedError
from contracts.base.report import Report
from contracts.objects import content
from flows import recall, sources, traffic
from flows.candidates import candidate
from flows.context import Context
from flows.demo import faults, page
from flows.demo.chapters import Chapters
from flows.demo.passengers import Passengers
from flows.demo.subject import AS_OF, MODEL, SOURCES, TARGET
from flows.deploy import deploy
from flows.nightly import nightly
from flows.pages import recorded
from flows.publish_contract import publish_contract
from flows.release import release
from flows.rollback import rollback
from model_packages.oci.reference import PackageRef
from tasks.release.targets.table import open_target

_FIRST_REQUESTS = 3000


@dataclass(frozen=True)
class Told:
    """What the story came to.

    Attributes:
        package: The release that is live at the end.
        page: The report, which opens offline.
        request_id: One request that was answered.
        url: Where the target answers.
        level: Compliance level claimed and achieved, and what the next one lacks.
    """

    package: PackageRef
    page: Path
    request_id: str
    url: str
    level: dict[str, Any]


async def tell(here: Context, chapters: Chapters, owner: Path | None, *, plant: bool) -> Told:
    """Run every chapter.

    Args:
        here: Where; its ``as_of`` is the demo's.
        chapters: The table that is filled.
        owner: Lock file whose holder's end ends the target; None lets it live on.
        plant: Whether to plant the faults.

    Raises:
        RefusedError: If a stage refuses good data or misses a planted fault.
    """
    for name in SOURCES:
        path = here.contracts / name / "1.0.0.contract.json"
        with chapters.telling(f"contract {name}", f"caisson contract show {name}") as chapter:
            report = await publish_contract(str(path), as_of=AS_OF)
            chapter.note = f"schema {short(report.facts['schema_hash'])}"
            _demand(report)
    night = await _nightly(here, chapters)
    first = candidate(here, MODEL, None)
    target = open_target(here.workspace, TARGET, while_locked=owner)
    good = sources.resolve(here, MODEL, _tree(night))
    new = str(night.facts["bundles"][good.training.definition][2])
    passengers = Passengers(here, good, new, target)
    try:
        with traffic.supplied(passengers.pump, owner):
            told = await _serve(here, chapters, passengers, good, _first(here, night) or first)
    finally:
        passengers.close()
    if plant:
        training = good.training
        planted = faults.Good(
            good, told.package, training.feature_version, training.holdout_version
        )
        await _plant(here, chapters, planted)
    return told


async def _once(
    here: Context, flow: Callable[..., Coroutine[Any, Any, Report]], **parameters: Any
) -> Report:
    """Run a flow unless the same work is on record, exactly as its command does."""
    name = f"{flow.__module__}.{flow.__name__}"
    with recall.claimed(here, name, parameters) as claim:
        return claim.recorded or claim.record(await flow(**parameters))


async def _nightly(here: Context, chapters: Chapters) -> Report:
    with chapters.telling("nightly") as chapter:
        night = await _once(here, nightly, as_of=AS_OF, target=TARGET)
        chapter.verdict = night.verdict
        chapter.note = f"{len(night.facts['stages'])} stages over data, features and model"
    for stage, seconds in night.measurements["seconds"].items():
        said = [item for item in night.facts["stages"] if item["stage"] == stage]
        verdicts = {item["verdict"] for item in said}
        worst = next((v for v in ("error", "fail", "skip") if v in verdicts), "pass")
        chapters.add(f"  {stage}", worst, seconds, f"{len(said)} subject{'s' * (len(said) > 1)}")
    _demand(night)
    return night


async def _serve(
    here: Context, chapters: Chapters, passengers: Passengers, good: sources.Source, ref: PackageRef
) -> Told:
    """Deploy, answer, change the configuration, canary it, go back."""
    with chapters.telling("deploy", "caisson status") as chapter:
        first = await deploy(MODEL, TARGET, ref.digest)
        chapter.note = _canary(first)
        _demand(first)
    with chapters.telling("December's flights ask over HTTP", flow=False) as chapter:
        passengers.send(_FIRST_REQUESTS)
        rows, area = passengers.accuracy()
        times = passengers.answers.percentiles()
        chapter.note = (
            f"{rows} answers, ROC AUC {area:.3f}, p50 {times['p50']} ms, p99 {times['p99']} ms"
        )
        if passengers.answers.errors:
            raise RefusedError(f"requests failed: {dict(passengers.answers.errors)}")
    changed = _reconfigured(here, good)
    with chapters.telling("release with another batch size", f"caisson release {MODEL}") as chapter:
        second = await _once(here, release, model=MODEL, source=changed, target=TARGET, as_of=AS_OF)
        chapter.note = f"package {short(second.facts['digest'])}"
        _demand(second)
    with chapters.telling("deploy with a canary", "caisson status") as chapter:
        report = await deploy(MODEL, TARGET, second.facts["digest"])
        chapter.note = _canary(report)
        _demand(report)
    with chapters.telling("rollback", f"caisson rollback {MODEL}") as chapter:
        report = await rollback(MODEL, TARGET, "the demo goes back")
        back = PackageRef(MODEL, Digest(report.facts["package_digest"]), ref.set_digest)
        chapter.note = f"live again: {short(back.digest)}"
        _demand(report)
    passengers.send(100)
    last = passengers.answers.last
    if last is None or last.package_digest != back.digest:
        raise RefusedError("the target does not answer with the release that was brought back")
    with chapters.telling("report", flow=False) as chapter:
        shown = page.write(here, good, back, [first, report], passengers.answers)
        chapter.note = f"file://{shown}"
    url = str(report.measurements["url"])
    return Told(back, shown, last.request_id, url, _level(recorded(here, good)))


async def _plant(here: Context, chapters: Chapters, good: faults.Good) -> None:
    """Plant the faults and demand that each met its stage and no other."""

    def say(fault: faults.Fault, seconds: float) -> None:
        verdict = "pass" if fault.caught else "fail"
        chapters.add(
            f"fault: {fault.planted}", verdict, seconds, f"refused by {', '.join(fault.refused)}"
        )
        if not chapters.quiet:
            from flows.cli import console

            console.note(f"· planted: {fault.planted}\n  {fault.stage} says: {fault.message}")

    before = faults.inventory(here)
    found = await faults.plant_all(here, good, say)
    if faults.inventory(here) != before:
        raise RefusedError(
            "planted faults left something behind", location=str(here.workspace.home)
        )
    missed = [fault for fault in found if not fault.caught]
    if missed:
        raise RefusedError(
            "; ".join(
                f"{item.planted}: {item.stage} alone should refuse, got {item.refused or 'nobody'}"
                for item in missed
            )
        )


def _level(reports: Sequence[Report]) -> dict[str, Any]:
    """Return what the audit said of the level."""
    facts = next(report.facts for report in reports if report.stage == "compliance")
    names = ("claimed_level", "achieved_level", "next_level")
    return {
        **{name: facts[name] for name in names},
        "lacking": [f"{item['id']} {item['title']}" for item in facts["lacking"]],
    }


def _reconfigured(here: Context, good: sources.Source) -> Digest:
    """Store the package source with another batch size; nothing else differs."""
    folder = here.workspace.tmp / "reconfigured"
    content.checkout_tree(here.workspace.objects, good.tree, folder)
    path = folder / "config.yaml"
    text = files.read_bounded(path, 2**16).decode()
    lines = [
        "max_batch_size: 32" if line.startswith("max_batch_size:") else line
        for line in text.splitlines()
    ]
    files.write_atomic(path, ("\n".join(lines) + "\n").encode())
    return content.put_tree(here.workspace.objects, folder)


def _tree(night: Report) -> str:
    return str(next(item["source"] for item in night.facts["releases"]))


def _first(here: Context, night: Report) -> PackageRef | None:
    made = night.facts["releases"]
    return candidate(here, MODEL, made[0]["digest"]) if made else None


def _canary(report: Report) -> str:
    canary = report.facts["canary"]
    if canary["outcome"] == "skip":
        return f"canary skipped: {canary['reason']}"
    return (
        f"canary {canary['outcome']}: {canary['answers']} answers at share {canary['share']},"
        f" {canary['needed']} needed"
    )


def _demand(*reports: Report) -> None:
    """Stop the story if something good was refused."""
    refused: Sequence[Report] = [report for report in reports if report.verdict != "pass"]
    if refused:
        first = refused[0]
        finding = next((item for item in first.findings if item.blocks), None)
        said = finding.message if finding else first.reason
        raise RefusedError(
            f"{first.stage} refused {first.subject}: {said}",
            location=finding.location if finding else "",
            remedy=finding.remedy if finding else "",
        )
