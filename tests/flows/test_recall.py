"""Flows are recalled only while all they read is the same and all they made is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.report import Report, conclude
from flows import recall, sources
from flows.context import Context
from tasks import reuse
from tasks.snapshot.snapshot import snapshot
from tasks.snapshot.window import window
from tests.fakes import packages, world
from tests.fakes.packages import BuiltPackage

NIGHTLY, RELEASE = "flows.nightly.nightly", "flows.release.release"


class Work:
    """A flow that counts how often it ran."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.runs = 0

    def __call__(self) -> Report:
        self.runs += 1
        return self.report


@pytest.fixture
def built(here: Context, tmp_path: Path) -> BuiltPackage:
    """A tiny package that is pushed and registered."""
    made = packages.build(tmp_path / "built")
    place = here.workspace.registry("tiny")
    shutil.copytree(made.layout, place)
    body = {"model": "tiny", "set_digest": made.reference.set_digest}
    here.ledger.append("candidate", made.reference.digest, body)
    return made


@pytest.fixture
def released(here: Context, built: BuiltPackage) -> Work:
    """A release whose page is there."""
    page = here.workspace.reports / "gate" / "page.html"
    page.parent.mkdir(parents=True)
    page.touch()
    facts = {**built.reference.to_dict(), "page": page.name}
    return Work(conclude("release", "s", [], facts=facts, measurements={"page": str(page)}))


def largest(layout: Path) -> Path:
    """The largest blob of a layout."""
    return max((layout / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)


def tell(here: Context, work: Work, **parameters: Any) -> Report:
    given = {"model": "tiny", "source": str(here.workspace.home.parent / "built" / "source")}
    return recall.once(here, RELEASE, {**given, "target": None, **parameters}, work)


def test_the_same_release_is_recalled(here: Context, released: Work) -> None:
    """The second call runs nothing and says so, with the same result."""
    first, second = tell(here, released), tell(here, released)
    assert released.runs == 1
    assert second.digest == first.digest
    assert second.measurements["unchanged"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda here: shutil.rmtree(here.workspace.registry("tiny")),
        lambda here: (here.workspace.registry("tiny") / "index.json").unlink(),
        lambda here: largest(here.workspace.registry("tiny")).unlink(),
        lambda here: largest(here.workspace.registry("tiny")).write_bytes(b"changed"),
        lambda here: (here.workspace.reports / "gate" / "page.html").unlink(),
        lambda here: here.workspace.ledger_path.unlink(),
    ],
    ids=["registry", "index", "layer", "byte", "page", "ledger"],
)
def test_what_was_lost_is_made_again(
    here: Context, released: Work, spoil: Callable[[Context], object]
) -> None:
    """A release is recalled only while registry, ledger and page still hold what it made."""
    tell(here, released)
    spoil(here)
    tell(here, released)
    assert released.runs == 2


def test_another_source_policy_or_moment_is_other_work(
    here: Context, released: Work, tmp_path: Path
) -> None:
    """Every input counts: the source's files, the policy's content, the logical time."""
    tell(here, released)
    changed = packages.write_source(tmp_path / "changed", packages.Options(max_batch_size=4))
    tell(here, released, source=str(changed))
    assert released.runs == 2
    infra = here.workspace.root / "infra"
    infra.unlink()
    shutil.copytree(world.ROOT / "infra" / "policies", infra / "policies")
    (infra / "hardware").mkdir()
    path = infra / "policies" / "local.json"
    packages.edit_json(path, description="Another one.")
    tell(here, released)
    assert released.runs == 3
    tell(Context(here.settings, here.workspace, here.as_of.replace(hour=5)), released)
    assert released.runs == 4


def test_what_did_not_pass_is_never_recalled(here: Context, built: BuiltPackage) -> None:
    """A refusal is judged anew each time."""
    work = Work(Report("release", "s", "fail", facts=built.reference.to_dict()))
    tell(here, work)
    tell(here, work)
    assert work.runs == 2


def test_changed_code_is_other_work(here: Context, released: Work) -> None:
    """The key holds the code of all rooms that a flow may run."""
    tell(here, released)
    reuse._digest_of_code.cache_clear()
    flows = here.workspace.root / "flows"
    flows.unlink()
    shutil.copytree(world.ROOT / "flows", flows)
    (flows / "gate.py").write_text("# changed\n")
    tell(here, released)
    assert released.runs == 2
    reuse._digest_of_code.cache_clear()


def night(here: Context, work: Work) -> Report:
    return recall.once(here, NIGHTLY, {"as_of": "2020-03-04", "target": None}, work)


def test_a_night_is_recalled_while_data_and_published_files_are_the_same(here: Context) -> None:
    """A new batch, a changed batch, a new contract or model makes it other work."""
    work = Work(conclude("nightly", "s", [], facts={"releases": [], "bundles": {}}))
    night(here, work)
    night(here, work)
    assert work.runs == 1
    world.deliver_orders(here.workspace, amount=7.0)
    night(here, work)
    assert work.runs == 2
    world.publish_model(here, "another")
    night(here, work)
    assert work.runs == 3
    batch = here.workspace.sources / "small/trips/d0"
    shutil.copytree(batch, batch.with_name("d9"))
    night(here, work)
    assert work.runs == 4
    night(here, work)
    assert work.runs == 4


def test_a_night_needs_its_bundles(here: Context) -> None:
    """A bundle that was lost is made again."""
    part = window(here.workspace, world.DEFINITION, here.as_of).training
    made = snapshot(here.workspace, world.DEFINITION, part.batches, part.as_of)
    bundles = {world.DEFINITION: [made.facts["feature_version"]]}
    work = Work(conclude("nightly", "s", [], facts={"releases": [], "bundles": bundles}))
    night(here, work)
    night(here, work)
    assert work.runs == 1
    here.workspace.objects.delete(made.facts["archive"])
    night(here, work)
    assert work.runs == 2


def test_a_poisoned_source_does_not_stop_the_night(here: Context) -> None:
    """What cannot be read is part of the key; saying so is the flow's business."""
    work = Work(Report("nightly", "s", "fail"))
    (here.workspace.sources / "shop/orders/day/batch.json").write_text("{")
    night(here, work)
    (here.contracts / "shop/orders/1.0.0.contract.json").write_text("{")
    night(here, work)
    assert work.runs == 2


def test_the_demo_is_recalled_with_its_page(here: Context, built: BuiltPackage) -> None:
    """The demo's end is recorded by data and published files, apart for demos without faults."""
    page = here.workspace.reports / "demo.html"
    page.touch()
    facts = {"releases": [built.reference.to_dict()], "page": str(page)}
    work = Work(conclude("flow-demo", "s", [], facts=facts))
    for _ in range(2):
        recall.demo(here, work, faults=True)
    assert work.runs == 1
    recall.demo(here, work, faults=False)
    assert work.runs == 2
    page.unlink()
    recall.demo(here, work, faults=True)
    assert work.runs == 3


def test_a_release_without_a_source_asks_for_training(here: Context, released: Work) -> None:
    """What would be released is decided before any server starts."""
    from contracts.base.errors import RefusedError

    with pytest.raises(RefusedError, match="never trained"):
        tell(here, released, source=None)
    assert released.runs == 0
    assert sources.resolve(here, "tiny", str(here.workspace.home.parent / "built/source")).tree
    assert digest.of_bytes(b"") != here.policy().digest
