"""Good and bad rows apart: complete, exact, and never half there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from contracts import enforcement, quarantine
from contracts.base import files as base_files
from contracts.base.errors import DigestMismatch
from contracts.judge import judge
from contracts.quarantine import AuditRefused, Quarantine
from contracts.terms import Contract
from tests.fakes import batches

CONTRACT = batches.make(on_violation="QUARANTINE_AND_ALERT")


def _put(root: Path, content: Any, contract: Contract = CONTRACT, **delivery: Any) -> Quarantine:
    batch = batches.deliver(root / "in", content, **delivery)
    verdict = judge(contract, batch)
    assert enforcement.decide(contract, verdict).action == "quarantine"
    return quarantine.put_aside(contract, batch, verdict, root / "quarantine")


def _bad(found: Quarantine) -> list[dict[str, Any]]:
    folder = found.folder / quarantine.REJECTED
    return [
        row for path in sorted(folder.iterdir()) for row in parquet.read_table(path).to_pylist()
    ]


def _good(found: Quarantine) -> list[dict[str, Any]]:
    return [row for path in found.accepted.paths for row in parquet.read_table(path).to_pylist()]


@pytest.mark.parametrize("folder", ["plain", "sp ace ü'[1]*?"])
def test_each_bad_row_says_which_rules_it_broke(tmp_path: Path, folder: str) -> None:
    """Bits name the rules, good rows keep order and schema, and both are complete."""
    first = batches.table(batches.rows(5, amount={1: -1.0}, status={1: "lost", 3: "lost"}))
    second = batches.table([{**row, "id": row["id"] + 10} for row in batches.rows(3)])
    found = _put(tmp_path / folder, [first, second], row_group_size=2)
    assert found.rules == ("amount-range", "status-known")
    assert [(row["id"], row["broken_0"]) for row in _bad(found)] == [(1, 0b11), (3, 0b10)]
    assert [row["id"] for row in _good(found)] == [0, 2, 4, 10, 11, 12]
    assert (found.good_rows, found.bad_rows) == (6, 2)
    assert judge(CONTRACT, found.accepted).verdict == "pass"
    assert parquet.read_schema(found.accepted.paths[0]).equals(first.schema)


def test_all_rows_of_a_repeated_key_are_put_aside(tmp_path: Path) -> None:
    """Nobody knows which of two rows with one key is right, so both go, also across files."""
    first, second = batches.table(batches.rows(2)), batches.table(batches.rows(1))
    found = _put(tmp_path, [first, second])
    assert [row["id"] for row in _bad(found)] == [0, 0]
    assert [row["id"] for row in _good(found)] == [1]


def test_accepted_rows_know_what_they_came_from(tmp_path: Path) -> None:
    """Lineage of the good part names the delivered batch and the contract."""
    found = _put(tmp_path, batches.table(batches.rows(amount={0: -1.0})))
    assert found.accepted.lineage["derived_from"] == found.derived_from
    assert found.accepted.lineage["commit"] == "8f3a1c"
    assert found.accepted.logical_time == batches.MOMENT


def test_doing_it_again_changes_nothing(tmp_path: Path) -> None:
    """The same batch is put aside once."""
    content = batches.table(batches.rows(amount={0: -1.0}))
    first = _put(tmp_path, content)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    assert _put(tmp_path, content) == first
    assert {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")} == before


def test_two_hosts_write_the_same_bytes(tmp_path: Path) -> None:
    """Quarantine of one batch is one content, wherever it is done."""
    content = batches.table(batches.rows(amount={0: -1.0}))
    assert _put(tmp_path / "a", content).accepted.digest == (
        _put(tmp_path / "b", content).accepted.digest
    )


def test_tampered_quarantine_is_noticed(tmp_path: Path) -> None:
    """Good rows that were changed after the fact are not handed out."""
    content = batches.table(batches.rows(amount={0: -1.0}))
    found = _put(tmp_path, content)
    parquet.write_table(content, found.accepted.paths[0])
    with pytest.raises(DigestMismatch, match="changed"):
        _put(tmp_path, content)


def test_audit_refuses_what_is_left_and_leaves_nothing(tmp_path: Path) -> None:
    """If the good rows break the contract too, nothing is published."""
    contract = batches.make(
        on_violation="QUARANTINE_AND_ALERT",
        rules=[
            {"id": "a", "kind": "range", "columns": ["amount"], "minimum": 0},
            {"id": "b", "kind": "row_count", "minimum": 4},
        ],
    )
    content = batches.table(batches.rows(4, amount={0: -1.0}))
    with pytest.raises(AuditRefused, match="3 rows"):
        _put(tmp_path, content, contract)
    assert [path for path in (tmp_path / "quarantine").rglob("*") if path.is_file()] == []
    assert base_files.sweep(tmp_path) == 0


def test_more_rules_than_bits_use_more_columns(tmp_path: Path) -> None:
    """Sixty-two rules fit one mask; the next ones have a mask of their own."""
    rules = [
        {"id": f"r{index}", "kind": "range", "columns": ["amount"], "minimum": 0.5 + index / 1000}
        for index in range(70)
    ]
    contract = batches.make(on_violation="QUARANTINE_AND_ALERT", rules=rules)
    found = _put(tmp_path, batches.table(batches.rows()), contract)
    (row,) = _bad(found)
    assert (row["broken_0"], row["broken_1"]) == (2**62 - 1, 2**8 - 1)


_VALUES = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 5.0, None]), st.sampled_from(["open", "paid", "lost"])),
    min_size=1,
    max_size=8,
)


@given(_VALUES, st.integers(1, 4))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_row_is_lost_and_none_is_in_both(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[Any, str]], group: int
) -> None:
    """Good and bad rows together are exactly the batch, and each is where it belongs."""
    root = tmp_path_factory.mktemp("law")
    contract = batches.make(
        on_violation="QUARANTINE_AND_ALERT", rules=batches.document()["rules"][:2]
    )
    rows = batches.rows(len(values))
    for row, (amount, status) in zip(rows, values, strict=True):
        row.update(amount=amount, status=status)
    wrong = {row["id"] for row in rows if (row["amount"] or 0) < 0 or row["status"] == "lost"}
    if not wrong or len(wrong) == len(rows):
        return
    found = _put(root, batches.table(rows), contract, row_group_size=group)
    good, bad = _good(found), _bad(found)
    assert {row["id"] for row in bad} == wrong
    assert [row["id"] for row in good] == [row["id"] for row in rows if row["id"] not in wrong]
    assert found.good_rows + found.bad_rows == len(rows)


_KILLED = """
import sys
import subprocess
import sys
from pathlib import Path
from contracts.base import failpoint
from tests.contracts.test_quarantine import put_bad_row
failpoint.configure(sys.argv[2])
put_bad_row(Path(sys.argv[1]))
"""


def put_bad_row(root: Path) -> Quarantine:
    """Put a batch aside whose second row is bad."""
    return _put(root, batches.table(batches.rows(3, amount={1: -1.0})))


@pytest.mark.parametrize(
    ("point", "there"), [("quarantine.publish.before", 0), ("quarantine.publish.after", 1)]
)
def test_kill_leaves_the_whole_quarantine_or_none(
    tmp_path: Path, root: Path, point: str, there: int
) -> None:
    """kill -9 before the move leaves nothing that is taken for one; the next attempt completes."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), point], cwd=root, check=False
    )
    assert done.returncode == -9
    parent = tmp_path / "quarantine" / CONTRACT.name
    assert len([path for path in parent.iterdir() if not path.name.startswith(".")]) == there
    assert [row["id"] for row in _bad(put_bad_row(tmp_path))] == [1]
