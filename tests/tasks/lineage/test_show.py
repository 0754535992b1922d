from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.base.errors import InputError
from contracts.features import pointer
from tasks.lineage import bundles
from tasks.lineage.show import impact, why
from tasks.lineage.tree import Node, render
from tests.fakes import house as fake
from tests.fakes.house import House


@pytest.fixture
def house(tmp_path: Path, root: Path) -> House:
    made = fake.build(tmp_path / "home", root)
    old, new = fake.release(made, "old"), fake.release(made, "new")
    ledger = made.ledger
    ledger.move_pointer(fake.MODEL, fake.TARGET, expected=None, new=old, body={})
    ledger.move_pointer(fake.MODEL, fake.TARGET, expected=old, new=new, body={})
    fake.answer(made, "request-1", new)
    return made


def kinds(node: Node) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in node.walk():
        found.setdefault(item.kind, []).append(item.name)
    return found


def test_an_answer_leads_back_to_the_data(house: House) -> None:
    """From a request id one reaches package, record, reports, bundle, contracts, batches."""
    tree = why(house.workspace, "request-1")
    assert tree.kind == "answer"
    assert tree.facts["target"] == "local"
    assert tree.facts["at"] == "2013-12-01T12:13:20.000Z"
    assert kinds(tree) == {
        "answer": ["request-1"],
        "package": ["flight-delay"],
        "record": ["ledger 2"],
        "report": sorted(fake.STAGES),
        "bundle": [house.manifest.version],
        "contract": ["nyc/flights@1.0.0", "nyc/weather@1.0.0"],
        "batch": ["2013-01", "2013-02", "2013-01"],
        "commit": [fake.COMMIT],
    }
    assert not [node for node in tree.walk() if node.missing]
    json.dumps(tree.to_dict())


@pytest.mark.parametrize("what", ["package", "set", "report", "record", "short"])
def test_any_digest_of_a_release_leads_back(house: House, what: str) -> None:
    """Package, package set, report and record lead to the same tree, by their first digits too."""
    record = house.ledger.records("candidate")[-1]
    subject = {
        "package": record.subject,
        "set": record.body["set_digest"],
        "report": record.body["binding"]["reports"]["trust"],
        "record": record.digest,
        "short": record.subject.removeprefix("sha256:")[:12],
    }[what]
    assert why(house.workspace, subject).digest == record.subject


def test_a_feature_version_leads_to_its_batches(house: House) -> None:
    """A bundle by itself leads to the contracts and batches it was computed from."""
    tree = why(house.workspace, house.manifest.version)
    assert tree.digest == house.manifest.root
    assert tree.facts["rows"] == 1
    assert len(kinds(tree)["batch"]) == 3


@pytest.mark.parametrize(
    ("subject", "kind", "reached"),
    [
        ("nyc/flights@1.0.0", "contract", 2),
        ("nyc/weather", "contract", 2),
        ("nyc/flights@1.0.0#2013-02", "batch", 2),
        (fake.COMMIT[:10], "commit", 2),
        (fake.SCHEMA, "contract", 2),
        (fake.package("new"), "package", 1),
    ],
)
def test_impact_reaches_what_runs(house: House, subject: str, kind: str, reached: int) -> None:
    """From data, code or a package one reaches every release and where it is live."""
    tree = impact(house.workspace, subject)
    assert tree.kind == kind
    assert len(tree.children) == reached
    last = tree.children[-1]
    assert [child.name for child in last.children] == ["flight-delay in local"]
    assert last.children[0].facts["role"] == "live"


def test_impact_of_a_bundle_by_version_and_root(house: House) -> None:
    """The version and the root of a bundle name the same thing."""
    for subject in (house.manifest.version, house.manifest.root):
        assert impact(house.workspace, subject).kind == "bundle"
    roles = [
        child.facts["role"]
        for node in impact(house.workspace, house.manifest.version).children
        for child in node.children
    ]
    assert roles == ["previous", "live"]


@pytest.mark.parametrize("subject", ["nothing", "sha256:", "abc", "20130101-000000000000x"])
def test_what_is_not_known_is_refused(house: House, subject: str) -> None:
    """An unknown name is an error that says what is accepted, in both directions."""
    for walk in (why, impact):
        with pytest.raises(InputError, match="nothing on record"):
            walk(house.workspace, subject)


def test_a_fresh_home_knows_nothing(tmp_path: Path, root: Path) -> None:
    """On a machine where nothing was done, asking is an error and makes nothing."""
    from tasks.workspace import Workspace

    with pytest.raises(InputError):
        why(Workspace(tmp_path / "home", root), "x")
    assert not (tmp_path / "home").exists()


def test_what_is_gone_is_told(house: House) -> None:
    """An edge whose thing was removed says so and the rest is shown."""
    record = house.ledger.records("candidate")[-1]
    blobs = house.workspace.registry(fake.MODEL) / "blobs" / "sha256"
    (blobs / record.subject.removeprefix("sha256:")).unlink()
    for path in (house.workspace.reports / "digests").iterdir():
        path.unlink()
    found = pointer.read(house.workspace.objects, house.manifest.definition, house.manifest.version)
    house.workspace.objects.delete(found.archive)
    tree = why(house.workspace, record.subject)
    gone = {node.kind for node in tree.walk() if node.missing}
    assert gone == {"package", "report", "bundle"}
    assert " ! " in render(tree)


def test_an_answer_of_an_unregistered_package_is_shown(house: House) -> None:
    """An answer that the ledger cannot explain is reported, not hidden."""
    fake.answer(house, "request-2", fake.package("stranger"))
    fake.answer(house, "request-3", "")
    assert "no candidate" in why(house.workspace, "request-2").children[0].missing
    assert why(house.workspace, "request-3").children == ()


def test_a_changed_manifest_is_not_believed(house: House) -> None:
    """A bundle whose manifest was edited is reported as such."""
    store = house.workspace.objects
    found = pointer.read(store, house.manifest.definition, house.manifest.version)
    whole = store.get(found.archive, limit=10**6)
    edited = whole.replace(b"2013-02", b"2013-09")
    for damage in (b"", b"no archive", whole[:900], edited):
        store.put(found.archive, damage)
        assert why(house.workspace, house.manifest.version).missing
    assert bundles.manifest_of(store, "20130101-000000000000") is None


def test_the_text_is_a_tree(house: House) -> None:
    """People get one line a thing, with short digests unless they ask for whole ones."""
    tree = why(house.workspace, "request-1")
    short, full = render(tree), render(tree, full=True)
    assert len(short.splitlines()) == len(list(tree.walk()))
    assert "└─ package flight-delay sha256:" in short
    assert house.manifest.root in full
    assert house.manifest.root not in short


def test_reading_lineage_is_cheap(house: House, root: Path) -> None:
    """The walk loads no heavy library and takes half a CPU second at most."""
    code = f"""
import sys, time
from pathlib import Path
from tasks.lineage import show
from tasks.workspace import Workspace
show.why(Workspace(Path({str(house.workspace.home)!r}), Path({str(root)!r})), "request-1")
heavy = {{"prefect", "mlflow", "pydantic", "numpy", "pyarrow", "duckdb"}} & set(sys.modules)
assert not heavy, heavy
assert time.process_time() < 0.5, time.process_time()
"""
    environment = {"PYTHONPATH": str(root), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
