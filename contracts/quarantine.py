"""Writes the good and the bad rows of a batch apart: write, audit, then publish in one rename.

Good rows keep the batch's file names, order and schema. Each bad row carries ``broken_<n>``, a
bit mask over the rules listed in ``quarantine.json``. Nothing is visible before all is written
and the good part has been judged again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import canonical, clock, digest, failpoint
from contracts.base import files as base_files
from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, IntegrityError
from contracts.base.report import Report
from contracts.engine import split
from contracts.judge import judge
from contracts.rules import Rule
from contracts.sources import files
from contracts.sources.interface import Batch
from contracts.terms import Contract

ACCEPTED = "accepted"
REJECTED = "rejected"
RECORD = "quarantine.json"


class AuditRefused(IntegrityError):
    """The rows that are left after quarantine do not keep the contract."""

    code = "quarantine-audit"


@dataclass(frozen=True)
class Quarantine:
    """A batch whose bad rows were put aside.

    Attributes:
        folder: Where both parts and the record are.
        accepted: The good rows, a batch of its own.
        good_rows: How many.
        bad_rows: How many were put aside.
        rules: Ids of the rules, in the order of the bits.
        derived_from: Digest of the batch as delivered.
    """

    folder: Path
    accepted: Batch
    good_rows: int
    bad_rows: int
    rules: tuple[str, ...]
    derived_from: Digest


def put_aside(contract: Contract, batch: Batch, verdict: Report, root: Path) -> Quarantine:
    """Split a batch by the rules that its report says are broken.

    Args:
        contract: The contract.
        batch: The batch as delivered.
        verdict: Its report; only rules that rows can break may have failed.
        root: Folder below which quarantined batches are kept.

    Returns:
        What was put aside; the same again if it was done before.

    Raises:
        AuditRefused: If the good rows do not keep the contract either.
        DigestMismatch: If they were changed since, or the batch while it was read.
        UnavailableError: If nothing can be written.
    """
    names = set(verdict.facts["broken_rules"])
    broken = [rule for rule in contract.all_rules if rule.id in names]
    content = digest.of_json([batch.digest, contract.digest])
    target = root / contract.name / f"{batch.name}-{digest.short(content)}"
    if not target.exists():
        with base_files.staging(target) as aside:
            _write(contract, batch, broken, aside)
            failpoint.hit("quarantine.publish.before")
        failpoint.hit("quarantine.publish.after")
    return _open(contract, batch, target)


def _write(contract: Contract, batch: Batch, broken: Sequence[Rule], aside: Path) -> None:
    good, bad = aside / ACCEPTED, aside / REJECTED
    good.mkdir()
    bad.mkdir()
    counts = split.write(contract, batch.paths, broken, good, bad)
    files.verify(batch)
    lineage = {**batch.lineage, "derived_from": batch.digest, "quarantine": contract.identity}
    description = {"logical_time": clock.to_text(batch.logical_time), "lineage": lineage}
    (good / files.DESCRIPTION).write_bytes(canonical.dumps(description) + b"\n")
    accepted = files.read_folder(good, batch.source, batch.name)
    _audit(contract, accepted)
    record = {
        "contract": contract.identity,
        "contract_digest": contract.digest,
        "batch": batch.name,
        "batch_digest": batch.digest,
        "rules": [rule.id for rule in broken],
        "good_rows": counts.good,
        "bad_rows": counts.bad,
        "accepted_digest": accepted.digest,
    }
    (aside / RECORD).write_bytes(canonical.dumps(record) + b"\n")


def _audit(contract: Contract, accepted: Batch) -> None:
    """Judge the good part as if it had been delivered so."""
    again = judge(contract, accepted)
    if again.verdict == "fail":
        first = next(finding for finding in again.findings if finding.blocks)
        raise AuditRefused(
            "the rows that are left do not keep the contract either",
            expected="a batch that passes without the bad rows",
            found=first.message,
            location=again.subject,
            remedy="The whole batch is refused; have it delivered again.",
        )


def _open(contract: Contract, batch: Batch, folder: Path) -> Quarantine:
    record: Mapping[str, Any] = base_files.read_json(folder / RECORD)
    accepted = files.read_folder(folder / ACCEPTED, batch.source, batch.name)
    if accepted.digest != record["accepted_digest"]:
        raise DigestMismatch(
            "the good rows of a quarantined batch were changed",
            expected=record["accepted_digest"],
            found=accepted.digest,
            location=str(folder),
            remedy="Remove the folder and validate the batch again.",
        )
    return Quarantine(
        folder=folder,
        accepted=accepted,
        good_rows=record["good_rows"],
        bad_rows=record["bad_rows"],
        rules=tuple(record["rules"]),
        derived_from=digest.parse(record["batch_digest"], where=contract.identity),
    )
