"""Approvals: signed answers of people to one exact request.

A request lists the digests of what is to be decided: package, files, contract, bundle, reports and
policy. An answer names the request's digest and is signed with an approver's key, so it is void as
soon as anything changed, and nobody else can give it. Where the policy demands none, that is
recorded as such and never looks like an approval.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from contracts.base import canonical, clock, digest
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, ReleaseRefused
from model_packages.oci.bundle import encode
from model_packages.oci.keys import PrivateKey, PublicKey
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger
from tasks.policy import TargetPolicy
from tasks.release.admission import Admission

Decision = Literal["approve", "reject"]

PAYLOAD = "application/vnd.caisson.approval.v0+json"


@dataclass(frozen=True)
class Request:
    """What is to be decided.

    Attributes:
        model: Name of the model.
        target: Where it shall run.
        package: Digest of the package.
        facts: What its signature binds: files, contract, bundle, code, reports.
        policy: Digest of the target's policy.
    """

    model: str
    target: str
    package: Digest
    facts: Mapping[str, Any]
    policy: Digest

    @property
    def digest(self) -> Digest:
        """Identity of the request; anything that changes makes another one."""
        return digest.of_json(asdict(self))

    @property
    def subject(self) -> str:
        """What the ledger calls the place concerned."""
        return f"{self.model}/{self.target}"


@dataclass(frozen=True)
class Approved:
    """The outcome of asking.

    Attributes:
        status: ``not-required`` or ``granted``.
        request: Digest of the request.
        approvers: Who approved, and their keys' ids.
        reason: Why none was required; empty otherwise.
    """

    status: Literal["not-required", "granted"]
    request: Digest
    approvers: tuple[Mapping[str, str], ...] = ()
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "approvers": [dict(item) for item in self.approvers]}


def request(admitted: Admission, target: str, policy: TargetPolicy) -> Request:
    """Return the request to let an admitted package run in a target."""
    ref = admitted.ref
    facts = admitted.facts.to_dict()
    return Request(ref.repository, target, ref.digest, facts, policy.digest)


def answer(
    ledger: Ledger,
    asked: Request,
    key: PrivateKey,
    *,
    decision: Decision,
    by: str,
    reason: str,
    now: datetime,
    valid_for: timedelta = timedelta(days=7),
) -> Record:
    """Sign an answer to a request and put it on record.

    Args:
        ledger: Where to.
        asked: The request.
        key: The approver's key.
        decision: The answer.
        by: Who answers.
        reason: Why.
        now: The present.
        valid_for: How long the answer stands.
    """
    content = {
        "request": asked.digest,
        "decision": decision,
        "by": by,
        "reason": reason,
        "at": clock.to_text(now),
        "expires": clock.to_text(now + valid_for),
    }
    signature = key.sign(encode(PAYLOAD, canonical.dumps(content)))
    body = {
        "answer": content,
        "key_id": key.public.key_id,
        "signature": base64.b64encode(signature).decode("ascii"),
    }
    return ledger.append("approval", asked.subject, body)


def require(
    ledger: Ledger,
    asked: Request,
    policy: TargetPolicy,
    trusted: Iterable[PublicKey],
    *,
    builders: Sequence[str],
    author: str,
    now: datetime,
) -> Approved:
    """Say that enough people approved, or that none had to.

    Args:
        ledger: Where answers are.
        asked: The request.
        policy: How many are demanded.
        trusted: The approvers' keys.
        builders: Ids of the keys that signed the package.
        author: Who released it; nobody approves their own release.
        now: The present.

    Raises:
        ReleaseRefused: If too few answers stand, or one rejects; says why each other one is void.
    """
    demand = policy.approvals
    if demand.required == 0:
        reason = f"the policy of {policy.target} demands no approval"
        return Approved("not-required", asked.digest, reason=reason)
    barred = frozenset(builders) if demand.not_the_builder else frozenset()
    judge = _Judge(asked.digest, {key.key_id: key for key in trusted}, barred, author, now)
    newest = {record.body.get("key_id"): record for record in _answers(ledger, asked)}
    standing, void = [], []
    for record in newest.values():
        problem = judge.problem(record.body)
        if problem:
            void.append(f"record {record.number} {problem}")
        else:
            standing.append(record.body)
    rejected = [body["answer"] for body in standing if body["answer"]["decision"] == "reject"]
    names = {body["answer"]["by"]: body["key_id"] for body in standing}
    if rejected or len(names) < demand.required:
        raise _missing(asked, demand.required, len(names), rejected, void)
    people = tuple({"by": name, "key_id": key_id} for name, key_id in sorted(names.items()))
    return Approved("granted", asked.digest, people)


@dataclass(frozen=True)
class _Judge:
    """Decides whether one answer counts."""

    asked: Digest
    trusted: Mapping[str, PublicKey]
    barred: frozenset[str]
    author: str
    now: datetime

    def problem(self, body: Mapping[str, Any]) -> str:
        """Return why an answer is void; empty if it stands."""
        try:
            return self._problem(body, body["answer"])
        except (KeyError, TypeError, AttributeError, binascii.Error, CaissonError) as err:
            return f"cannot be read: {err!r}"

    def _problem(self, body: Mapping[str, Any], content: Mapping[str, Any]) -> str:
        key = self.trusted.get(body["key_id"])
        if key is None:
            return "is signed by a key that is not an approver's"
        signature = base64.b64decode(body["signature"], validate=True)
        if not key.verify(encode(PAYLOAD, canonical.dumps(content)), signature):
            return "has a signature that does not fit"
        if content["request"] != self.asked:
            return "answers another request: something changed since"
        if clock.from_text(content["expires"]) <= self.now:
            return f"expired on {content['expires']}"
        if body["key_id"] in self.barred or (self.author and content["by"] == self.author):
            return "is by who built the release"
        return ""


def _answers(ledger: Ledger, asked: Request) -> list[Record]:
    return ledger.records("approval", asked.subject)


def _missing(
    asked: Request,
    required: int,
    given: int,
    rejected: Sequence[Mapping[str, Any]],
    void: Sequence[str],
) -> ReleaseRefused:
    reasons = [f"rejected by {item['by']}: {item['reason']}" for item in rejected] + list(void)
    detail = f": {'; '.join(reasons)}" if reasons else ""
    return ReleaseRefused(
        f"approval is missing{detail}",
        expected=f"{required} approvals of request {asked.digest}",
        found=f"{given}",
        location=asked.subject,
        remedy="Ask the approvers; after any change they have to answer again.",
    )
