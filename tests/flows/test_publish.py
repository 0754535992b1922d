"""Publishing a contract, and training, as flows: the ledger hears of it once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import ManifestInvalid
from contracts.base.report import Report
from flows import context, publish_contract, train
from flows.context import Context
from tests.fakes import batches, world
from tests.flows.test_sources import trained


@pytest.fixture(autouse=True)
def _at_home(here: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let flows find the small world instead of the checkout."""

    def current(as_of: str | None = None) -> Context:
        return Context(here.settings, here.workspace, context.moment(as_of, here.workspace.clock))

    monkeypatch.setattr(context, "current", current)


def publish(path: Path, *arguments: Any) -> Report:
    return asyncio.run(publish_contract.publish_contract.fn(str(path), *arguments))


def test_a_contract_is_published_and_recorded_once(here: Context, tmp_path: Path) -> None:
    """The same file again changes nothing, also in the ledger."""
    path = batches.write(tmp_path / "new.json", source="returns", location="shop/returns")
    first, second = publish(path), publish(path)
    assert (first.verdict, second.verdict) == ("pass", "pass")
    assert (here.contracts / "shop/returns/1.0.0.contract.json").is_file()
    (record,) = here.ledger.records("contract")
    assert record.subject == "shop/returns@1.0.0"
    assert record.body["schema_hash"] == first.facts["schema_hash"]


def test_a_delivered_batch_must_keep_the_promise(here: Context, tmp_path: Path) -> None:
    """A batch that breaks the new contract keeps it from being published."""
    strict = [{"id": "amount", "kind": "range", "columns": ["amount"], "minimum": 100}]
    path = batches.write(tmp_path / "new.json", version="2.0.0", rules=strict)
    report = publish(path, "day")
    assert report.verdict == "fail"
    assert not (here.contracts / "shop/orders/2.0.0.contract.json").exists()
    assert here.ledger.records("contract") == []


def test_a_refused_contract_is_a_report(here: Context, tmp_path: Path) -> None:
    """A change of what is published already, and a malformed file, say what is wrong."""
    changed = batches.write(tmp_path / "changed.json", description="Something else.")
    assert publish(changed).verdict == "fail"
    (tmp_path / "broken.json").write_text("{}")
    assert publish(tmp_path / "broken.json").verdict == "fail"
    assert here.ledger.records() == []


def test_training_is_remembered_if_it_passed(
    here: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow trains on the versions given and writes what passed into the ledger, once."""
    asked: list[Any] = []
    said = trained(digest.of_bytes(b"tree"), model=world.MODEL)

    def training(workspace: object, *arguments: Any) -> Report:
        asked.append(arguments[:3])
        return said

    monkeypatch.setattr(train, "train_model", training)
    versions = ("20200101-0123456789ab", "20200102-0123456789ab")
    for _ in range(2):
        asyncio.run(train.train.fn(world.MODEL, *versions))
    assert asked == [(world.MODEL, *versions)] * 2
    assert len(here.ledger.records("trained", world.MODEL)) == 1
    said = Report("train", "s", "fail")
    assert asyncio.run(train.train.fn(world.MODEL)).verdict == "fail"
    assert len(here.ledger.records("trained")) == 1


def test_training_without_versions_is_refused(here: Context) -> None:
    """Nothing is trained on nobody knows what."""
    world.publish_model(here, "bare", feature_version="", holdout_version="")
    with pytest.raises(ManifestInvalid, match="names no feature version"):
        asyncio.run(train.train.fn("bare"))
