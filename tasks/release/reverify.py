"""Judges a live release again, as of today: keys are revoked, policies tighten, waivers expire.

It never touches the target. What it finds is for people; going back stays their decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from contracts.base import clock
from contracts.base.digest import Digest
from contracts.base.errors import IntegrityError, ReleaseRefused
from contracts.base.report import Finding, Report, conclude
from model_packages.oci.reference import PackageRef
from tasks.ledger.record import Pointer
from tasks.ledger.store import Ledger
from tasks.policy import TargetPolicy
from tasks.release import admission, history
from tasks.workspace import Workspace

STAGE = "reverify"


def reverify(
    workspace: Workspace, pointer: Pointer, policy: TargetPolicy, as_of: datetime
) -> Report:
    """Judge the release that is live of a model in a target.

    Args:
        workspace: Registry, ledger and keys.
        pointer: What is live.
        policy: What the target demands today.
        as_of: The day by which waivers are judged.

    Returns:
        fail if signature, bytes or level would not be let in today; expired waivers are findings.

    Raises:
        UnavailableError: If the registry cannot be read.
    """
    ledger = Ledger(workspace.ledger_path, workspace.clock)
    subject = history.subject(pointer.model, pointer.target)
    facts: dict[str, Any] = {"package_digest": pointer.digest, "policy": policy.digest}
    try:
        admitted = admission.admit(workspace, ledger, _reference(ledger, pointer), policy)
    except (IntegrityError, ReleaseRefused) as err:
        finding = Finding(
            rule=f"release.{err.code}",
            subject=subject,
            location=pointer.target,
            severity="high",
            message=f"the live release would not be let in today: {err}",
            remedy="Release it again under today's policy, or go back: `caisson rollback`.",
            evidence=err.to_dict(),
        )
        return conclude(STAGE, subject, [finding], facts=facts)
    expired = [_expired(subject, item) for item in _over(admitted.waivers, as_of)]
    return conclude(STAGE, subject, expired, facts=facts)


def _reference(ledger: Ledger, pointer: Pointer) -> PackageRef:
    records = ledger.records("candidate", pointer.digest)
    if not records:
        raise ReleaseRefused(
            "the ledger has no candidate record of the live release", location=pointer.digest
        )
    return PackageRef(pointer.model, pointer.digest, Digest(str(records[-1].body["set_digest"])))


def _over(waivers: tuple[Mapping[str, Any], ...], as_of: datetime) -> Iterator[Mapping[str, Any]]:
    for waiver in waivers:
        if clock.from_text(waiver["expires"], where=f"waiver {waiver['id']}") <= as_of:
            yield waiver


def _expired(subject: str, waiver: Mapping[str, Any]) -> Finding:
    return Finding(
        rule="release.waiver-expired",
        subject=subject,
        location=str(waiver["id"]),
        severity="high",
        message=f"waiver {waiver['id']} of the live release expired on {waiver['expires']}",
        remedy="Renew the waiver, or release a package that needs none.",
        evidence=dict(waiver),
    )
