"""Signs what passed the gate with the builder's key; the same release has one signature."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.base import failpoint, files
from contracts.base.errors import SignatureInvalid
from contracts.base.report import Report, conclude
from model_packages.oci import keys
from model_packages.oci import sign as signing
from model_packages.oci.keys import PrivateKey
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import VerifiedSignature, verify_signatures
from tasks.ledger.store import Ledger
from tasks.policy import Role
from tasks.release.binding import Origin, bind
from tasks.release.journal import Journal, lock_path, settle
from tasks.workspace import Workspace

STAGE = "sign"


def key(workspace: Workspace, role: Role) -> PrivateKey:
    """Return the key of a role in this home folder, made on first use.

    Roles have distinct keys: who builds cannot approve. These keys are for the machine they are
    on; a policy says whether they count elsewhere.
    """
    return keys.load_or_create(workspace.keys, role)


def sign(
    workspace: Workspace, ref: PackageRef, origin: Origin, reports: Sequence[Report]
) -> Report:
    """Bind origin and reports to a package, and sign that as the builder.

    Args:
        workspace: Keys, and the layout the package was built in.
        ref: The package.
        origin: Where it comes from.
        reports: The reports of the gate.

    Returns:
        pass, with ``binding`` and ``signature`` among the facts; ``measurements`` holds
        ``unchanged: true`` if the very same was signed before.

    Raises:
        ReleaseRefused: If the gate was not passed.
        IntegrityError: If the package's bytes were changed since the gate.
    """
    facts = bind(ref, origin, reports)
    builder = key(workspace, "builder")
    store = LayoutStore(workspace.packages(ref.repository))
    with files.locked(lock_path(workspace.locks, ref)):
        ledger = Ledger(workspace.ledger_path, workspace.clock)
        settle(ledger, str(ref))
        earlier = _signed(store, ref, builder, facts)
        if earlier is not None:
            return _report(ref, facts, earlier, unchanged=True)
        journal = Journal.begin(ledger, "release", str(ref), ref.to_dict())
        failpoint.hit("release.sign.before")
        with journal.effect("sign"):
            manifest = signing.sign(store, ref, facts, builder).digest
            failpoint.hit("release.sign.inside")
        failpoint.hit("release.sign.after")
        journal.close("done")
    made = VerifiedSignature(builder.public.key_id, ref.digest, ref.repository, facts, manifest)
    return _report(ref, facts, made, unchanged=False)


def _signed(
    store: LayoutStore, ref: PackageRef, builder: PrivateKey, facts: ReleaseFacts
) -> VerifiedSignature | None:
    """Return the builder's signature over these very facts, if there is one."""
    try:
        found = verify_signatures(store, ref.digest, [builder.public])
    except SignatureInvalid:
        return None
    return next((signature for signature in found if signature.facts == facts), None)


def _report(
    ref: PackageRef, facts: ReleaseFacts, signature: VerifiedSignature, *, unchanged: bool
) -> Report:
    signed = {"statement": signature.manifest, "key_id": signature.key_id, "role": "builder"}
    return conclude(
        STAGE,
        str(ref),
        [],
        facts={**ref.to_dict(), "binding": facts.to_dict(), "signature": signed},
        measurements={"unchanged": True} if unchanged else {},
    )
