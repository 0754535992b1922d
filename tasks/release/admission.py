"""Whether a registered package may enter a target: signature and policy, on today's registry.

1. The registry shows the package, unchanged.
2. Enough of the roles the policy names have signed it, with keys that are trusted today.
3. The ledger has it as a candidate, with the facts that they signed; of several, the newest counts.
4. The level it achieved suffices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base.errors import ReleaseRefused, SignatureInvalid
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import VerifiedSignature, verify_signatures
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger
from tasks.policy import LEVELS, TargetPolicy
from tasks.release.kept import Signer
from tasks.release.trust import trusted
from tasks.workspace import Workspace

Signed = tuple[Signer, VerifiedSignature]


@dataclass(frozen=True)
class Admission:
    """A package that may enter a target.

    Attributes:
        ref: The package.
        facts: What its signature binds to it.
        statement: Digest of the signed statement's manifest.
        signers: Who signed.
        waivers: Exceptions the audit used, with their expiry.
        author: Who released it.
    """

    ref: PackageRef
    facts: ReleaseFacts
    statement: str
    signers: tuple[Signer, ...]
    waivers: tuple[Mapping[str, Any], ...]
    author: str

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Ids of the keys that signed."""
        return tuple(signer.key.key_id for signer in self.signers)

    @property
    def builders(self) -> tuple[str, ...]:
        """Ids of the keys that signed as builder."""
        return tuple(item.key.key_id for item in self.signers if item.role == "builder")


def admit(workspace: Workspace, ledger: Ledger, ref: PackageRef, policy: TargetPolicy) -> Admission:
    """Let a package enter, or say everything that speaks against it.

    Raises:
        SignatureInvalid: If it is unsigned, or too few trusted keys signed it.
        ReleaseRefused: If it is no candidate, or the policy demands more than it achieved.
        RegistryUnavailable: If the registry does not show it.
        DigestMismatch: If the registry's bytes were changed.
    """
    signed = _signatures(workspace, ref, policy)
    candidate, found = _candidate(ledger, ref, signed, policy.signatures.threshold)
    signature = found[0][1]
    _require_level(ref, signature.facts, policy)
    return Admission(
        ref=ref,
        facts=signature.facts,
        statement=signature.manifest,
        signers=tuple(signer for signer, _ in found),
        waivers=tuple(candidate.body.get("waivers", ())),
        author=str(candidate.body.get("by", "")),
    )


def _signatures(workspace: Workspace, ref: PackageRef, policy: TargetPolicy) -> list[Signed]:
    """Return every verified signature, of at least as many roles as the threshold says."""
    store = LayoutStore(workspace.registry(ref.repository))
    demand = policy.signatures
    found: list[Signed] = []
    troubles: list[SignatureInvalid] = []
    for role in demand.roles:
        known = {key.key_id: key for key in trusted(workspace, demand, role)}
        try:
            signatures = verify_signatures(store, ref.digest, known.values())
        except SignatureInvalid as err:
            troubles.append(err)
            continue
        found += [(Signer(role, known[item.key_id]), item) for item in signatures]
    roles = sorted({signer.role for signer, _ in found})
    if len(roles) < demand.threshold:
        if len(troubles) == 1:
            raise troubles[0]
        raise SignatureInvalid(
            f"too few signatures: {'; '.join(err.message for err in troubles)}",
            expected=f"{demand.threshold} of {', '.join(demand.roles)}",
            found=", ".join(roles) or "none",
            location=str(ref),
            remedy="Release it with keys the policy trusts.",
        )
    return found


def _candidate(
    ledger: Ledger, ref: PackageRef, signed: Sequence[Signed], threshold: int
) -> tuple[Record, list[Signed]]:
    """Return the newest candidate record whose very facts enough roles signed, and who did."""
    records = ledger.records("candidate", ref.digest)
    for record in reversed(records):
        if record.body.get("model") != ref.repository:
            continue
        ours = _one_a_role(signed, record.body.get("binding"))
        if len(ours) >= threshold:
            return record, ours
    raise ReleaseRefused(
        "package is signed, but the ledger has no such candidate",
        expected="a candidate record with the facts that were signed",
        found=f"{len(records)} records of the package with other facts",
        location=str(ref),
        remedy="Release it: `caisson release` registers what it signed.",
    )


def _one_a_role(signed: Sequence[Signed], binding: Any) -> list[Signed]:
    """Return the first signature of each role over these facts."""
    found: dict[str, Signed] = {}
    for signer, signature in signed:
        if signature.facts.to_dict() == binding:
            found.setdefault(signer.role, (signer, signature))
    return list(found.values())


def _require_level(ref: PackageRef, facts: ReleaseFacts, policy: TargetPolicy) -> None:
    levels: tuple[str, ...] = LEVELS
    achieved = levels.index(facts.achieved_level) if facts.achieved_level in levels else -1
    if achieved < levels.index(policy.level):
        raise ReleaseRefused(
            f"target {policy.target} demands more than the audit found",
            expected=f"level {policy.level}",
            found=facts.achieved_level or "no level",
            location=str(ref),
            remedy="Remove the findings the compliance report names, and release again.",
        )
