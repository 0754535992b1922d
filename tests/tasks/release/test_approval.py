"""Approvals: signed answers to one exact request."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import InputError, ReleaseRefused
from model_packages.oci import keys
from model_packages.oci.keys import PrivateKey
from tasks.ledger.store import Ledger
from tasks.policy import SignatureDemand, TargetPolicy
from tasks.release import trust
from tasks.release.approval import Approved, Request, answer, require
from tasks.workspace import Workspace
from tests.fakes.clock import START, FixedClock
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import policy

TWO = policy(approvals={"required": 2, "not_the_builder": True})
ONE = policy(approvals={"required": 1, "not_the_builder": True})


class Board:
    """A ledger with three approvers."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(folder / "ledger.db", FixedClock())
        self.keys = [keys.load_or_create(folder / "keys", f"approver{n}") for n in range(3)]
        self.request = Request(
            "tiny", "local", digest.of_bytes(b"package"), {"contract": "c@1.0.0"}, TWO.digest
        )

    def answered(self, number: int, **changes: Any) -> None:
        """One approver answers."""
        given: dict[str, Any] = {
            "decision": "approve", "by": f"person {number}", "reason": "seen", "now": START,
        }  # fmt: skip
        answer(self.ledger, self.request, self.keys[number], **{**given, **changes})

    def required(self, demanded: TargetPolicy = TWO, **changes: Any) -> Approved:
        """Ask whether enough approved."""
        given: dict[str, Any] = {"builders": [], "author": "", "now": START}
        trusted = [key.public for key in self.keys]
        return require(self.ledger, self.request, demanded, trusted, **{**given, **changes})


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """An empty board."""
    return Board(tmp_path)


def test_none_demanded_is_not_an_approval(board: Board) -> None:
    """Where none is demanded that is said, with the reason, and nobody is named."""
    found = board.required(policy())
    assert found.status == "not-required"
    assert "demands no approval" in found.reason
    assert found.to_dict()["approvers"] == []


def test_enough_answers_grant(board: Board) -> None:
    """Two of two demanded answers grant, and the people are named."""
    board.answered(0)
    with pytest.raises(ReleaseRefused, match="expected 2 approvals"):
        board.required()
    board.answered(1)
    found = board.required()
    assert found.status == "granted"
    assert [item["by"] for item in found.approvers] == ["person 0", "person 1"]


def test_one_person_counts_once(board: Board) -> None:
    """The same person with two keys, or twice, is one approval."""
    board.answered(0)
    board.answered(0)
    board.answered(1, by="person 0")
    with pytest.raises(ReleaseRefused, match="got 1"):
        board.required()


def test_anything_changed_voids(board: Board) -> None:
    """An answer to a request about other reports does not stand, and that is said."""
    board.answered(0)
    board.request = Request("tiny", "local", board.request.package, {"x": 1}, TWO.digest)
    with pytest.raises(ReleaseRefused, match="another request: something changed"):
        board.required(ONE)


def test_expired_answers_are_void(board: Board) -> None:
    """Answers stand for a limited time."""
    board.answered(0, valid_for=timedelta(hours=1))
    with pytest.raises(ReleaseRefused, match="expired"):
        board.required(ONE, now=START + timedelta(hours=2))


def test_rejection_stops_and_can_be_revised(board: Board) -> None:
    """One rejection stops it with its reason; the newest answer of a key counts."""
    board.answered(0)
    board.answered(1, decision="reject", reason="too slow")
    with pytest.raises(ReleaseRefused, match="rejected by person 1: too slow"):
        board.required(ONE)
    board.answered(1)
    assert board.required().status == "granted"


def test_builders_and_authors_do_not_approve(board: Board) -> None:
    """Who built or released it cannot approve it."""
    board.answered(0)
    with pytest.raises(ReleaseRefused, match="who built"):
        board.required(ONE, builders=[board.keys[0].public.key_id])
    with pytest.raises(ReleaseRefused, match="who built"):
        board.required(ONE, author="person 0")
    relaxed = policy(approvals={"required": 1, "not_the_builder": False})
    assert board.required(relaxed, builders=[board.keys[0].public.key_id]).status == "granted"


def test_foreign_and_forged_answers_are_void(board: Board, tmp_path: Path) -> None:
    """A key that is not an approver's, a changed answer and a torn record count for nothing."""
    stranger = keys.load_or_create(tmp_path / "other", "approver")
    answer(
        board.ledger, board.request, stranger, decision="approve", by="x", reason="", now=START
    )  # fmt: skip
    board.answered(0, decision="reject")
    forged = board.ledger.records("approval")[-1].body
    content = {**forged["answer"], "decision": "approve"}
    board.ledger.append("approval", board.request.subject, {**forged, "answer": content})
    board.ledger.append("approval", board.request.subject, {"key_id": "torn"})
    torn = {"key_id": board.keys[1].public.key_id, "answer": content, "signature": "%"}
    board.ledger.append("approval", board.request.subject, torn)
    with pytest.raises(ReleaseRefused) as caught:
        board.required(ONE)
    for part in ("not an approver's", "does not fit", "cannot be read"):
        assert part in str(caught.value)


def test_deployment_waits_for_its_approval(prepared: Prepared) -> None:
    """A deployment that needs an approval is refused without and goes through with it."""
    from tasks.release import admission, approval
    from tasks.release.sign import key

    scene, ref = prepared.scene, prepared.refs[0]
    with pytest.raises(ReleaseRefused, match="approval is missing"):
        scene.deploy(ref, demanded=ONE)
    approver: PrivateKey = key(scene.workspace, "approver")
    admitted = admission.admit(scene.workspace, scene.ledger, ref, ONE)
    asked = approval.request(admitted, "local", ONE)
    answer(
        scene.ledger, asked, approver, decision="approve", by="grace", reason="good", now=START
    )  # fmt: skip
    report = scene.deploy(ref, demanded=ONE)
    assert report.facts["approval"]["approvers"][0]["by"] == "grace"


def demand(**changes: Any) -> SignatureDemand:
    """Signatures by builders in the trust root."""
    given: dict[str, Any] = {
        "trust": "file", "roles": ("builder",), "threshold": 1, "demo_keys": False,
    }  # fmt: skip
    return SignatureDemand(**{**given, **changes})


def test_trust_root_is_read_by_role(tmp_path: Path) -> None:
    """Keys in the trust root count for their role, and demonstration keys only where allowed."""
    workspace = _with_trust(tmp_path, _entry(tmp_path, "builder"), _entry(tmp_path, "approver"))
    assert len(trust.trusted(workspace, demand(), "builder")) == 1
    demo = {**_entry(tmp_path, "builder"), "demo": True}
    workspace = _with_trust(tmp_path, demo)
    assert trust.trusted(workspace, demand(), "builder") == []
    assert len(trust.trusted(workspace, demand(demo_keys=True), "builder")) == 1


@pytest.mark.parametrize(
    "entry", [{"role": "builder"}, {"role": 1, "owner": "o", "pem": "p", "demo": True}, 7]
)
def test_malformed_trust_root_is_refused(tmp_path: Path, entry: Any) -> None:
    """A trust root that cannot be read trusts nobody, loudly."""
    with pytest.raises(InputError, match="trust root"):
        trust.trusted(_with_trust(tmp_path, entry), demand(), "builder")


def test_foreign_trust_root_is_refused(tmp_path: Path) -> None:
    """Another kind of file is not a trust root."""
    workspace = _with_trust(tmp_path)
    (tmp_path / trust.FILE).write_text("[]")
    with pytest.raises(InputError, match="not a trust root"):
        trust.trusted(workspace, demand(), "builder")


def test_home_without_keys_trusts_nobody(tmp_path: Path) -> None:
    """A home in which nothing was signed yet has no trusted keys, and makes none by asking."""
    workspace = Workspace(tmp_path / "home", tmp_path).prepare()
    assert trust.trusted(workspace, demand(trust="home", demo_keys=True), "builder") == []
    assert list(workspace.keys.iterdir()) == []


def _entry(folder: Path, role: str) -> dict[str, Any]:
    public = keys.load_or_create(folder / "keys", role).public
    return {"role": role, "owner": "ada", "pem": public.pem.decode(), "demo": False}


def _with_trust(folder: Path, *entries: Any) -> Workspace:
    from contracts.base import files

    (folder / "infra" / "trust").mkdir(parents=True, exist_ok=True)
    files.write_json(folder / trust.FILE, {"format_version": 0, "keys": list(entries)})
    return Workspace(folder / "home", folder)
