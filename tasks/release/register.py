"""Registers a pushed package as a candidate in the ledger: the gate's result, bound by digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base import failpoint, files
from contracts.base.errors import ReleaseRefused
from contracts.base.report import Report, conclude
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger
from tasks.release import binding
from tasks.release.journal import Journal, lock_path, settle
from tasks.workspace import Workspace

STAGE = "register"


def register(
    workspace: Workspace,
    ref: PackageRef,
    bound: ReleaseFacts,
    reports: Sequence[Report],
    *,
    signature: Mapping[str, Any],
    by: str = "",
) -> Report:
    """Write the candidate record of a package, once.

    Args:
        workspace: The ledger and its locks.
        ref: The pushed package.
        bound: What its signature binds.
        reports: The reports of the gate.
        signature: Facts of the signature: its statement's digest and who signed.
        by: Who released it.

    Returns:
        pass; ``measurements`` holds ``unchanged: true`` if this very candidate was on record.

    Raises:
        ReleaseRefused: If a required report is missing, failed or was skipped, with all reasons,
            or if the reports are not those that were signed.
    """
    binding.require_passed(ref, reports)
    _require_signed(ref, bound, reports)
    body = {
        "model": ref.repository,
        "set_digest": ref.set_digest,
        "binding": bound.to_dict(),
        "achieved_level": bound.achieved_level,
        "verdicts": {report.stage: report.verdict for report in reports},
        "waivers": waivers(reports),
        "signature": dict(signature),
    }
    with files.locked(lock_path(workspace.locks, ref)):
        ledger = Ledger(workspace.ledger_path, workspace.clock)
        settle(ledger, str(ref))
        earlier = candidate(ledger, ref)
        if earlier is not None and _same(earlier, body):
            return _report(ref, body, {"unchanged": True})
        journal = Journal.begin(ledger, "release", str(ref), ref.to_dict())
        failpoint.hit("release.register.before")
        with journal.effect("register"):
            ledger.append("candidate", ref.digest, {**body, "by": by})
            failpoint.hit("release.register.inside")
        failpoint.hit("release.register.after")
        journal.close("done")
    return _report(ref, body, {})


def candidate(ledger: Ledger, ref: PackageRef) -> Record | None:
    """Return the newest candidate record of a package, or None."""
    records = ledger.records("candidate", ref.digest)
    ours = [record for record in records if record.body["model"] == ref.repository]
    return ours[-1] if ours else None


def waivers(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return the waivers the compliance report used, with their expiry."""
    for report in reports:
        if report.stage == "compliance":
            return [dict(item) for item in report.facts.get("waivers", [])]
    return []


def _same(record: Record, body: Mapping[str, Any]) -> bool:
    return all(record.body.get(name) == value for name, value in body.items())


def _require_signed(ref: PackageRef, bound: ReleaseFacts, reports: Sequence[Report]) -> None:
    given = {report.stage: report.digest for report in reports}
    if given != dict(bound.reports):
        changed = sorted(
            stage
            for stage in given.keys() | bound.reports.keys()
            if given.get(stage) != bound.reports.get(stage)
        )
        raise ReleaseRefused(
            f"reports differ from those that were signed: {', '.join(changed)}",
            location=str(ref),
            remedy="Sign again: `caisson release`.",
        )


def _report(ref: PackageRef, body: Mapping[str, Any], measurements: dict[str, Any]) -> Report:
    facts = {**ref.to_dict(), **body}
    return conclude(STAGE, str(ref), [], facts=facts, measurements=measurements)
