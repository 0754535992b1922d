"""Commands that read: the same content as a table and as JSON, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes import batches, house
from tests.fakes.house import House
from tests.flows.cli.conftest import Caisson


def test_status_shows_what_is_live(caisson: Caisson, released: House) -> None:
    """Model, target and level are in the table; digests whole only in JSON."""
    ended = caisson("status")
    assert ended.status == 0
    assert house.MODEL in ended.out
    assert "stopped" in ended.out
    (row,) = caisson("status", "--json").json
    assert row["live"] == house.package("first")
    assert row["live"] not in ended.out
    assert row["live"][:19] in ended.out


def test_status_of_an_empty_home_says_what_to_do(caisson: Caisson, tmp_path: Path) -> None:
    """Nothing is made by looking."""
    ended = caisson("status")
    assert (ended.status, ended.err) == (0, "")
    assert "caisson demo" in ended.out
    assert caisson("status", "--json").json == []
    assert list(tmp_path.iterdir()) == []


def test_lineage_goes_from_an_answer_to_the_contract(caisson: Caisson, released: House) -> None:
    """One served answer leads back to package, bundle, contract and commit."""
    ended = caisson("lineage", "request-1")
    assert ended.status == 0
    for part in ("came from", house.CONTRACT, released.manifest.version):
        assert part in ended.out
    short, full = caisson("lineage", "request-1"), caisson("lineage", "request-1", "--full")
    assert house.package("first") in full.out
    assert house.package("first") not in short.out
    assert "came from" in caisson("lineage", "request-1", "--json").json


def test_lineage_goes_both_ways(caisson: Caisson, released: House) -> None:
    """A bundle shows what it was made from and what was made of it."""
    found = caisson("lineage", released.manifest.version, "--json").json
    assert set(found) == {"came from", "came of it"}


def test_lineage_of_the_unknown_is_2(caisson: Caisson, released: House) -> None:
    """The error says what may be asked."""
    ended = caisson("lineage", "nobody-knows")
    assert ended.status == 2
    assert "request id" in ended.err


def test_contracts_are_listed_and_shown(caisson: Caisson) -> None:
    """The published ones, with columns and rules."""
    assert "nyc/flights" in caisson("contract", "list").out
    names = [row["contract"] for row in caisson("contract", "list", "--json").json]
    assert names == ["nyc/flights", "nyc/planes", "nyc/weather"]
    shown = caisson("contract", "show", "nyc/flights@1.0.0")
    assert shown.status == 0
    assert "arr_delay" in shown.out
    found = caisson("contract", "show", "nyc/flights", "--json").json
    assert set(found) == {"summary", "columns", "rules", "fuses"}


def test_an_unknown_contract_is_2_with_those_there_are(caisson: Caisson) -> None:
    """The offer is part of the error."""
    ended = caisson("contract", "show", "nyc/trains")
    assert ended.status == 2
    assert "nyc/flights" in ended.err


def test_lint_tells_good_from_bad(caisson: Caisson, tmp_path: Path) -> None:
    """A good file is 0, a bad one 1 with every problem, a missing one 2."""
    good = batches.write(tmp_path / "good.json")
    assert caisson("contract", "lint", str(good)).status == 0
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({**batches.document(), "license": "", "key": ["nobody"]}))
    ended = caisson("contract", "lint", str(bad))
    assert ended.status == 1
    assert "nobody" in ended.out
    report = caisson("contract", "lint", str(bad), "--json").json
    assert report["verdict"] == "fail"
    assert all(item["remedy"] for item in report["findings"])
    assert caisson("contract", "lint", str(tmp_path / "absent.json")).status == 2


def test_diff_says_what_changed_and_what_it_demands(caisson: Caisson, tmp_path: Path) -> None:
    """Two files are compared; the same twice has no changes."""
    old = batches.write(tmp_path / "old.json")
    new = batches.write(tmp_path / "new.json", version="1.1.0", description="Another text.")
    ended = caisson("contract", "diff", str(old), str(new))
    assert ended.status == 0
    found = caisson("contract", "diff", str(old), str(new), "--json").json
    assert found["changes"]
    assert caisson("contract", "diff", str(old), str(old), "--json").json["changes"] == []
    assert "changes: none" in caisson("contract", "diff", str(old), str(old)).out


def test_feature_versions_are_listed(caisson: Caisson, released: House) -> None:
    """Every published bundle, with its root in full only for machines."""
    ended = caisson("features", "list")
    assert (ended.status, released.manifest.version in ended.out) == (0, True)
    (row,) = caisson("features", "list", "--json").json
    assert (row["version"], row["rows"]) == (released.manifest.version, 1)
    assert row["root"] not in ended.out


def test_a_feature_version_shows_what_it_was_made_from(caisson: Caisson, released: House) -> None:
    """Contracts and rows, as a table and as JSON."""
    made = released.manifest
    ended = caisson("features", "show", made.definition, made.version)
    assert ended.status == 0
    assert house.CONTRACT in ended.out
    found = caisson("features", "show", made.definition, made.version, "--json").json
    assert found["rows"] == made.rows


def test_an_unknown_feature_version_is_2(caisson: Caisson, released: House) -> None:
    """Not there and not a version are both plain."""
    name = released.manifest.definition
    assert caisson("features", "show", name, "20200101-0123456789ab").status == 2
    assert caisson("features", "show", name, "newest").status == 2


@pytest.mark.parametrize("command", ["status", "contract list", "features list"])
def test_results_are_on_stdout_alone(caisson: Caisson, released: House, command: str) -> None:
    """Nothing but the result is there, so that it can be piped."""
    ended = caisson(*command.split(), "--json")
    assert ended.err == ""
    assert ended.json
