"""Judging a batch: in which order, how early it ends, and what it says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.errors import CaissonError, DigestMismatch
from contracts.base.report import Report
from contracts.checks import spoken
from contracts.engine import scan
from contracts.judge import judge
from contracts.sources import files
from contracts.sources.interface import Batch
from tests.fakes import batches


def _judge(root: Path, content: Any, *, contract: Any = None, **delivery: Any) -> Report:
    batch = batches.deliver(root, content, **delivery)
    return judge(contract or batches.make(), batch)


def _rules(report: Report) -> list[str]:
    return sorted(finding.rule for finding in report.findings)


def test_good_batch_passes_with_its_facts(tmp_path: Path) -> None:
    """A batch that keeps every promise passes, and the report says what was established."""
    report = _judge(tmp_path, batches.table(batches.rows()))
    assert (report.verdict, report.findings) == ("pass", ())
    assert report.subject == "shop/orders@1.0.0#day"
    assert report.facts["rows"] == 4
    assert report.facts["schema_hash"] == batches.make().schema_hash
    assert report.facts["rules_evaluated"] == len(batches.make().all_rules)
    assert report.facts["not_evaluated"] == []


def test_same_batch_gives_the_same_report_anywhere(tmp_path: Path) -> None:
    """Nothing of the place or the moment is in a report's digest."""
    first = _judge(tmp_path / "a", batches.table(batches.rows(amount={0: -1.0})))
    second = _judge(tmp_path / "b", batches.table(batches.rows(amount={0: -1.0})))
    assert first.digest == second.digest
    assert str(tmp_path) not in str(first.to_dict())


@pytest.fixture
def no_data_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if data is read after all."""

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("data was read")

    monkeypatch.setattr(scan, "run", refuse)


@pytest.mark.usefixtures("no_data_read")
def test_renamed_column_is_refused_by_the_footer(tmp_path: Path) -> None:
    """A renamed column is refused before data is read, and the message guesses the rename."""
    content = batches.table(batches.rows()).rename_columns(
        ["id", "customer", "total", "status", "placed"]
    )
    report = _judge(tmp_path, content)
    assert _rules(report) == ["data.column-missing", "data.column-unexpected"]
    assert "renamed to total?" in " ".join(finding.message for finding in report.findings)
    assert report.facts["rules_evaluated"] == 0
    assert "amount-range" in report.facts["not_evaluated"]


@pytest.mark.usefixtures("no_data_read")
def test_changed_type_is_refused_by_the_footer(tmp_path: Path) -> None:
    """A column of another type is refused even if its values would fit."""
    import pyarrow as pa

    content = batches.table(batches.rows())
    content = content.set_column(0, "id", content["id"].cast(pa.int32()))
    report = _judge(tmp_path, content)
    assert [finding.message for finding in report.findings] == [
        "column id: expected type int64, got int32"
    ]


@pytest.mark.usefixtures("no_data_read")
def test_one_wrong_file_among_many_is_found(tmp_path: Path) -> None:
    """Every file's own schema counts, not only the first one's."""
    good = batches.table(batches.rows())
    report = _judge(tmp_path, [good, good.drop_columns(["status"])])
    assert _rules(report) == ["data.column-missing"]
    assert report.findings[0].evidence["file"] == "part-1.parquet"
    assert len(report.facts["schema_hash"]) == 2


@pytest.mark.usefixtures("no_data_read")
@pytest.mark.parametrize(
    ("delivery", "rule"),
    [
        ({"moment": batches.MOMENT + timedelta(days=2)}, "data.stale"),
        ({"moment": batches.MOMENT - timedelta(hours=3)}, "data.ahead"),
        ({"lineage": {}}, "data.lineage-missing"),
        ({"lineage": {"commit": " "}}, "data.lineage-missing"),
    ],
    ids=["stale", "ahead", "no lineage", "empty commit"],
)
def test_metadata_alone_refuses(tmp_path: Path, delivery: dict[str, Any], rule: str) -> None:
    """Age and lineage are judged before data is read."""
    report = _judge(tmp_path, batches.table(batches.rows()), **delivery)
    assert _rules(report) == [rule]


@pytest.mark.usefixtures("no_data_read")
def test_empty_batch_is_refused(tmp_path: Path) -> None:
    """No rows is never a pass, though every rule about rows would hold."""
    report = _judge(tmp_path, batches.table([]))
    assert _rules(report) == ["data.row-count:rows.present"]


def test_batch_of_the_future_is_refused(tmp_path: Path) -> None:
    """A batch for a moment after this run is refused."""
    batch = batches.deliver(tmp_path, batches.table(batches.rows()))
    report = judge(batches.make(), batch, batches.MOMENT - timedelta(seconds=1))
    assert "data.from-future" in _rules(report)


def test_backfill_is_judged_as_of_its_own_time(tmp_path: Path) -> None:
    """A batch that was fresh when it was due stays so, however much later it is judged."""
    batch = batches.deliver(tmp_path, batches.table(batches.rows()))
    report = judge(batches.make(), batch, batches.MOMENT + timedelta(days=900))
    assert report.verdict == "pass"


def test_times_without_value_are_stale(tmp_path: Path) -> None:
    """Data whose age nobody can tell is not fresh."""
    columns = [{**item, "description": "d"} for item in batches.document()["columns"]]
    columns[-1]["nullable"] = True
    contract = batches.make(columns=columns)
    content = batches.table(batches.rows(2, placed={0: None, 1: None}))
    assert _rules(_judge(tmp_path, content, contract=contract)) == ["data.stale"]


def test_every_broken_rule_is_told_with_count_and_rows(tmp_path: Path) -> None:
    """Each rule that does not hold is a finding with its count, samples and key."""
    content = batches.table(
        batches.rows(
            6,
            amount={0: -1.0, 1: -2.0},
            status={2: "lost"},
            id={4: 3},
            customer={5: None},
        )
    )
    report = _judge(tmp_path, content)
    assert report.verdict == "fail"
    assert report.facts["broken_rules"] == [
        "column.customer.not-null",
        "key.unique",
        "amount-range",
        "status-known",
    ]
    found = {finding.rule: finding for finding in report.findings}
    lost = found["data.allowed:status-known"]
    assert "1 of 6 rows breaks rule status-known; expected one of open, paid" in lost.message
    assert lost.evidence["samples"] == [{"id": 2, "status": "lost"}]
    assert found["data.unique:key.unique"].evidence["count"] == 2
    assert "orders@example.org" in lost.remedy


def test_low_rule_is_told_and_does_not_block(tmp_path: Path) -> None:
    """A rule of severity low leaves the batch accepted, once for metadata and scan together."""
    rules = [
        {"id": "a", "kind": "range", "columns": ["amount"], "minimum": 1, "severity": "low"},
        {"id": "b", "kind": "row_count", "minimum": 100, "severity": "info"},
    ]
    contract = batches.make(rules=rules)
    report = _judge(tmp_path, batches.table(batches.rows()), contract=contract)
    assert report.verdict == "pass"
    assert _rules(report) == ["data.range:a", "data.row-count:b"]
    assert report.facts["broken_rules"] == []


def test_share_of_nulls_is_of_the_whole_batch(tmp_path: Path) -> None:
    """The share is told in percent of the rows."""
    content = batches.table(batches.rows(4, amount={0: None, 1: None, 2: None}))
    (finding,) = _judge(tmp_path, content).findings
    assert "75.0000% of 4 rows are null; expected at most 50.00% null" in finding.message


def test_file_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict on bytes that are not there any more is no verdict."""
    batch = batches.deliver(tmp_path, batches.table(batches.rows()))
    whole = scan.run

    def change_after(*arguments: Any) -> scan.Scan:
        result = whole(*arguments)
        batch.paths[0].write_bytes(b"other")
        return result

    monkeypatch.setattr(scan, "run", change_after)
    with pytest.raises(DigestMismatch):
        judge(batches.make(), batch)


def test_contract_without_freshness_judges_no_age(tmp_path: Path) -> None:
    """What was not promised is not checked, and the report names no newest row."""
    contract = batches.make(freshness=None)
    moment = batches.MOMENT + timedelta(days=99)
    report = _judge(tmp_path, batches.table(batches.rows()), contract=contract, moment=moment)
    assert report.verdict == "pass"
    assert report.facts["newest"] is None


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(5, "5 ms"), (61_000, "1 min 1 s"), (86_400_000, "1 d"), (2_668_400_000, "30 d 21 h")],
)
def test_lengths_of_time_are_spoken(milliseconds: int, text: str) -> None:
    """A message tells time in the two largest units."""
    assert spoken(milliseconds) == text


_CHANGES = st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=3)


@given(_CHANGES)
@settings(max_examples=80, deadline=None)
def test_damaged_file_is_judged_or_a_typed_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]]
) -> None:
    """Whatever bytes of a Parquet file are wrong, the process lives and says something."""
    root = tmp_path_factory.mktemp("damage")
    path = batches.deliver(root, batches.table(batches.rows(20))).paths[0]
    data = bytearray(path.read_bytes())
    for place, byte in changes:
        data[int(place * len(data))] = byte
    path.write_bytes(data)
    try:
        report = judge(batches.make(), files.open_batch(root, "shop/orders", "day"))
    except CaissonError:
        return
    assert report.verdict in ("pass", "fail")


def test_batch_is_a_plain_value(tmp_path: Path) -> None:
    """Opening the same folder twice gives equal values."""
    first = batches.deliver(tmp_path, batches.table(batches.rows()))
    second: Batch = batches.deliver(tmp_path, batches.table(batches.rows()))
    assert first == second
