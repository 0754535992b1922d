"""Release: what the gate passed is signed, pushed, registered and recorded, each once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.errors import InputError, RefusedError, ReleaseRefused
from contracts.base.report import Report, conclude, skipped
from flows import release
from flows.candidates import candidate
from flows.context import Context
from flows.judgement import GATE, Judgement
from flows.waves import Outcome
from model_packages.format import layout as layouts
from model_packages.oci import build as building
from model_packages.oci import carried
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from model_packages.oci.verify import verify_signature
from tasks.release.sign import key
from tests.fakes import calls, packages


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[PackageRef]:
    """MLflow's place: notes what it was told, says unchanged from the second time on."""
    told: list[PackageRef] = []

    def record(workspace: object, ref: PackageRef, reports: object) -> Report:
        measurements = {"unchanged": True} if ref in told else {}
        told.append(ref)
        return conclude("lineage", str(ref), [], measurements=measurements)

    monkeypatch.setattr(release, "record_lineage", record)
    return told


@pytest.fixture
def judgement(here: Context, tmp_path: Path) -> Judgement:
    """A tiny package that is built where the gate builds, and passed."""
    source = packages.write_source(tmp_path / "source")
    code = packages.write_runtime(tmp_path / "code")
    store = LayoutStore(here.workspace.packages("tiny"))
    ref = building.build(layouts.read_source(source), carried.read_code(code), store, "tiny")
    said = {stage: dict(calls.facts(stage)) for stage in GATE}
    outcomes = tuple(
        Outcome(stage, conclude(stage, str(ref), [], facts=facts), None, 0.5)
        for stage, facts in said.items()
    )
    return Judgement("tiny", digest.of_bytes(b"tree"), ref, outcomes, tmp_path / "report.html")


def publish(here: Context, judgement: Judgement) -> Report:
    return asyncio.run(release.publish(here, judgement))


def without(judgement: Judgement, *changed: Outcome) -> Judgement:
    by_stage = {item.stage: item for item in (*judgement.outcomes, *changed)}
    return replace(judgement, outcomes=tuple(by_stage.values()))


def test_what_passed_is_released(
    here: Context, judgement: Judgement, recorded: list[PackageRef]
) -> None:
    """The package is signed by this home's builder, in the registry, a candidate, and in MLflow."""
    report = publish(here, judgement)
    ref = judgement.require()
    assert report.verdict == "pass"
    assert candidate(here, "tiny", None) == ref
    store = LayoutStore(here.workspace.registry("tiny"))
    signed = verify_signature(store, ref.digest, [key(here.workspace, "builder").public])
    assert (signed.facts.contract, signed.facts.achieved_level) == ("small/trips@1.0.0", "L1")
    assert set(signed.facts.reports) == set(GATE)
    assert recorded == [ref]


def test_the_report_says_all_that_was_done(here: Context, judgement: Judgement) -> None:
    """Every stage with its verdict and seconds, the package, the level and the page."""
    report = publish(here, judgement)
    assert list(report.facts["stages"]) == [*GATE, "sign", "push", "register", "lineage"]
    assert set(report.measurements["seconds"]) == set(report.facts["stages"])
    assert report.facts["achieved_level"] == "L1"
    assert report.facts["digest"] == judgement.require().digest
    assert report.measurements["page"] == str(judgement.page)
    assert "unchanged" not in report.measurements


def test_the_same_release_again_changes_nothing(here: Context, judgement: Judgement) -> None:
    """It says so, and there is one candidate."""
    first, second = publish(here, judgement), publish(here, judgement)
    assert second.measurements["unchanged"]
    assert second.digest == first.digest
    assert len(here.ledger.records("candidate")) == 1


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (Outcome("trust", Report("trust", "s", "fail"), None), ReleaseRefused),
        (Outcome("hardware", skipped("hardware", "s", "no device"), None), ReleaseRefused),
        (Outcome("verify", None, InputError("gone")), InputError),
    ],
)
def test_what_did_not_pass_is_not_signed(
    here: Context, judgement: Judgement, changed: Outcome, kind: type[Exception]
) -> None:
    """A failure, a required skip and an error leave neither key, signature nor candidate."""
    with pytest.raises(kind):
        publish(here, without(judgement, changed))
    assert here.ledger.records() == []
    assert not here.workspace.registry("tiny").exists()
    assert list(here.workspace.keys.iterdir()) == []


def test_what_a_step_raises_is_raised(
    here: Context, judgement: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that cannot be written is the release's error, and nothing is registered."""

    def push(workspace: object, ref: object) -> Report:
        raise InputError("no space left")

    monkeypatch.setattr(release, "push_package", push)
    with pytest.raises(InputError, match="no space left"):
        publish(here, judgement)
    assert here.ledger.records("candidate") == []


def test_nothing_is_signed_without_the_stages_it_binds(here: Context, judgement: Judgement) -> None:
    """Origin needs what validate, package and compliance established."""
    fewer = replace(judgement, outcomes=judgement.outcomes[1:])
    with pytest.raises(RefusedError, match="without all its stages"):
        release._origin(here, fewer)


def test_the_flow_releases_what_its_gate_passed(
    here: Context, judgement: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow hands all its parameters to the gate and releases the outcome."""
    asked: list[object] = []

    async def gate(*arguments: object) -> Judgement:
        asked.extend(arguments)
        return judgement

    monkeypatch.setattr(release, "gate", gate)
    monkeypatch.setenv("CAISSON_HOME", str(here.workspace.home))
    report = asyncio.run(release.release.fn("tiny", "folder", "local", "2020-03-04"))
    assert asked == ["tiny", "folder", "local", "2020-03-04"]
    assert report.facts["digest"] == judgement.require().digest
