"""A live release is judged again every night, by today's keys, policy and waivers."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest

from contracts.base.errors import RegistryUnavailable
from tasks.demo.release import unsigned
from tasks.ledger.record import Pointer
from tasks.release.reverify import reverify
from tests.tasks.release import scene
from tests.tasks.release.conftest import Prepared
from tests.tasks.release.scene import MODEL, TARGET

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def pointer(deployed: Prepared) -> Pointer:
    found = deployed.scene.ledger.pointer(MODEL, TARGET)
    assert found is not None
    return found


def test_a_good_release_passes(deployed: Prepared) -> None:
    """Nothing changed: it would be let in today."""
    report = reverify(deployed.scene.workspace, pointer(deployed), scene.policy(), NOW)
    assert (report.verdict, report.findings) == ("pass", ())


def test_a_stricter_policy_is_told(deployed: Prepared) -> None:
    """The level the release achieved no longer suffices."""
    report = reverify(deployed.scene.workspace, pointer(deployed), scene.policy(level="L2"), NOW)
    assert report.verdict == "fail"
    assert report.findings[0].rule == "release.release-refused"
    assert "rollback" in report.findings[0].remedy


def test_a_lost_signature_is_told(deployed: Prepared) -> None:
    """Without a signature in the registry it would not be let in."""
    unsigned(deployed.scene.workspace, deployed.refs[0])
    report = reverify(deployed.scene.workspace, pointer(deployed), scene.policy(), NOW)
    assert report.findings[0].rule == "release.signature-invalid"


def test_a_lost_registry_is_an_error_not_a_verdict(deployed: Prepared) -> None:
    """Being unable to look is not the same as having found something."""
    shutil.rmtree(deployed.scene.workspace.registry(MODEL))
    with pytest.raises(RegistryUnavailable):
        reverify(deployed.scene.workspace, pointer(deployed), scene.policy(), NOW)


def test_an_unknown_release_is_told(deployed: Prepared) -> None:
    """What was never registered here cannot stay without a word."""
    stranger = Pointer(MODEL, TARGET, deployed.refs[2].digest, None, 1)
    report = reverify(deployed.scene.workspace, stranger, scene.policy(), NOW)
    assert report.verdict == "fail"
