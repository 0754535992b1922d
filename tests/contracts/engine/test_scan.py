"""What each rule means, and that one pass counts as a slow and simple reading would."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from contracts.base.errors import ContractInvalid
from contracts.engine import scan
from contracts.rules import Rule
from contracts.terms import Contract
from tests.fakes import batches

_TYPES = {
    "n": "int64",
    "x": "float64",
    "s": "string",
    "b": "bool",
    "d": "date",
    "t": "timestamp(us)",
}
_ARROW = {
    "n": pa.int64(),
    "x": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
}


def _contract(*rules: Mapping[str, Any], personal: str = "") -> Contract:
    columns = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "personal_data": "personal" if name == personal else "none",
            "description": "d",
        }
        for name, kind in _TYPES.items()
    ]
    return batches.make(columns=columns, rules=list(rules), key=None, freshness=None)


def _run(
    tmp_path: Path, rows: Sequence[Mapping[str, Any]], *rules: Mapping[str, Any], personal: str = ""
) -> dict[str, Any]:
    schema = pa.schema(list(_ARROW.items()))
    path = tmp_path / "part.parquet"
    parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), path)
    found = scan.run(_contract(*rules, personal=personal), [path])
    return {broken.rule.id: broken for broken in found.broken}


def _rule(kind: str, column: str | list[str] = "", **fields: Any) -> dict[str, Any]:
    columns = [column] if isinstance(column, str) else column
    named = {"columns": columns} if column else {}
    return {"id": "r", "kind": kind, **named, **fields}


SEMANTICS: list[tuple[str, dict[str, Any], str, list[Any], int]] = [
    ("null breaks not_null", _rule("not_null", "x"), "x", [None, 1.0], 1),
    ("nan keeps not_null", _rule("not_null", "x"), "x", [math.nan, 1.0], 0),
    ("empty text keeps not_null", _rule("not_null", "s"), "s", ["", "a"], 0),
    ("bounds are inside", _rule("range", "n", minimum=1, maximum=3), "n", [0, 1, 3, 4], 2),
    ("null keeps range", _rule("range", "n", minimum=1), "n", [None, 1], 0),
    ("nan breaks range", _rule("range", "x", minimum=0), "x", [math.nan, 1.0], 1),
    ("infinity breaks range", _rule("range", "x", maximum=9), "x", [math.inf, -math.inf], 1),
    ("small bounds are exact", _rule("range", "x", minimum=1e-7), "x", [1e-7, 0.9e-7], 1),
    ("pattern fits the whole value", _rule("pattern", "s", pattern="b"), "s", ["b", "abc"], 1),
    ("newline is a letter", _rule("pattern", "s", pattern="[a-z]+"), "s", ["abc\n", "abc"], 1),
    ("null keeps pattern", _rule("pattern", "s", pattern="b"), "s", [None], 0),
    ("quotes in patterns", _rule("pattern", "s", pattern="a'b"), "s", ["a'b", "ab"], 1),
    ("null keeps allowed", _rule("allowed", "s", values=["a"]), "s", [None, "a"], 0),
    ("case counts", _rule("allowed", "s", values=["a"]), "s", ["A", "a"], 1),
    ("quotes in values", _rule("allowed", "s", values=["o'x"]), "s", ["o'x", "ox"], 1),
    ("numbers allowed", _rule("allowed", "n", values=[1, 2]), "n", [1, 2, 3], 1),
    ("nan is not allowed", _rule("allowed", "x", values=[1.5]), "x", [math.nan, 1.5], 1),
    ("truth allowed", _rule("allowed", "b", values=[True]), "b", [True, False], 1),
    ("length in characters", _rule("length", "s", maximum=2), "s", ["äö", "abc", None], 1),
    ("length of nothing", _rule("length", "s", minimum=1), "s", ["", "a"], 1),
    ("every repeat counts", _rule("unique", "n"), "n", [7, 7, 7, 1], 3),
    ("nulls are not compared", _rule("unique", "n"), "n", [None, None, 1], 0),
    ("nan equals nan", _rule("unique", "x"), "x", [math.nan, math.nan, 1.0], 2),
    ("empty texts repeat", _rule("unique", "s"), "s", ["", "", "a"], 2),
    ("dates in a range", _rule("range", "d", minimum="2026-01-02"), "d", [date(2026, 1, 1)], 1),
    (
        "times in a range",
        _rule("range", "t", maximum="2026-01-01T12:00:00Z"),
        "t",
        [datetime.fromisoformat(f"2026-01-01T12:00:0{second}") for second in (0, 1)],
        1,
    ),
    ("share of nulls", _rule("null_share", "n", maximum=0.5), "n", [None, None, 1], 2),
    ("share reached", _rule("null_share", "n", maximum=0.5), "n", [None, 1], 0),
    ("nan is no null", _rule("null_share", "x", maximum=0), "x", [math.nan], 0),
    ("too few rows", _rule("row_count", minimum=3), "n", [1, 2], 2),
    ("too many rows", _rule("row_count", maximum=1), "n", [1, 2], 2),
]


@pytest.mark.parametrize(
    ("rule", "column", "values", "count"),
    [case[1:] for case in SEMANTICS],
    ids=[case[0] for case in SEMANTICS],
)
def test_rule_means_what_the_readme_says(
    tmp_path: Path, rule: dict[str, Any], column: str, values: list[Any], count: int
) -> None:
    """Null, NaN, empty text, repeats and bounds count as documented."""
    broken = _run(tmp_path, [{column: value} for value in values], rule)
    assert (broken["r"].count if "r" in broken else 0) == count


def test_moments_with_a_zone_are_compared_as_moments(tmp_path: Path) -> None:
    """A bound given in another zone is the same moment."""
    rule = {
        "id": "r",
        "kind": "range",
        "columns": ["placed"],
        "minimum": "2026-02-28T21:00:00+01:00",
    }
    contract = batches.make(rules=[rule])
    batch = batches.deliver(tmp_path, batches.table(batches.rows(5)))
    (broken,) = scan.run(contract, batch.paths).broken
    assert (broken.count, broken.rule.minimum) == (1, "2026-02-28T20:00:00.000Z")


def test_combination_is_unique_where_its_parts_are_not(tmp_path: Path) -> None:
    """A key of two columns compares pairs, across files, and skips pairs with a null."""
    rows = [{"n": 1, "s": "a"}, {"n": 1, "s": "b"}, {"n": 2, "s": "a"}, {"n": 1, "s": None}]
    assert _run(tmp_path, rows, _rule("unique", ["n", "s"])) == {}
    broken = _run(tmp_path, [*rows, rows[0]], _rule("unique", ["n", "s"]))
    assert broken["r"].count == 2
    assert broken["r"].samples == ({"n": 1, "s": "a", "repeated_rows": 2},)


def test_samples_mask_personal_data(tmp_path: Path) -> None:
    """A sample shows that a personal value is there, never the value."""
    rows = [{"s": "secret"}, {"s": None}]
    broken = _run(tmp_path, rows, _rule("pattern", "s", pattern="x"), personal="s")
    assert broken["r"].samples == ({"s": "***"},)


def test_samples_are_few_and_in_a_fixed_order(tmp_path: Path) -> None:
    """The same data gives the same samples, however many rows are bad."""
    rows = [{"n": number} for number in range(100, 0, -1)]
    broken = _run(tmp_path, rows, _rule("range", "n", minimum=1000))
    assert [sample["n"] for sample in broken["r"].samples] == [1, 2, 3, 4, 5]


def test_many_failing_rules_are_all_counted(tmp_path: Path) -> None:
    """Samples stop after some rules; counts never do."""
    rules = [
        {**_rule("range", "n", minimum=1000 + index), "id": f"r{index}"} for index in range(70)
    ]
    broken = _run(tmp_path, [{"n": 1}], *rules)
    assert len(broken) == 70
    assert all(item.count == 1 for item in broken.values())
    assert not broken["r69"].samples


def test_pattern_of_another_language_is_refused(tmp_path: Path) -> None:
    """Look-around, which RE2 has not, is a fault of the contract and named as such."""
    contract = _contract(_rule("pattern", "s", pattern="(?=x)"))
    with pytest.raises(ContractInvalid, match="RE2"):
        scan.check_patterns(contract)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**60, str(2**60)),
        (math.nan, "nan"),
        (1.5, 1.5),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime.fromisoformat("2026-01-02T03:00:00"), "2026-01-02T03:00:00.000Z"),
        (b"\x01\xff", "01ff"),
        ("x" * 300, "x" * 200 + "..."),
        ([1], "[1]"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_samples_are_plain_data(value: Any, expected: Any) -> None:
    """Every value of the engine has a form that JSON carries."""
    assert scan.plain(value) == expected


# An oracle that reads rows one by one and knows nothing of SQL.


def _breaks(rule: Rule, row: Mapping[str, Any]) -> bool:
    value = row[rule.column]
    if rule.kind in ("not_null", "null_share"):
        return value is None
    if value is None:
        return False
    if rule.kind == "allowed":
        return value not in rule.values
    if rule.kind == "pattern":
        return re.fullmatch(rule.pattern, value) is None
    measured = len(value) if rule.kind == "length" else value
    low = -math.inf if rule.minimum is None else rule.minimum
    high = math.inf if rule.maximum is None else rule.maximum
    return not low <= measured <= high


def _expected(rule: Rule, rows: Sequence[Mapping[str, Any]]) -> int:
    if rule.kind == "row_count":
        return 0 if rule.minimum <= len(rows) <= rule.maximum else len(rows)  # type: ignore[operator]
    if rule.kind == "unique":
        keys = [tuple(row[column] for column in rule.columns) for row in rows]
        keys = [key for key in keys if None not in key]
        return sum(keys.count(key) > 1 for key in keys)
    count = sum(_breaks(rule, row) for row in rows)
    if rule.kind == "null_share":
        return 0 if not rows or count / len(rows) <= rule.maximum else count  # type: ignore[operator]
    return count


_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-3, 3),
            "x": st.none() | st.sampled_from([-1.5, 0.0, 0.25, 2.0, 1e300]),
            "s": st.none() | st.text(alphabet="ab\nä", max_size=3),
        }
    ),
    max_size=12,
)
_INTERVAL = st.tuples(st.integers(-3, 3), st.integers(-3, 3)).map(sorted)


def _bounded(kind: str, column: str) -> st.SearchStrategy[dict[str, Any]]:
    shift = 3 if kind == "length" else 0
    return _INTERVAL.map(
        lambda pair: _rule(kind, column, minimum=pair[0] + shift, maximum=pair[1] + shift)
    )


_RULES = st.lists(
    st.one_of(
        st.sampled_from("nxs").map(lambda column: _rule("not_null", column)),
        st.lists(st.sampled_from("ns"), min_size=1, max_size=2, unique=True).map(
            lambda columns: _rule("unique", columns)
        ),
        _bounded("range", "n"),
        _bounded("range", "x"),
        _bounded("length", "s"),
        st.sampled_from(["a*", "[ab]+", "ä?b", "(a|b){2}", "."]).map(
            lambda pattern: _rule("pattern", "s", pattern=pattern)
        ),
        st.lists(st.integers(-3, 3), min_size=1, unique=True).map(
            lambda values: _rule("allowed", "n", values=values)
        ),
        st.sampled_from([0, 0.25, 1]).map(lambda share: _rule("null_share", "s", maximum=share)),
        _INTERVAL.map(lambda p: _rule("row_count", minimum=p[0] + 3, maximum=p[1] + 6)),
    ),
    min_size=1,
    max_size=6,
).map(lambda rules: [{**rule, "id": f"r{index}"} for index, rule in enumerate(rules)])


@given(_ROWS, _RULES)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_one_pass_counts_like_a_reader_of_rows(
    tmp_path: Path, rows: list[dict[str, Any]], rules: list[dict[str, Any]]
) -> None:
    """For any small table and rules, the engine's counts equal those of a plain loop."""
    broken = _run(tmp_path, rows, *rules)
    for rule in _contract(*rules).all_rules:
        if rule.id == "rows.present":
            continue
        expected = _expected(rule, rows)
        if rule.kind == "row_count" and not rows and rule.minimum:  # type: ignore[truthy-bool]
            assert rule.id in broken
        else:
            assert (broken[rule.id].count if rule.id in broken else 0) == expected, rule
