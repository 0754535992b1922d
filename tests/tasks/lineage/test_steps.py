from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.errors import InputError
from model_packages.oci.reference import PackageRef
from tests.fakes import house as fake

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def reference(name: str) -> PackageRef:
    return PackageRef(fake.MODEL, fake.package(name), digest.of_bytes(f"set {name}".encode()))


def test_a_release_is_logged_everywhere_once(tmp_path: Path, root: Path) -> None:
    """MLflow, the event file and the aliases say the same, and a second time nothing happens."""
    from tasks.lineage.steps import reconcile_lineage, record_lineage
    from tasks.lineage.store import Store

    house = fake.build(tmp_path / "home", root)
    with pytest.raises(InputError, match="not registered"):
        record_lineage.function(house.workspace, reference("one"), fake.reports())

    one = fake.release(house, "one")
    first = record_lineage.function(house.workspace, reference("one"), fake.reports())
    assert first.verdict == "pass"
    assert first.facts["sources"] == 6
    assert first.measurements["aliases"] == 1
    second = record_lineage.function(house.workspace, reference("one"), fake.reports())
    assert second.measurements["unchanged"] is True
    assert second.digest == first.digest
    (line,) = (house.workspace.reports / "openlineage.jsonl").read_text().splitlines()
    assert json.loads(line)["outputs"][0]["name"] == "package/flight-delay"

    house.ledger.move_pointer(fake.MODEL, fake.TARGET, expected=None, new=one, body={})
    assert reconcile_lineage.function(house.workspace, fake.MODEL).measurements == {"aliases": 1}
    assert reconcile_lineage.function(house.workspace, fake.MODEL).measurements["unchanged"]
    assert Store(house.workspace).aliases(fake.MODEL) == {"candidate": one, "live-local": one}
