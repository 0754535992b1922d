"""The gate's calls without any work: every stage passes but those that a test changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.base import digest
from contracts.base.errors import CaissonError
from contracts.base.report import Report, conclude, skipped
from flows.stages import Calls
from flows.waves import Call
from model_packages.oci.reference import PackageRef

REF = PackageRef("tiny", digest.of_bytes(b"package"), digest.of_bytes(b"set"))


@dataclass(frozen=True)
class FakeCalls(Calls):
    """Notes which stages ran, in order, and what compliance was given.

    Attributes:
        said: What stages do instead of passing: raise an error, or return a report.
        ran: Stages that ran.
        given: Reports that compliance got.
    """

    said: Mapping[str, Report | Exception] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)

    def first(self) -> Mapping[str, Call]:
        return {stage: self._stage(stage) for stage in ("validate", "snapshot", "package")}

    def trust(self, ref: PackageRef) -> Mapping[str, Call]:
        return {"trust": self._stage("trust")}

    def hardware(self, ref: PackageRef) -> Mapping[str, Call]:
        return {"hardware": self._stage("hardware")}

    def verify(self, ref: PackageRef) -> Mapping[str, Call]:
        return {"verify": self._stage("verify")}

    def compliance(self, ref: PackageRef, reports: Sequence[Report]) -> Mapping[str, Call]:
        self.given.extend(report.stage for report in reports)
        return {"compliance": self._stage("compliance")}

    def _stage(self, stage: str) -> Callable[[], Report]:
        def call() -> Report:
            self.ran.append(stage)
            said = self.said.get(stage)
            if isinstance(said, Exception):
                raise said
            return said or conclude(stage, "s", [], facts=facts(stage))

        return call


def facts(stage: str) -> dict[str, object]:
    """Return what a stage establishes that later ones and the release need."""
    return {
        "validate": {
            "contracts": {"small/trips@1.0.0": digest.of_bytes(b"schema")},
            "definition": "small/trips/lateness",
            "feature_version": "20131101-0123456789ab",
        },
        "package": {
            "repository": "tiny",
            "package_digest": REF.digest,
            "set_digest": REF.set_digest,
            "runtime_version": digest.of_bytes(b"code"),
        },
        "compliance": {"achieved_level": "L1"},
    }.get(stage, {})


def refusing(stage: str, err: CaissonError | None = None) -> Report | CaissonError:
    """Return what a stage says that refuses, or the error that it raises."""
    return err or Report(stage, "s", "fail")


def skipping(stage: str) -> Report:
    """Return what a stage says that checked nothing."""
    return skipped(stage, "s", "no device")
