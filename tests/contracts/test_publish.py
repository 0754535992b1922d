"""Publishing: the right step against all versions, never over another, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contracts import publish, spec
from contracts.base.errors import (
    ContractInvalid,
    OverwriteRefused,
    RefusedError,
    UnavailableError,
)
from contracts.catalog import Catalog
from contracts.reading import ContractProblems
from tests.fakes import batches


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "published")


def _publish(catalog: Catalog, **changes: Any) -> publish.Published:
    path = batches.write(catalog.root.parent / "mine.contract.json", **changes)
    return publish.publish(path, catalog)


def test_first_version_is_published_canonically(catalog: Catalog) -> None:
    """What is written reads back as the same contract, and the facts name it."""
    done = _publish(catalog)
    assert done.path == catalog.root / "shop/orders/1.0.0.contract.json"
    assert spec.load(done.path).digest == done.digest
    assert done.to_dict()["contract"] == "shop/orders@1.0.0"
    assert (done.unchanged, done.compared, done.changes) == (False, (), ())


def test_publishing_again_is_a_no_op(catalog: Catalog) -> None:
    """The same content under the same version changes nothing and says so."""
    first = _publish(catalog)
    written = first.path.stat().st_mtime_ns
    assert _publish(catalog).unchanged
    assert publish.publish(first.path, catalog).unchanged
    assert first.path.stat().st_mtime_ns == written


def test_published_version_is_never_replaced(catalog: Catalog) -> None:
    """Even one word needs a new version; the error names the lowest."""
    first = _publish(catalog)
    before = first.path.read_bytes()
    with pytest.raises(OverwriteRefused, match=r"1\.0\.1"):
        _publish(catalog, contact="other@example.org")
    assert first.path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "version", "advice"),
    [
        ({"on_violation": "WARN"}, "1.1.0", "2.0.0"),
        ({"location": "shop/new"}, "1.0.1", "1.1.0"),
        ({"contact": "other@example.org"}, "0.9.0", "1.0.1"),
    ],
    ids=["break in a minor", "offer in a patch", "into the past"],
)
def test_small_step_is_refused_with_the_right_one(
    catalog: Catalog, changes: dict[str, Any], version: str, advice: str
) -> None:
    """A version step that is too small names the change and the version to take."""
    _publish(catalog)
    with pytest.raises(RefusedError, match=advice.replace(".", r"\.")) as caught:
        _publish(catalog, version=version, **changes)
    assert caught.value.exit_status == 1
    assert len(list(catalog.root.rglob("*.json"))) == 1


def test_right_step_is_accepted_and_told(catalog: Catalog) -> None:
    """A break under a new major version is published with its changes."""
    _publish(catalog)
    done = _publish(catalog, version="2.0.0", on_violation="WARN")
    assert done.compared == ("shop/orders@1.0.0",)
    assert [change.path for change in done.changes] == ["on_violation"]


def test_all_versions_count_not_only_the_latest(catalog: Catalog) -> None:
    """A promise loosened in two steps that each look harmless is found against the first."""
    rule = {"id": "r", "kind": "range", "columns": ["amount"]}
    _publish(catalog, rules=[{**rule, "maximum": 10}])
    looser = [{**rule, "maximum": 20}]
    target = catalog.root / "shop/orders/1.1.0.contract.json"
    batches.write(target, version="1.1.0", rules=looser)  # somebody went round the check
    with pytest.raises(RefusedError, match=r"1\.0\.0 is too small"):
        _publish(catalog, version="1.2.0", rules=looser)


def test_older_line_may_be_mended(catalog: Catalog) -> None:
    """A patch of an old major version is published beside a newer major one."""
    _publish(catalog)
    _publish(catalog, version="2.0.0", on_violation="WARN")
    done = _publish(catalog, version="1.0.1", contact="other@example.org")
    assert [change.bump for change in done.changes] == ["patch"]


def test_faulty_file_is_not_published(catalog: Catalog) -> None:
    """Lint comes first, with every problem."""
    with pytest.raises(ContractProblems, match="2 problems"):
        _publish(catalog, contact="", license="")
    assert not catalog.root.exists()


def test_pattern_the_engine_refuses_is_not_published(catalog: Catalog) -> None:
    """An expression that would fail on every batch is found now."""
    rule = {"id": "r", "kind": "pattern", "columns": ["status"], "pattern": "(a"}
    with pytest.raises(ContractInvalid, match="RE2"):
        _publish(catalog, rules=[rule])


def test_sample_must_keep_the_contract(catalog: Catalog, tmp_path: Path) -> None:
    """The owner's own batch is judged; a contract it breaks is not published."""
    path = batches.write(tmp_path / "mine.contract.json")
    bad = batches.deliver(tmp_path, batches.table(batches.rows(amount={0: -1.0})), name="bad")
    with pytest.raises(RefusedError, match="sample batch bad breaks"):
        publish.publish(path, catalog, sample=bad)
    good = batches.deliver(tmp_path, batches.table(batches.rows()), name="good")
    done = publish.publish(path, catalog, sample=good)
    assert done.to_dict()["sample"] == "pass"


def test_dry_run_writes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    """A dry run does everything but write."""
    path = batches.write(tmp_path / "mine.contract.json")
    assert not publish.publish(path, catalog, dry_run=True).unchanged
    assert not catalog.root.exists()


def test_unwritable_catalog_is_a_typed_error(catalog: Catalog) -> None:
    """A catalog that cannot be written is told as such, and nothing is left behind."""
    catalog.root.write_text("a file, not a folder")
    with pytest.raises(UnavailableError, match="catalog"):
        _publish(catalog)


def test_slower_of_two_writers_learns_what_is_there(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another content appears between check and write, it is not replaced."""
    target = catalog.root / "shop/orders/1.0.0.contract.json"

    def meanwhile(name: str) -> None:
        if name == "contract.publish.before":
            batches.write(target, contact="faster@example.org")

    monkeypatch.setattr(publish.failpoint, "hit", meanwhile)
    with pytest.raises(OverwriteRefused):
        _publish(catalog)
    assert spec.load(target).contact == "faster@example.org"


_KILLED = """
import sys
from pathlib import Path
from contracts import publish
from contracts.base import failpoint
from contracts.catalog import Catalog
failpoint.configure(sys.argv[3])
publish.publish(Path(sys.argv[1]), Catalog(Path(sys.argv[2])))
"""


@pytest.mark.parametrize("point", ["contract.publish.before", "contract.publish.after"])
def test_kill_leaves_a_whole_file_or_none(
    tmp_path: Path, root: Path, catalog: Catalog, point: str
) -> None:
    """kill -9 around the write leaves nothing that is trusted half, and a repeat completes."""
    path = batches.write(tmp_path / "mine.contract.json")
    arguments = [sys.executable, "-c", _KILLED, str(path), str(catalog.root), point]
    assert subprocess.run(arguments, cwd=root, check=False).returncode == -9
    published = catalog.versions("shop/orders")
    assert len(published) == (point.endswith("after"))
    done = publish.publish(path, catalog)
    assert done.unchanged == bool(published)
    assert spec.load(done.path) == spec.load(path)
