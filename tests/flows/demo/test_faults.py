"""Planting faults: in a throw-away copy, and the right stage alone must refuse."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from contracts.base.report import Finding, Report, conclude, skipped
from contracts.objects import content
from flows import sources
from flows.context import Context
from flows.demo import faults
from flows.demo.faults import Fault, Good
from flows.sources import Source
from flows.waves import Outcome
from model_packages.oci.reference import PackageRef
from tasks.demo import compliance
from tasks.policy import TargetPolicy
from tests.fakes import packages, world

Waves = tuple[PackageRef | None, list[Outcome]]


@pytest.fixture
def good(here: Context, tmp_path: Path) -> Good:
    """A tiny package source in the object store, and its package where packages are built."""
    made = packages.build(tmp_path / "built")
    shutil.copytree(made.layout, here.workspace.packages("tiny"))
    source = sources.resolve(here, "tiny", str(made.source))
    here.ledger.append("nightly", "s", {})
    training = source.training
    return Good(source, made.reference, training.feature_version, training.holdout_version)


def refusal(stage: str) -> Outcome:
    finding = Finding(f"{stage}.bad", "s", "", "high", "is bad", "mend it")
    return Outcome(stage, conclude(stage, "s", [finding]), None)


def test_only_the_right_stage_alone_counts_as_caught() -> None:
    """Another stage, none at all, and one more are all misses."""
    passed = world.passed("package")
    cases = {
        "right": [passed, refusal("trust")],
        "other": [passed, refusal("verify")],
        "more": [refusal("trust"), refusal("verify")],
        "none": [passed],
    }
    found = {name: faults._fault("x", "trust", outcomes) for name, outcomes in cases.items()}
    assert {name for name, fault in found.items() if fault.caught} == {"right"}
    assert found["right"].passed == ("package",)
    assert found["none"].message == "nothing was noticed"


@pytest.mark.parametrize(
    ("outcome", "message", "remedy"),
    [
        (refusal("trust"), "is bad", "mend it"),
        (Outcome("trust", None, InputError("no file", remedy="make it")), "no file", "make it"),
        (Outcome("trust", skipped("trust", "s", "no device"), None), "no device", ""),
    ],
)
def test_what_a_person_reads(outcome: Outcome, message: str, remedy: str) -> None:
    """Findings, errors and skips all have their words shown."""
    fault = faults._fault("x", "trust", [outcome])
    assert message in fault.message
    assert fault.remedy == remedy


def test_the_copy_is_of_links_and_nothing_is_left(here: Context, good: Good) -> None:
    """What is added or replaced in the copy is not in the real home; then the copy is gone."""
    before = faults.inventory(here)
    with faults._scratch(here) as copy:
        home = copy.workspace.home
        assert home.is_relative_to(here.workspace.tmp)
        assert copy.ledger.records("nightly")
        assert content.read_tree(copy.workspace.objects, good.source.tree)
        copy.ledger.append("contract", "s", {})
        content.put_bytes(copy.workspace.objects, b"new")
        shutil.rmtree(copy.workspace.packages("tiny"))
    assert not home.exists()
    assert faults.inventory(here) == before


def test_the_copy_is_gone_also_after_an_error(here: Context, good: Good) -> None:
    """Leftovers of a killed demo are replaced, those of a failed one removed."""
    stale = here.workspace.tmp / ".faults.part" / "objects" / "old"
    stale.mkdir(parents=True)

    def plant() -> None:
        with faults._scratch(here) as copy:
            assert not (copy.workspace.objects_path / "old").exists()
            raise InputError("x")

    with pytest.raises(InputError):
        plant()
    assert not stale.parent.exists()


def test_an_edited_source_is_another_tree(here: Context, good: Good) -> None:
    """The good source stays as it is beside the spoiled one."""
    tree = faults._edited(here, good, compliance.unlicensed)
    assert tree != good.source.tree
    assert sources.resolve(here, "tiny", tree).manifest.license == ""
    assert sources.resolve(here, "tiny", good.source.tree).manifest.license == "Apache-2.0"


def test_a_fault_is_judged_by_the_whole_gate(
    here: Context, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate gets the spoiled source, with the float reference of its own training if given."""
    seen: list[tuple[Digest, Digest | None, str]] = []

    async def waves(place: Context, source: Source, policy: TargetPolicy) -> Waves:
        seen.append((source.tree, source.reference, policy.target))
        return None, [refusal("trust")]

    monkeypatch.setattr(faults, "run_waves", waves)
    monkeypatch.setattr(faults, "MODEL", "tiny")
    reference = digest.of_bytes(b"float")
    fault = asyncio.run(faults._gated(here, good.source.tree, "x", "trust", reference))
    asyncio.run(faults._gated(here, good.source.tree, "x", "trust"))
    assert fault.caught
    assert seen == [
        (good.source.tree, reference, "local"),
        (good.source.tree, None, "local"),
    ]


def test_every_stage_has_its_fault(
    here: Context, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine faults, one after the other, each in a copy of its own, each told at once."""
    homes: list[Path] = []

    def planting(name: str) -> Callable[[Context, Good], Awaitable[Fault]]:
        async def plant(copy: Context, _: Good) -> Fault:
            homes.append(copy.workspace.home)
            assert copy.workspace.home.exists()
            return Fault(name, name, (name,), (), "said", "do")

        return plant

    names = [
        "_renamed_column",
        "_stale_batch",
        "_changed_cell",
        "_changed_byte",
        "_leaked_label",
        "_oversized",
        "_unlicensed",
        "_changed_weight",
        "_unsigned",
    ]
    for name in names:
        monkeypatch.setattr(faults, name, planting(name))
    told: list[str] = []
    found = asyncio.run(faults.plant_all(here, good, lambda fault, _: told.append(fault.planted)))
    assert told == names
    assert all(fault.caught for fault in found)
    assert not any(home.exists() for home in homes)


def test_an_unsigned_package_is_refused_by_deploy_alone(
    here: Context, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry shows the package without a signature: the target is never started."""
    with faults._scratch(here) as copy:
        fault = asyncio.run(faults._unsigned(copy, good))
        assert not list(copy.workspace.targets.iterdir())
    assert fault.caught
    assert "not signed" in fault.message
    assert "Release it" in fault.remedy


def test_a_deployed_fault_is_a_miss(
    here: Context, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If deploy let it in, nobody noticed."""
    passing = Report("deploy", "s", "pass")
    monkeypatch.setattr(faults.deploy, "deploy", lambda *_: passing)
    assert not asyncio.run(faults._unsigned(here, good)).caught


def test_a_changed_byte_is_found_by_the_package_stage(
    here: Context, good: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy's package is spoiled; the real one is untouched."""
    spoiled: list[bool] = []

    async def waves(place: Context, source: Source, policy: TargetPolicy) -> Waves:
        blobs = (place.workspace.packages("tiny") / "blobs/sha256").iterdir()
        spoiled.extend(digest.of_file(path) != f"sha256:{path.name}" for path in blobs)
        return None, [refusal("package")]

    monkeypatch.setattr(faults, "run_waves", waves)
    monkeypatch.setattr(faults, "MODEL", "tiny")
    with faults._scratch(here) as copy:
        assert asyncio.run(faults._changed_byte(copy, good)).caught
    assert spoiled.count(True) == 1
    real = (here.workspace.packages("tiny") / "blobs/sha256").iterdir()
    assert all(digest.of_file(path) == f"sha256:{path.name}" for path in real)


def test_an_inventory_notices_what_is_left_behind(here: Context, good: Good) -> None:
    """A new object, a new record and a new key all show."""
    before = faults.inventory(here)
    content.put_bytes(here.workspace.objects, b"left")
    assert faults.inventory(here) != before
    again = faults.inventory(here)
    here.ledger.append("nightly", "s", {})
    assert faults.inventory(here) != again
    assert replace(good, version="x").version == "x"
