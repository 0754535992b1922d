"""Which of several signatures admits a package: the one whose facts are the newest candidate's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.base.errors import ReleaseRefused
from model_packages.oci import push
from model_packages.oci import sign as signing
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from tasks.release import admission
from tasks.release.admission import Admission
from tasks.release.sign import key
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, policy

BOTH = {"roles": ["builder", "approver"], "threshold": 2}


def admit(prepared: Prepared, **changes: object) -> Admission:
    scene, ref = prepared.scene, prepared.refs[0]
    return admission.admit(scene.workspace, scene.ledger, ref, policy(**changes))  # type: ignore[arg-type] # plain data


def approve(prepared: Prepared, facts: ReleaseFacts) -> None:
    """Add the approver's signature over some facts to the registry."""
    scene, ref = prepared.scene, prepared.refs[0]
    built = LayoutStore(scene.workspace.packages(MODEL))
    signing.sign(built, ref, facts, key(scene.workspace, "approver"))
    push.push(built, LayoutStore(scene.workspace.registry(MODEL)), ref.digest)


def test_the_newest_candidate_counts(prepared: Prepared) -> None:
    """A package examined anew enters by what was found last, in either order of its levels."""
    scene, ref = prepared.scene, prepared.refs[0]
    assert admit(prepared).facts.achieved_level == "L1"
    scene.release(ref, level="L2")
    assert admit(prepared).facts.achieved_level == "L2"
    scene.release(ref, level="none")
    with pytest.raises(ReleaseRefused, match="demands more"):
        admit(prepared)


def test_the_statement_is_the_one_that_was_chosen(prepared: Prepared) -> None:
    """What the deployment records is the signature of the facts it went by."""
    scene, ref = prepared.scene, prepared.refs[0]
    first = admit(prepared).statement
    signed = scene.release(ref, level="L2")[0]
    assert admit(prepared).statement == signed.facts["signature"]["statement"] != first


def test_releasing_older_facts_again_is_unchanged(prepared: Prepared) -> None:
    """Facts that were signed before are found among several signatures."""
    scene, ref = prepared.scene, prepared.refs[0]
    scene.release(ref, level="L2")
    signed = scene.release(ref)[0]
    assert signed.measurements == {"unchanged": True}


def test_roles_must_agree(prepared: Prepared) -> None:
    """Two roles that signed different facts are not two signatures of one release."""
    facts = admit(prepared).facts
    approve(prepared, replace(facts, achieved_level="L3"))
    with pytest.raises(ReleaseRefused, match="no such candidate"):
        admit(prepared, signatures=BOTH)
    approve(prepared, facts)
    admitted = admit(prepared, signatures=BOTH)
    assert [signer.role for signer in admitted.signers] == ["builder", "approver"]
    assert len(admitted.builders) == 1
