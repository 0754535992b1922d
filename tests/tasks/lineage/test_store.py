from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import UnavailableError
from contracts.base.report import Finding, Report, conclude
from tasks.lineage.record import Release, describe
from tasks.lineage.store import DIGEST_LENGTH, Store, uri
from tasks.workspace import Workspace
from tests.fakes import house as fake
from tests.fakes.house import House

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, root: Path) -> House:
    made = fake.build(tmp_path_factory.mktemp("mlflow") / "hôme folder", root)
    fake.release(made, "one")
    fake.release(made, "two")
    return made


@pytest.fixture(scope="module")
def client(house: House) -> Any:
    from mlflow import MlflowClient

    Store(house.workspace).log(release(house, "one"))
    return MlflowClient(tracking_uri=uri(house.workspace), registry_uri=uri(house.workspace))


def release(house: House, name: str, reports: list[Report] | None = None) -> Release:
    record = house.ledger.records("candidate", fake.package(name))[0]
    return describe(record, house.manifest, fake.reports() if reports is None else reports)


def runs(client: Any, name: str) -> dict[str, Any]:
    """Return the runs of a release by stage."""
    experiment = client.get_experiment_by_name(fake.MODEL).experiment_id
    parents = client.search_runs(
        [experiment],
        f"tags.`caisson.package_digest` = '{fake.package(name)}'",
    )
    assert len(parents) == 1
    parent = parents[0].info.run_id
    children = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent}'")
    return {run.data.tags["caisson.stage"]: run for run in [*parents, *children]}


def test_a_release_is_a_run_with_a_run_for_each_stage(client: Any) -> None:
    """Stages are children of the release, with verdict, digest, numbers and the report itself."""
    found = runs(client, "one")
    assert set(found) == {"release", *fake.STAGES}
    trust = found["trust"]
    assert trust.info.status == "FINISHED"
    assert trust.data.tags["caisson.verdict"] == "pass"
    assert trust.data.metrics == {"fact.n.auc": 0.7, "measured.seconds": 1.5}
    path = client.download_artifacts(trust.info.run_id, "report.json")
    assert Report.from_dict(json.loads(Path(path).read_text())).stage == "trust"


def test_inputs_carry_whole_digests(client: Any, house: House) -> None:
    """Contract, bundle and batches are dataset inputs; the whole digest is in source and tag."""
    inputs = runs(client, "one")["release"].inputs.dataset_inputs
    assert len(inputs) == 6
    for item in inputs:
        tags = {tag.key: tag.value for tag in item.tags}
        whole = tags["caisson.sha256"]
        assert item.dataset.digest == whole.removeprefix("sha256:")[:DIGEST_LENGTH]
        assert json.loads(item.dataset.source)["sha256"] == whole
    roots = [json.loads(item.dataset.source)["sha256"] for item in inputs]
    assert house.manifest.root in roots


def test_a_model_version_names_the_package(client: Any, house: House) -> None:
    """The version's source is the package's address and its tags say what it was made from."""
    (version,) = client.search_model_versions(f"name = '{fake.MODEL}'")
    assert version.source == f"oci://local/flight-delay@{fake.package('one')}"
    assert version.tags["feature_version"] == house.manifest.version
    assert version.tags["contract"] == fake.CONTRACT
    assert version.tags["git_commit"] == fake.COMMIT
    assert version.tags["package_digest"] == fake.package("one")
    assert version.run_id == runs(client, "one")["release"].info.run_id


def test_logging_again_changes_nothing(client: Any, house: House) -> None:
    """The same release logged twice is one run and one version."""
    again = Store(house.workspace).log(release(house, "one"))
    assert again["unchanged"] is True
    assert again["run_id"] == runs(client, "one")["release"].info.run_id
    assert len(client.search_model_versions(f"name = '{fake.MODEL}'")) == 1


def test_an_interrupted_run_is_replaced(client: Any, house: House) -> None:
    """What a killed command logged half is taken away, and the release logged whole."""
    parent = runs(client, "one")["release"].info.run_id
    client.set_tag(parent, "caisson.complete", "false")
    again = Store(house.workspace).log(release(house, "one"))
    assert again["unchanged"] is False
    assert set(runs(client, "one")) == {"release", *fake.STAGES}
    assert runs(client, "one")["release"].info.run_id != parent


def test_a_failed_stage_is_a_failed_run(client: Any, house: House) -> None:
    """A failed report shows as failed, and other text than numbers makes no metric."""
    bad = conclude(
        "drift",
        "s",
        [Finding("r", "s", "", "high", "bad", "mend")],
        facts={"ok": True, "a:b": 1, "name": "x", "list": [1]},
    )
    Store(house.workspace).log(release(house, "two", [bad]))
    found = runs(client, "two")["drift"]
    assert found.info.status == "FAILED"
    assert found.data.metrics == {"fact.a_b": 1}


def test_aliases_follow_the_ledger(client: Any, house: House) -> None:
    """Candidate, live and previous are what the ledger says, also after somebody moved them."""
    store = Store(house.workspace)
    store.log(release(house, "two", []))
    one, two = fake.package("one"), fake.package("two")
    house.ledger.move_pointer(fake.MODEL, "local", expected=None, new=one, body={})
    house.ledger.move_pointer(fake.MODEL, "local", expected=one, new=two, body={})
    client.set_registered_model_alias(fake.MODEL, "stray", "1")
    client.set_registered_model_alias(fake.MODEL, "live-local", "1")
    assert store.reconcile(fake.MODEL, two, house.ledger.pointers()) == 4
    assert store.aliases(fake.MODEL) == {
        "candidate": two,
        "live-local": two,
        "previous-local": one,
    }
    assert store.reconcile(fake.MODEL, two, house.ledger.pointers()) == 0


def test_a_model_that_was_never_logged_has_no_aliases(client: Any, house: House) -> None:
    """Reconciling what MLflow does not know changes nothing."""
    assert Store(house.workspace).reconcile("unknown", fake.package("one"), []) == 0


def test_a_repository_with_a_slash_is_a_model(client: Any, house: House) -> None:
    """MLflow allows no slash in a name; ours becomes two hyphens."""
    store = Store(house.workspace)
    other = replace(release(house, "one", []), model="team/flight-delay")
    store.log(other)
    assert store.reconcile("team/flight-delay", fake.package("one"), []) == 1
    assert store.aliases("team/flight-delay") == {"candidate": fake.package("one")}


def test_a_database_that_cannot_be_used_is_unavailable(tmp_path: Path, root: Path) -> None:
    """A damaged database is one clear error, and the ledger keeps what happened."""
    workspace = Workspace(tmp_path / "home", root).prepare()
    (workspace.mlflow / "mlflow.db").write_bytes(b"no database" * 100)
    with pytest.raises(UnavailableError, match="MLflow cannot be used"):
        Store(workspace).reconcile("m", None, [])
