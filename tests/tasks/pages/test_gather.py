"""A page's document is filled from what the stages established, and from nothing malformed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.report import Report
from tasks.pages.document import LatencySeries, ReportDocument
from tasks.pages.gather import gather, latency
from tasks.pages.render import render

FACTS: dict[str, dict[str, Any]] = {
    "train": {
        "metrics": {
            "calibration": {
                "reliability": [{"bin": 0, "rows": 9, "predicted": 0.1, "observed": 0.2}]
            },
            "slices": {
                "carrier": [
                    {"value": "UA", "rows": 7, "roc_auc": 0.7},
                    {"value": "AA", "rows": 7, "roc_auc": None},
                ]
            },
        }
    },
    "trust": {
        "importance": {
            "inputs": [
                {"name": "dest", "reliance": 0.01, "low": 0.0, "high": 0.02},
                {"name": "carrier", "reliance": 0.02, "low": 0.01, "high": 0.03},
            ],
            "ties": [["carrier", "dest"]],
        }
    },
    "hardware": {
        "matrix": [
            {
                "device": "cpu",
                "check": "latency",
                "status": "measured",
                "passed": True,
                "reason": "within the limit",
            }
        ]
    },
    "verify": {
        "equivalence": [{"output": "probability", "maximum": {"found": 1e-7, "limit": 1e-6}}]
    },
    "compliance": {
        "claimed_level": "L1",
        "achieved_level": None,
        "lacking": [
            {
                "id": "A-1",
                "level": "L1",
                "title": "t",
                "status": "fail",
                "reason": "r",
                "remedy": "",
            }
        ],
        "requirements": [
            {"id": "A-1", "level": "L1", "title": "t", "status": "fail", "reason": "r"}
        ],
    },
}
MEASURED = {
    "hardware": {"figures": {"cpu latency": "1 ms"}},
    "verify": {"load": {"latency_ms": {"p50": 1.0, "p99": 3.0}, "requests": 9, "offered_per_s": 5}},
}


def reports(facts: dict[str, Any]) -> tuple[Report, ...]:
    return tuple(
        Report(stage, "x", "pass", facts=value, measurements=MEASURED.get(stage, {}))
        for stage, value in facts.items()
    )


def test_every_stage_fills_its_part() -> None:
    """Facts become plots and tables; figures replace reasons where they were measured."""
    document = gather(ReportDocument("x", reports(FACTS)))
    assert [row.name for row in document.importance] == ["carrier", "dest"]
    assert document.importance[0].note == "not told apart: carrier, dest"
    assert document.errors[0].limit == 1e-6
    assert document.matrix[0].reason == "1 ms"
    assert document.calibration[0].count == 9
    assert [row.name for row in document.slices] == ["carrier = UA"]
    assert (document.claimed_level, document.achieved_level) == ("L1", "none")
    assert document.lacking == ("L1 A-1: t (fail: r)",)
    assert document.requirements[0].id == "A-1"
    assert document.latencies[0].percentiles == ((50.0, 1.0), (99.0, 3.0))
    assert render(document)


def test_what_the_caller_knows_is_kept() -> None:
    """The deployment's latency stands beside that of the verification."""
    served = latency("deployment", {"p50": 1, "p99.9": 2, "mean": 3, "p99": "x"}, 10)
    document = gather(ReportDocument("x", reports(FACTS), latencies=(served,)))
    assert [line.name for line in document.latencies] == ["verify", "deployment"]
    assert served == LatencySeries("deployment", ((50.0, 1.0), (99.9, 2.0)), 10)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(("stage", "name"), [(s, n) for s, f in FACTS.items() for n in f])
@settings(max_examples=30, deadline=None)
@given(value=PLAIN)
def test_malformed_facts_are_left_out(stage: str, name: str, value: Any) -> None:
    """Whatever a fact holds, gathering it raises nothing."""
    gather(ReportDocument("x", reports({**FACTS, stage: {**FACTS[stage], name: value}})))
