"""The gate's waves: in order, until one blocks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contracts.base import files
from contracts.base.errors import CaissonError, DigestMismatch, InputError, ReleaseRefused
from contracts.base.report import Report
from flows import gate, pages, sources
from flows.context import Context
from flows.judgement import GATE, Judgement
from flows.sources import Source
from flows.waves import Outcome
from model_packages.oci.reference import PackageRef
from tasks import reuse
from tasks.policy import TargetPolicy
from tests.fakes import calls, packages
from tests.fakes.calls import FakeCalls


@pytest.fixture
def source(here: Context, tmp_path: Path) -> Source:
    folder = packages.write_source(tmp_path / "source")
    return sources.resolve(here, "tiny", str(folder))


def judge(
    here: Context, source: Source, **said: Report | CaissonError
) -> tuple[FakeCalls, PackageRef | None, list[Outcome]]:
    fake = FakeCalls(here, source, here.policy(), said=said)
    ref, outcomes = asyncio.run(gate.through(fake))
    return fake, ref, outcomes


def test_every_wave_runs_when_all_passes(here: Context, source: Source) -> None:
    """All stages run in order; compliance reads what all the others said."""
    fake, ref, outcomes = judge(here, source)
    assert ref == calls.REF
    assert [item.stage for item in outcomes] == list(GATE)
    assert set(fake.ran[:3]) == {"validate", "snapshot", "package"}
    assert fake.ran[3:] == ["trust", "hardware", "verify", "compliance"]
    assert fake.given == ["validate", "snapshot", "package", "trust", "hardware", "verify"]


@pytest.mark.parametrize("stage", ["trust", "hardware", "verify"])
@pytest.mark.parametrize("how", ["fail", "error", "skip"])
def test_a_wave_that_blocks_is_the_last(
    here: Context, source: Source, stage: str, how: str
) -> None:
    """A failure, an error and a skip of a required stage all keep the next wave from starting."""
    said = {
        "fail": calls.refusing(stage),
        "error": calls.refusing(stage, InputError("gone")),
        "skip": calls.skipping(stage),
    }[how]
    fake, ref, outcomes = judge(here, source, **{stage: said})
    assert outcomes[-1].stage == fake.ran[-1] == stage
    assert outcomes[-1].verdict == how
    assert ref == calls.REF


@pytest.mark.parametrize("stage", ["validate", "snapshot", "package"])
def test_the_whole_first_wave_is_reported(here: Context, source: Source, stage: str) -> None:
    """When one of the first wave refuses, the others of it still say theirs."""
    _, ref, outcomes = judge(here, source, **{stage: calls.refusing(stage)})
    assert {item.stage for item in outcomes} == {"validate", "snapshot", "package"}
    assert (ref is None) is (stage == "package")
    assert [item.stage for item in outcomes if item.verdict == "fail"] == [stage]


def test_a_judgement_has_its_page_and_keeps_its_reports(
    here: Context, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow writes the page, keeps each report by digest, and returns what it concluded."""
    outcomes = judge(here, source, verify=DigestMismatch("changed"))[2]

    async def waves(
        place: Context, found: Source, policy: TargetPolicy
    ) -> tuple[PackageRef | None, list[Outcome]]:
        assert (found.tree, policy.target) == (source.tree, "local")
        return calls.REF, outcomes

    monkeypatch.setattr(gate, "run_waves", waves)
    monkeypatch.setenv("CAISSON_HOME", str(here.workspace.home))
    folder = str(here.workspace.home.parent / "source")
    judgement: Judgement = asyncio.run(gate.gate.fn("tiny", folder, "local", "2020-03-04"))
    assert judgement.page.is_file()
    assert judgement.page.name == pages.PAGE
    assert files.read_json(judgement.page.with_name("reports.json"))[0]["stage"] == "validate"
    for report in judgement.reports:
        assert reuse.find(here.workspace, report.digest) == report
    with pytest.raises(DigestMismatch):
        judgement.require()


def test_an_unknown_target_is_refused_before_any_stage(
    here: Context, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that does not exist is an input error that names those that do."""
    monkeypatch.setenv("CAISSON_HOME", str(here.workspace.home))
    with pytest.raises(InputError, match="local"):
        asyncio.run(gate.gate.fn("tiny", source.tree, "nowhere"))
    with pytest.raises(ReleaseRefused):
        Judgement("tiny", source.tree, None, (), Path("/p")).require()
