"""A document with every part, for the tests of pages."""

from __future__ import annotations

from contracts.base import digest
from contracts.base.report import Finding, Report, conclude, skipped
from tasks.pages.document import (
    CalibrationPoint,
    ErrorBar,
    Interval,
    LatencySeries,
    LineageStep,
    Link,
    MatrixCell,
    ReportDocument,
    RequirementRow,
    SliceRow,
)

DIGEST = digest.of_bytes(b"package")
SUBJECT = f"flight-delay@{DIGEST}"
NO_PLOTS: dict[str, object] = {"importance": (), "errors": (), "latencies": (), "calibration": ()}
EVIL = "<script>alert('1')</script>&\"{{ 7*7 }}"


def finding(severity: str = "high", text: str = "The profile has 8,192 MB.") -> Finding:
    return Finding("hardware.memory", SUBJECT, "cpu-x86-64", severity, text, "Lower it.")  # type: ignore[arg-type] # named by the test


def reports() -> tuple[Report, ...]:
    return (
        Report("validate", SUBJECT, "pass", measurements={"seconds": 1.25}),
        Report("snapshot", SUBJECT, "pass", measurements={"seconds": 0.5, "unchanged": True}),
        conclude("hardware", SUBJECT, [finding()], measurements={"seconds": 4.0}),
        skipped("compliance", SUBJECT, "an earlier stage blocks"),
    )


def document(**changes: object) -> ReportDocument:
    parts: dict[str, object] = {
        "title": "flight-delay 1.0.0",
        "reports": reports(),
        "subject": "Judged for the target local.",
        "claimed_level": "L1",
        "achieved_level": "L1",
        "lacking": ("L2 COV-1: coverage",),
        "identities": (("package", DIGEST),),
        "importance": (
            Interval("carrier", 0.05, 0.04, 0.06, "not told apart from dest"),
            Interval("a name that is much longer than a plot can show", 0.04, 0.02, 0.05),
            Interval("$weird_{name}$", 0.0, -0.01, 0.01),
        ),
        "errors": (ErrorBar("probability", 0.0, 1e-6), ErrorBar("logit", 2e-6, 1e-6)),
        "latencies": (
            LatencySeries("verify", ((50, 1.0), (99, 4.0)), 300, "open loop"),
            LatencySeries("deployment", ((50, 0.8), (99.9, 7.0)), 3000),
        ),
        "matrix": (
            MatrixCell("cpu-x86-64", "memory", "measured", True, "3 MB"),
            MatrixCell("rtx4090", "memory", "predicted", False, "too large"),
            MatrixCell("a100", "latency", "not-run", None, "not demanded"),
        ),
        "calibration": (CalibrationPoint(0.1, 0.12, 400), CalibrationPoint(0.5, 0.4, 30)),
        "slices": (SliceRow("carrier = UA", "roc_auc", 0.7, 0.68, 0.72, 900),),
        "requirements": (RequirementRow("PKG-1", "L1", "Digests", "pass", "12 files"),),
        "lineage": (LineageStep("contract", "nyc/flights@1.0.0", DIGEST, "rules"),),
        "links": (Link("audit", "audit.json"), Link("page", "https://example.org/")),
        "made_at": "2026-11-30 21:40 UTC",
    }
    return ReportDocument(**{**parts, **changes})  # type: ignore[arg-type] # parts are named above
