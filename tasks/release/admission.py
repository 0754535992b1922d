"""Whether a registered package may enter a target: signature and policy, on today's registry.

1. The registry shows the package, unchanged.
2. Enough of the roles the policy names have signed it, with keys that are trusted today.
3. The ledger has it as a candidate, with the facts that were signed.
4. The level it achieved suffices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.base.errors import ReleaseRefused, SignatureInvalid
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import VerifiedSignature, verify_signature
from tasks.ledger.record import Record
from tasks.ledger.store import Ledger
from tasks.policy import LEVELS, TargetPolicy
from tasks.release.kept import Signer
from tasks.release.trust import trusted
from tasks.workspace import Workspace


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
    found = _signatures(workspace, ref, policy)
    signature = found[0][1]
    candidate = _candidate(ledger, ref, signature.facts)
    _require_level(ref, signature.facts, policy)
    return Admission(
        ref=ref,
        facts=signature.facts,
        statement=signature.manifest,
        signers=tuple(signer for signer, _ in found),
        waivers=tuple(candidate.body.get("waivers", ())),
        author=str(candidate.body.get("by", "")),
    )


def _signatures(
    workspace: Workspace, ref: PackageRef, policy: TargetPolicy
) -> list[tuple[Signer, VerifiedSignature]]:
    """Return one verified signature for each role that signed, at least the threshold."""
    store = LayoutStore(workspace.registry(ref.repository))
    demand = policy.signatures
    found: list[tuple[Signer, VerifiedSignature]] = []
    troubles: list[SignatureInvalid] = []
    for role in demand.roles:
        known = trusted(workspace, demand, role)
        try:
            signature = verify_signature(store, ref.digest, known)
        except SignatureInvalid as err:
            troubles.append(err)
            continue
        key = next(key for key in known if key.key_id == signature.key_id)
        found.append((Signer(role, key), signature))
    if len(found) < demand.threshold:
        if len(troubles) == 1:
            raise troubles[0]
        raise SignatureInvalid(
            f"too few signatures: {'; '.join(err.message for err in troubles)}",
            expected=f"{demand.threshold} of {', '.join(demand.roles)}",
            found=", ".join(signer.role for signer, _ in found) or "none",
            location=str(ref),
            remedy="Release it with keys the policy trusts.",
        )
    return found


def _candidate(ledger: Ledger, ref: PackageRef, facts: ReleaseFacts) -> Record:
    """Return the newest candidate record of a package with the facts that were signed."""
    records = ledger.records("candidate", ref.digest)
    signed = facts.to_dict()
    ours = [
        record
        for record in records
        if record.body.get("model") == ref.repository and record.body.get("binding") == signed
    ]
    if not ours:
        raise ReleaseRefused(
            "package is signed, but the ledger has no such candidate",
            expected="a candidate record with the facts that were signed",
            found=f"{len(records)} records of the package with other facts",
            location=str(ref),
            remedy="Release it: `caisson release` registers what it signed.",
        )
    return ours[-1]


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
