"""What one page shows, as plain data.

Every part may be absent, because a gate that failed early has a page too.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.base.report import Report


@dataclass(frozen=True)
class Interval:
    """A value with its interval, such as one feature's importance.

    Attributes:
        name: What was measured.
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end.
        note: A word on it, such as ``not told apart: carrier, dest``; shown once.
    """

    name: str
    value: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class ErrorBar:
    """Largest error of one output or layer against its limit.

    Attributes:
        name: The output or layer.
        error: Largest error seen.
        limit: What it may not exceed.
    """

    name: str
    error: float
    limit: float


@dataclass(frozen=True)
class LatencySeries:
    """Latency percentiles of one measurement.

    Attributes:
        name: What was measured, such as ``verify, open loop``.
        percentiles: Percentile and milliseconds, ascending.
        count: Number of answers.
        note: Rate, duration or validity, in words.
    """

    name: str
    percentiles: tuple[tuple[float, float], ...]
    count: int = 0
    note: str = ""


@dataclass(frozen=True)
class MatrixCell:
    """One check on one device.

    Attributes:
        device: The device.
        check: What was checked.
        status: ``measured``, ``predicted`` or ``not-run``.
        passed: Whether it held; None where nothing was run.
        reason: Figures, or why nothing was run.
    """

    device: str
    check: str
    status: str
    passed: bool | None
    reason: str


@dataclass(frozen=True)
class CalibrationPoint:
    """One bin of predicted against observed frequency.

    Attributes:
        predicted: Mean predicted probability.
        observed: Observed frequency.
        count: Rows in the bin.
    """

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True)
class SliceRow:
    """A metric over one part of the hold-out.

    Attributes:
        name: The slice, such as ``carrier = UA``.
        metric: Name of the metric.
        value: Its value.
        low: Lower end of its interval; equal to the value if there is none.
        high: Upper end.
        count: Rows in the slice.
    """

    name: str
    metric: str
    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class RequirementRow:
    """One requirement of a compliance level.

    Attributes:
        id: Its id.
        level: The level that brings it in.
        title: What it demands.
        status: pass, fail, waived, not-evaluated or not-applicable.
        reason: Why, and what to do.
    """

    id: str
    level: str
    title: str
    status: str
    reason: str


@dataclass(frozen=True)
class LineageStep:
    """One link in the chain from contract to answer.

    Attributes:
        kind: contract, batch, bundle, source, package, release, deployment or answer.
        name: Its name.
        identity: Its digest or version.
        detail: A word on it.
    """

    kind: str
    name: str
    identity: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Link:
    """A place to look further.

    Attributes:
        title: What is there.
        target: A path, fragment, file or http(s) address; anything else is shown as text.
        detail: A command or a word on it.
    """

    title: str
    target: str
    detail: str = ""


@dataclass(frozen=True)
class ReportDocument:
    """Everything on one page.

    Attributes:
        title: Heading, such as ``flight-delay 1.0.0``.
        reports: The stages in the order they ran.
        subject: What was judged, in a sentence.
        claimed_level: Level the manifest claims; empty if unknown.
        achieved_level: Level the audit found; ``none`` or empty if unknown.
        lacking: What is missing for the next level.
        identities: Labelled digests, names and versions.
        importance: Feature importance, most important first.
        errors: Numerical error by output or layer.
        latencies: Latency percentiles by measurement.
        matrix: Hardware matrix.
        calibration: Reliability of the predicted probabilities.
        slices: Metrics over parts of the hold-out.
        requirements: Requirements of the levels with their status.
        lineage: From contract to answer.
        links: Where to look further.
        made_at: Moment to print; empty prints none.
    """

    title: str
    reports: tuple[Report, ...]
    subject: str = ""
    claimed_level: str = ""
    achieved_level: str = ""
    lacking: tuple[str, ...] = ()
    identities: tuple[tuple[str, str], ...] = ()
    importance: tuple[Interval, ...] = ()
    errors: tuple[ErrorBar, ...] = ()
    latencies: tuple[LatencySeries, ...] = ()
    matrix: tuple[MatrixCell, ...] = ()
    calibration: tuple[CalibrationPoint, ...] = ()
    slices: tuple[SliceRow, ...] = ()
    requirements: tuple[RequirementRow, ...] = ()
    lineage: tuple[LineageStep, ...] = ()
    links: tuple[Link, ...] = ()
    made_at: str = ""

    @property
    def verdict(self) -> str:
        """``pass`` if stages ran and none failed; ``fail`` if one did; otherwise ``incomplete``."""
        verdicts = [report.verdict for report in self.reports]
        if "fail" in verdicts:
            return "fail"
        return "pass" if "pass" in verdicts else "incomplete"
