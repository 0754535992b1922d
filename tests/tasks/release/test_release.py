"""Signing, pushing and registering: safe to repeat, refused unless the gate was passed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from contracts.base.errors import DigestMismatch, RegistryUnavailable, ReleaseRefused
from contracts.base.report import Finding, conclude
from model_packages.oci import image
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from tasks.release.binding import REQUIRED, bind
from tasks.release.push import push
from tasks.release.register import register, waivers
from tasks.release.sign import key, sign
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, Scene, origin, reports


def test_release_is_bound_to_everything(prepared: Prepared) -> None:
    """The candidate record and the signature name data, contract, code and reports."""
    scene, ref = prepared.scene, prepared.refs[2]
    signed, pushed, registered = scene.release(ref, by="ada")
    (record,) = scene.ledger.records("candidate", ref.digest)
    binding = record.body["binding"]
    assert binding == signed.facts["binding"]
    assert set(binding["reports"]) == set(REQUIRED)
    assert binding["contract"] == "nyc/flights@1.0.0"
    assert record.body["by"] == "ada"
    assert record.body["signature"]["key_id"] == key(scene.workspace, "builder").public.key_id
    assert pushed.facts["registry"] == f"registry/{MODEL}"
    assert registered.verdict == "pass"


def test_roles_have_their_own_keys(prepared: Prepared) -> None:
    """Who builds cannot sign as approver, and keys can be read by their owner only."""
    workspace = prepared.scene.workspace
    builder, approver = key(workspace, "builder"), key(workspace, "approver")
    assert builder.public.key_id != approver.public.key_id
    assert (workspace.keys / "builder.pem").stat().st_mode & 0o077 == 0


def test_same_release_again_does_nothing(prepared: Prepared) -> None:
    """Releasing the same package again changes nothing and says so at every step."""
    scene, ref = prepared.scene, prepared.refs[0]
    before = len(scene.ledger.records())
    again = scene.release(ref)
    assert [report.measurements.get("unchanged") for report in again] == [True] * 3
    assert len(scene.ledger.records()) == before


def test_changed_facts_are_another_candidate(prepared: Prepared) -> None:
    """The same bytes examined anew are signed and registered anew, and both remain on record."""
    scene, ref = prepared.scene, prepared.refs[0]
    scene.release(ref, level="L2")
    levels = [record.body["achieved_level"] for record in scene.ledger.records("candidate")]
    assert levels.count("L2") == 1
    assert scene.deploy(ref).verdict == "pass"


def test_racing_releases_register_once(prepared: Prepared) -> None:
    """Two releases of one package at once leave one signature and one candidate."""
    scene, ref = prepared.scene, prepared.refs[2]
    threads = [threading.Thread(target=Scene(scene.home).release, args=(ref,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scene.ledger.records("candidate", ref.digest)) == 1
    assert scene.ledger.verify() > 0


def test_every_reason_is_named(prepared: Prepared) -> None:
    """A gate that was not passed is refused with all of its reasons, and nothing is signed."""
    scene, ref = prepared.scene, prepared.refs[2]
    findings = [
        Finding("trust.leak", str(ref), "label", "high", "a feature knows the label", "Remove it."),
        Finding("trust.tie", str(ref), "seats", "high", "a tie", "Look."),
    ]
    told = [item for item in reports(ref, hardware="skip") if item.stage not in ("trust", "verify")]
    told.append(conclude("trust", str(ref), findings))
    with pytest.raises(ReleaseRefused) as caught:
        sign(scene.workspace, ref, origin(), told)
    message = str(caught.value)
    for part in ("verify did not report", "hardware was skipped", "trust.leak", "and 1 more"):
        assert part in message
    assert len(scene.ledger.records("candidate")) == 2


def test_reports_must_be_those_that_were_signed(prepared: Prepared) -> None:
    """Registering other reports than those that were signed is refused by name."""
    scene, ref = prepared.scene, prepared.refs[2]
    facts = bind(ref, origin(), reports(ref))
    other = [
        conclude("verify", str(ref), [], facts={"other": True}) if item.stage == "verify" else item
        for item in reports(ref)
    ]
    with pytest.raises(ReleaseRefused, match="signed: verify"):
        register(scene.workspace, ref, facts, other, signature={})


def test_changed_package_is_not_signed(prepared: Prepared) -> None:
    """A package whose bytes changed after the gate is neither signed nor pushed."""
    scene, ref = prepared.scene, prepared.refs[2]
    path = _weights(LayoutStore(scene.workspace.packages(MODEL)), ref)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DigestMismatch):
        sign(scene.workspace, ref, origin(), reports(ref))


def test_damaged_registry_is_repaired(prepared: Prepared) -> None:
    """Pushing again replaces what the registry lost."""
    scene, ref = prepared.scene, prepared.refs[0]
    _weights(LayoutStore(scene.workspace.registry(MODEL)), ref).unlink()
    report = push(scene.workspace, ref)
    assert report.measurements["blobs_sent"] == 1
    assert scene.deploy(ref).verdict == "pass"


def test_unknown_package_cannot_be_pushed(prepared: Prepared) -> None:
    """A package that was never built here is not pushed."""
    ref = prepared.refs[0]
    stranger = PackageRef("stranger", ref.digest, ref.set_digest)
    with pytest.raises(RegistryUnavailable):
        push(prepared.scene.workspace, stranger)


def test_waivers_come_from_the_audit(prepared: Prepared) -> None:
    """Exceptions the audit used travel with the candidate."""
    ref = prepared.refs[0]
    waiver = {"id": "W-1", "expires": "2026-12-31T00:00:00Z"}
    audit = conclude("compliance", str(ref), [], facts={"waivers": [waiver]})
    assert waivers([audit]) == [waiver]
    assert waivers([]) == []


def test_facts_survive_the_ledger(prepared: Prepared) -> None:
    """What the ledger holds reads back as what was signed."""
    (record,) = prepared.scene.ledger.records("candidate", prepared.refs[0].digest)
    facts = ReleaseFacts.from_dict(record.body["binding"])
    assert facts == bind(prepared.refs[0], origin(), reports(prepared.refs[0]))


def _weights(store: LayoutStore, ref: PackageRef) -> Path:
    """Where the weights of a package are in a layout."""
    largest = max(image.read(store, ref.digest).layers, key=lambda layer: layer.size)
    return store.blob(largest.digest)
