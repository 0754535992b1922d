"""Validates one batch for one consumer: fuse, verdict, enforcement, alert."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from contracts import enforcement, fuse, judge, quarantine
from contracts.base import clock, report
from contracts.base.errors import DigestMismatch, FuseOpen, RefusedError
from contracts.base.progress import Progress
from contracts.base.report import Finding, Report
from contracts.catalog import Catalog
from contracts.enforcement import Decision
from contracts.fuse import Fuse, TrialRunning
from contracts.quarantine import AuditRefused
from contracts.sources import files
from contracts.sources.interface import Batch
from contracts.terms import Contract
from tasks import reuse
from tasks.alerts import wiring
from tasks.alerts.interface import Alert, Level, Sink
from tasks.alerts.outbox import Outbox
from tasks.workspace import Workspace

STAGE = judge.STAGE
_AREAS = ("tasks/validate",)
_TRIAL_LOOKS = 200
_TRIAL_LOOK_S = 0.05


@dataclass(frozen=True)
class Call:
    """One validation: what, for whom, and when.

    Attributes:
        workspace: The installation.
        contract: What is promised.
        batch_name: The delivery.
        consumer: Who loads it.
        outbox: Whom to tell.
    """

    workspace: Workspace
    contract: Contract
    batch_name: str
    consumer: str
    outbox: Outbox

    @property
    def subject(self) -> str:
        """Contract and batch."""
        return f"{self.contract.identity}#{self.batch_name}"

    def now(self) -> datetime:
        """Return wall time."""
        return self.workspace.clock.now()


def catalog(workspace: Workspace) -> Catalog:
    """Return the published contracts of the checkout."""
    return Catalog(workspace.root / "contracts" / "published")


def delivered(workspace: Workspace, contract_name: str, as_of: datetime) -> list[str]:
    """Return the names of a source's batches that are for a moment up to ``as_of``."""
    location = catalog(workspace).load(contract_name).location
    return files.delivered(workspace.sources, location, as_of)


def reset_fuse(
    workspace: Workspace, contract_name: str, consumer: str, *, who: str, why: str
) -> Fuse:
    """Let one batch be tried although the fuse of a contract and consumer is open.

    Raises:
        InputError: If nobody or no reason is named.
    """
    contract = catalog(workspace).load(contract_name)
    now = workspace.clock.now()
    return fuse.reset(workspace.objects, contract, consumer, who=who, why=why, now=now)


def accepted_batch(workspace: Workspace, verdict: Report) -> Batch:
    """Return what a validated batch lets through: all of it, or the rows not in quarantine.

    Args:
        workspace: The installation.
        verdict: A report of this stage.

    Raises:
        RefusedError: If the report does not pass.
        DigestMismatch: If what lies there is not what was accepted.
    """
    accepted = verdict.facts.get("accepted")
    if verdict.verdict != "pass" or accepted is None:
        raise RefusedError("the batch was not accepted", location=verdict.subject)
    source, name = verdict.facts["source"], verdict.facts["batch"]
    if accepted["folder"] is None:
        contract = catalog(workspace).load(verdict.facts["contract"])
        batch = files.open_batch(workspace.sources, contract, name)
    else:
        batch = files.read_folder(workspace.home / accepted["folder"], source, name)
    if batch.digest != accepted["digest"]:
        raise DigestMismatch(
            "the batch is not the one that was accepted",
            expected=accepted["digest"],
            found=batch.digest,
            location=verdict.subject,
            remedy="Validate it again.",
        )
    return batch


def validate(
    workspace: Workspace,
    contract_name: str,
    batch_name: str,
    as_of: datetime | None = None,
    consumer: str = "local",
    *,
    sinks: Sequence[Sink] = (),
) -> Report:
    """Validate a batch and do what its contract says.

    Args:
        workspace: The installation.
        contract_name: ``owner/source`` for the latest version, or ``owner/source@1.2.0``.
        batch_name: Name of the batch.
        as_of: The moment of this run; the batch's own logical time if absent.
        consumer: Who loads the data; it has a fuse of its own.
        sinks: Where to send alerts besides the local file.

    Returns:
        A report that passes only if the batch, or what is left of it after quarantine, may be
        loaded. The fact ``action`` is accept, warn, quarantine, reject or refuse (fuse open).
    """
    started = workspace.clock.monotonic()
    contract = catalog(workspace).load(contract_name)
    call = Call(workspace, contract, batch_name, consumer, wiring.outbox(workspace, sinks))
    # (1) the fuse, before a byte is read
    try:
        before = _admit(call)
    except FuseOpen as err:
        return _refused(call, err)
    # (2) the verdict, once for one content
    try:
        batch = files.open_batch(workspace.sources, contract, batch_name)
        verdict = _judged(call, batch, as_of or batch.logical_time)
    except BaseException:
        if before.state != "closed":
            fuse.release(workspace.objects, contract, consumer)
        raise
    # (3) fuse and people learn how it went
    after = _note(call, batch, verdict)
    _tell(call, verdict, before, after)
    workspace.progress(Progress(STAGE, 1, 1, "batches"))
    seconds = round(workspace.clock.monotonic() - started, 3)
    measured = {**verdict.measurements, "seconds": seconds, "fuse": after.state}
    return replace(verdict, measurements=measured)


def _admit(call: Call) -> Fuse:
    """Ask the fuse; where another batch is on trial, wait a little for how that ends."""
    for _ in range(_TRIAL_LOOKS):
        try:
            return fuse.admit(call.workspace.objects, call.contract, call.consumer, call.now())
        except TrialRunning:
            time.sleep(_TRIAL_LOOK_S)
    return fuse.admit(call.workspace.objects, call.contract, call.consumer, call.now())


def _judged(call: Call, batch: Batch, as_of: datetime) -> Report:
    inputs = {
        "contract": call.contract.digest,
        "source": batch.source,
        "batch": batch.name,
        "digest": batch.digest,
        "logical_time": clock.to_text(batch.logical_time),
        "lineage": dict(batch.lineage),
        "due": batch.logical_time <= as_of,
    }

    def produce() -> Report:
        verdict = judge.judge(call.contract, batch, as_of)
        return _enforced(call, batch, verdict, enforcement.decide(call.contract, verdict))

    def exists(recorded: Report) -> bool:
        folder = recorded.facts["accepted"]["folder"]
        return folder is None or (call.workspace.home / folder).is_dir()

    return reuse.once(call.workspace, STAGE, inputs, produce, areas=_AREAS, exists=exists)


def _enforced(call: Call, batch: Batch, verdict: Report, decision: Decision) -> Report:
    facts = {**verdict.facts, "action": decision.action, "reason": decision.reason}
    if decision.action == "reject":
        return replace(verdict, facts={**facts, "accepted": None})
    whole = {"digest": batch.digest, "rows": verdict.facts["rows"], "folder": None}
    if decision.action == "quarantine":
        return _quarantined(call, batch, verdict, facts)
    if decision.action == "warn":
        verdict = enforcement.warned(verdict)
    return replace(verdict, facts={**facts, "accepted": whole})


def _quarantined(call: Call, batch: Batch, verdict: Report, facts: dict[str, Any]) -> Report:
    try:
        aside = quarantine.put_aside(call.contract, batch, verdict, quarantine_root(call.workspace))
    except AuditRefused as err:
        reason = f"rejected: {err.message}, {err.found}"
        return replace(
            verdict, facts={**facts, "action": "reject", "reason": reason, "accepted": None}
        )
    folder = (aside.folder / quarantine.ACCEPTED).relative_to(call.workspace.home)
    facts["accepted"] = {
        "digest": aside.accepted.digest,
        "rows": aside.good_rows,
        "folder": folder.as_posix(),
    }
    facts["quarantined_rows"] = aside.bad_rows
    why = f"{aside.bad_rows} rows were put in quarantine"
    return replace(enforcement.warned(verdict, why), facts=facts)


def quarantine_root(workspace: Workspace) -> Path:
    """Return the folder of quarantined batches."""
    return workspace.objects_path / "quarantine"


def _note(call: Call, batch: Batch, verdict: Report) -> Fuse:
    return fuse.record(
        call.workspace.objects,
        call.contract,
        call.consumer,
        batch_digest=batch.digest,
        violated=verdict.verdict == "fail",
        reason=f"{batch.name}: {verdict.facts['reason']}"[:500],
        now=call.now(),
    )


def _refused(call: Call, err: FuseOpen) -> Report:
    """Report that nothing was read; the incident of the fuse is open already, or is opened."""
    _trigger(call, "fuse", "critical", err.message, {"fuse": err.found})
    finding = Finding(
        rule="data.fuse-open",
        subject=call.subject,
        location=err.location,
        severity="critical",
        message=f"{err.message}; {err.found}",
        remedy=err.remedy,
    )
    facts = {
        "contract": call.contract.identity,
        "contract_digest": call.contract.digest,
        "batch": call.batch_name,
        "action": "refuse",
        "accepted": None,
        "not_evaluated": sorted(rule.id for rule in call.contract.all_rules),
    }
    return report.conclude(STAGE, call.subject, [finding], facts=facts)


def _tell(call: Call, verdict: Report, before: Fuse, after: Fuse) -> None:
    action, reason = verdict.facts["action"], verdict.facts["reason"]
    incident = f"batch {call.batch_name}"
    if action == "accept":
        _resolve(call, incident, f"batch {call.batch_name} keeps the contract")
    else:
        level: Level = "critical" if action == "reject" else "warning"
        details = {
            "action": action,
            "rules": sorted({finding.rule for finding in verdict.findings}),
            "batch_digest": verdict.facts["batch_digest"],
            "report": verdict.digest,
        }
        _trigger(call, incident, level, f"batch {call.batch_name}: {reason}", details)
    if after.state == "open" and before.state != "open":
        _trigger(call, "fuse", "critical", f"fuse for {call.consumer} is open", {"why": reason})
    elif after.state == "closed":
        _resolve(call, "fuse", f"fuse for {call.consumer} is closed")


def _trigger(
    call: Call, incident: str, level: Level, summary: str, details: dict[str, Any]
) -> None:
    key = _key(call, incident)
    call.outbox.send(Alert("trigger", key, summary, level, *_origin(call), details))


def _resolve(call: Call, incident: str, summary: str) -> None:
    call.outbox.send(Alert("resolve", _key(call, incident), summary, "info", *_origin(call)))


def _key(call: Call, incident: str) -> str:
    return f"caisson/{call.contract.name}/{call.consumer}/{incident}"


def _origin(call: Call) -> tuple[str, str]:
    return call.contract.identity, clock.to_text(call.now())
