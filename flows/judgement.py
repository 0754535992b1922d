"""What the gate concluded about a package source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contracts.base.digest import Digest
from contracts.base.errors import ReleaseRefused
from contracts.base.report import Finding, Report, conclude
from flows.summary import could_not, measured
from flows.waves import Outcome
from model_packages.oci.reference import PackageRef

GATE = ("validate", "snapshot", "package", "trust", "hardware", "verify", "compliance")


@dataclass(frozen=True)
class Judgement:
    """The gate's result.

    Attributes:
        model: Name of the model.
        source: Digest of the package source tree.
        ref: The package; None if none could be built.
        outcomes: How each stage ended, in the order they ran.
        page: The offline report.
    """

    model: str
    source: Digest
    ref: PackageRef | None
    outcomes: tuple[Outcome, ...]
    page: Path

    @property
    def reports(self) -> tuple[Report, ...]:
        """What the stages said that could say something."""
        return tuple(item.report for item in self.outcomes if item.report is not None)

    @property
    def blocking(self) -> tuple[Outcome, ...]:
        """The stages that stand in the way."""
        return tuple(item for item in self.outcomes if item.blocks(GATE))

    @property
    def missing(self) -> tuple[str, ...]:
        """Stages that were not reached."""
        reached = {item.stage for item in self.outcomes}
        return tuple(stage for stage in GATE if stage not in reached)

    @property
    def passed(self) -> bool:
        """Whether every stage passed."""
        return not self.blocking and not self.missing

    def report(self, stage: str) -> Report | None:
        """Return what a stage said."""
        return next((item for item in self.reports if item.stage == stage), None)

    def require(self) -> PackageRef:
        """Return the package if it passed.

        Raises:
            CaissonError: What kept a stage from saying anything.
            ReleaseRefused: If a stage refused; all of them are named.
        """
        for outcome in self.blocking:
            if outcome.error is not None:
                raise outcome.error
        if self.ref is None or not self.passed:
            raise ReleaseRefused(
                f"the gate refuses {self.model}: {'; '.join(self._reasons())}",
                location=self.source,
                remedy=f"Open {self.page} for every finding and its remedy.",
            )
        return self.ref

    def _reasons(self) -> list[str]:
        said = [_reason(outcome) for outcome in self.blocking]
        return said or [f"{', '.join(self.missing) or 'package'} not reached"]

    def to_report(self) -> Report:
        """Return the whole gate as one report, whose findings are those of its stages."""
        findings = [finding for report in self.reports for finding in report.findings]
        findings += [could_not(item) for item in self.outcomes if item.error]
        findings += [_skipped(item, self.source) for item in self.blocking if _is_skip(item)]
        if not self.blocking:
            findings += [_not_reached(stage, self.source) for stage in self.missing]
        facts = {
            "model": self.model,
            "source": self.source,
            "package": self.ref.to_dict() if self.ref else None,
            "stages": {item.stage: item.verdict for item in self.outcomes},
            "reports": {report.stage: report.digest for report in self.reports},
            "not_reached": list(self.missing),
            "page": self.page.name,
        }
        subject = str(self.ref or self.source)
        return conclude(
            "gate", subject, findings, facts=facts, measurements=measured(self.outcomes)
        )


def _reason(outcome: Outcome) -> str:
    report = outcome.require()
    first = next((item for item in report.findings if item.blocks), None)
    said = f"{first.rule}: {first.message}" if first else report.reason
    return f"{outcome.stage} {outcome.verdict} ({said})"


def _is_skip(outcome: Outcome) -> bool:
    return outcome.verdict == "skip"


def _skipped(outcome: Outcome, source: Digest) -> Finding:
    reason = outcome.report.reason if outcome.report else ""
    return Finding(
        rule="gate.required-stage-skipped",
        subject=source,
        location=outcome.stage,
        severity="high",
        message=f"{outcome.stage} is required and was skipped: {reason}",
        remedy="Make the check possible, or record a waiver where the policy allows one.",
    )


def _not_reached(stage: str, source: Digest) -> Finding:
    return Finding(
        rule="gate.stage-not-reached",
        subject=source,
        location=stage,
        severity="high",
        message=f"{stage} is required and did not run",
        remedy="Run the gate again; if it stays so, this is a fault of Caisson.",
    )
