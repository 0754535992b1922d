"""Two commands at once: the work is done once, and both say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.base.digest import Digest
from contracts.objects import content
from tests.docs.service import asked
from tests.fakes.installation import AS_OF, MODEL, TARGET, Installation, finish, left_alone
from tests.fakes.reference import Reference
from tests.fakes.soundness import assert_finished, assert_sound, live
from tests.fakes.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


@pytest.fixture
def installation(undisturbed: Reference, tmp_path: Path) -> Iterator[Installation]:
    """A copy of what a demo left, whose processes end with the test."""
    found = undisturbed.copied(tmp_path)
    with left_alone(found):
        yield found


def changed_source(installation: Installation, folder: Path) -> Path:
    """A package source nobody released: the trained one with another time limit."""
    records = installation.ledger.records("trained", MODEL)
    tree = Digest(str(records[-1].body["source_tree"]))
    content.checkout_tree(installation.workspace.objects, tree, folder)
    settings = folder / "config.yaml"
    text = settings.read_text(encoding="utf-8")
    assert "timeout_ms: 2000" in text
    settings.unlink()  # it may be one file with what is stored
    settings.write_text(text.replace("timeout_ms: 2000", "timeout_ms: 1900"), encoding="utf-8")
    return folder


def test_two_releases_of_one_package(installation: Installation, tmp_path: Path) -> None:
    """One does the work, the other waits and reports the same package, registered once."""
    source = changed_source(installation, tmp_path / "source")
    before = len(installation.ledger.records("candidate"))
    command = ("release", MODEL, "--source", str(source), "--as-of", AS_OF, "--json")
    processes = [installation.start(*command, CAISSON_LINGER="0") for _ in range(2)]
    one, other = (finish(process).demand().json for process in processes)
    assert one["facts"] == other["facts"]
    unchanged = sorted(bool(item["measurements"].get("unchanged")) for item in (one, other))
    assert unchanged == [False, True]
    installation.until_quiet()
    assert len(installation.ledger.records("candidate")) == before + 1
    assert_sound(installation)


def test_two_deployments_of_one_package(installation: Installation, root: Path) -> None:
    """One promotes, the other finds it done; the target serves it, and stops when told."""
    old = live(installation)
    new = next(
        Digest(record.subject)
        for record in installation.ledger.records("candidate")
        if record.subject != old
    )
    before = len(installation.ledger.records("promote"))
    command = ("deploy", MODEL, "--package", new, "--json")
    processes = [installation.start(*command, CAISSON_LINGER="0") for _ in range(2)]
    state = installation.workspace.targets / TARGET / "state.json"
    until(lambda: state.exists() or any(item.poll() is not None for item in processes), seconds=120)
    request = root / "model_packages/published" / MODEL / "test_cases/valid_input_01.json"
    with asked(json.loads(state.read_text())["data_url"], request):
        one, other = (finish(process).demand().json for process in processes)
    assert {one["facts"]["package_digest"], other["facts"]["package_digest"]} == {new}
    unchanged = sorted(bool(item["measurements"].get("unchanged")) for item in (one, other))
    assert unchanged == [False, True]
    assert len(installation.ledger.records("promote")) == before + 1
    installation.run("stop").demand()
    installation.until_quiet()
    assert_finished(installation, new)
