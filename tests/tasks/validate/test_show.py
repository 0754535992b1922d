"""The reading door: quick, complete, and without engine or Prefect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contracts.base.errors import InputError
from contracts.catalog import Catalog
from tasks.validate import publishing, show
from tasks.validate.validate import validate
from tasks.workspace import Workspace
from tests.fakes import batches
from tests.fakes.clock import FixedClock


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    return Workspace(tmp_path / "home", root, FixedClock()).prepare()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    batches.write(tmp_path / "published/shop/orders/1.0.0.contract.json")
    return Catalog(tmp_path / "published")


def test_lint_of_a_good_file_tells_its_identity(tmp_path: Path, catalog: Catalog) -> None:
    """A file that could be published says under what, and what it was compared with."""
    path = batches.write(tmp_path / "mine.contract.json", version="1.0.1", contact="x@example.org")
    report = show.lint(path, catalog)
    assert report.verdict == "pass"
    assert report.facts["contract"] == "shop/orders@1.0.1"
    assert report.facts["compared"] == ["shop/orders@1.0.0"]
    assert report.facts["published"] is False


def test_lint_tells_every_problem_as_a_finding(tmp_path: Path, catalog: Catalog) -> None:
    """Each fault is a finding with its field and a remedy."""
    path = batches.write(tmp_path / "mine.contract.json", owner="A", contact="", surprise=1)
    report = show.lint(path, catalog)
    assert [finding.location for finding in report.findings] == ["contact", "owner", "surprise"]
    assert all(finding.remedy for finding in report.findings)


def test_lint_tells_a_step_that_is_too_small(tmp_path: Path, catalog: Catalog) -> None:
    """The comparison with published versions is part of lint."""
    path = batches.write(tmp_path / "mine.contract.json", version="1.0.1", on_violation="WARN")
    report = show.lint(path, catalog)
    assert [finding.rule for finding in report.findings] == ["contract.refused"]
    assert "2.0.0" in report.findings[0].remedy


def test_contracts_are_listed_and_shown(workspace: Workspace) -> None:
    """The catalog of this house and one contract of it, as rows."""
    assert "nyc/flights" in [row["contract"] for row in show.contracts(workspace)]
    found = show.contract(workspace, "nyc/flights@1.0.0")
    assert found["summary"]["contract"] == "nyc/flights@1.0.0"
    assert len(found["columns"]) == 19
    assert {row["id"] for row in found["rules"]} >= {"key.unique", "origin-in-new-york"}


def test_diff_takes_names_and_files(workspace: Workspace, tmp_path: Path) -> None:
    """Either side may be published or a file on the owner's desk."""
    path = str(batches.write(tmp_path / "mine.contract.json"))
    assert show.diff(workspace, path, path)["required_step"] == "none"
    assert show.diff(workspace, "nyc/flights", path)["required_step"] == "major"
    with pytest.raises(InputError):
        show.diff(workspace, "nyc/none", path)


def test_fuses_and_incidents_are_shown(workspace: Workspace) -> None:
    """After a refusal both can be read without judging anything."""
    folder = workspace.sources / "nyc/planes"
    batches.deliver(workspace.sources, batches.table(batches.rows()))
    (workspace.sources / "shop/orders").rename(workspace.sources / "nyc-planes")
    folder.parent.mkdir()
    (workspace.sources / "nyc-planes").rename(folder)
    assert show.incidents(workspace) == []
    assert validate(workspace, "nyc/planes", "day", None, "tests").verdict == "fail"
    (row,) = show.fuses(workspace, "nyc/planes")
    assert (row["consumer"], row["state"]) == ("tests", "open")
    assert len(show.incidents(workspace)) == 2


def test_reading_door_loads_no_engine(root: Path) -> None:
    """Lint and show start fast because nothing heavy is imported."""
    code = (
        "import sys, tasks.validate.show\n"
        "heavy = {'duckdb', 'pyarrow', 'prefect', 'numpy', 'mlflow', 'jsonschema'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_publication_is_a_report(workspace: Workspace, catalog: Catalog, tmp_path: Path) -> None:
    """Publishing passes with facts, and fails with findings, never with a traceback."""
    mine = tmp_path / "mine.contract.json"
    batches.deliver(workspace.sources, batches.table(batches.rows()))
    batches.write(mine, version="1.1.0", location="shop/orders", lineage_anchor="git:shop@1")
    done = publishing.publish_contract(workspace, mine, catalog, "day")
    assert (done.verdict, done.facts["sample"], done.facts["dry_run"]) == ("pass", "pass", False)
    assert done.subject == "shop/orders@1.1.0"
    batches.write(mine, version="1.1.0")
    refused = publishing.publish_contract(workspace, mine, catalog)
    assert [finding.rule for finding in refused.findings] == ["contract.overwrite-refused"]
    assert refused.facts["contract"] == "shop/orders@1.1.0"
    batches.write(mine, version="x")
    broken = publishing.publish_contract(workspace, mine, catalog)
    assert [finding.location for finding in broken.findings] == ["version"]
    assert broken.facts == {"contract": mine.name, "digest": "", "schema_hash": ""}
