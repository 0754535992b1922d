"""A home folder in which tiny packages are released and deployed to a fake target.

Run as a program it does one verb and may be killed at a failpoint:
``python -m tests.tasks.release.scene HOME VERB PACKAGES FAILPOINTS``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contracts.base import digest, failpoint, files
from contracts.base.report import Report, conclude
from model_packages.format import layout as layouts
from model_packages.oci import build as building
from model_packages.oci import carried
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore
from tasks import policy as policies
from tasks.ledger.store import Ledger
from tasks.policy import TargetPolicy
from tasks.release.binding import REQUIRED, Origin
from tasks.release.deploy import DeployOptions, deploy
from tasks.release.push import push
from tasks.release.register import register
from tasks.release.rollback import rollback
from tasks.release.sign import sign
from tasks.workspace import Workspace
from tests.fakes.clock import FixedClock
from tests.fakes.packages import Options, write_runtime, write_source
from tests.fakes.target import FakeTarget

MODEL = "tiny"
TARGET = "local"
ROOT = Path(__file__).resolve().parents[3]

POLICY: dict[str, Any] = {
    "format_version": 0,
    "target": TARGET,
    "description": "A target for tests.",
    "level": "L1",
    "devices": [{"device": "cpu-x86-64", "evidence": "measured", "required": True}],
    "signatures": {"trust": "home", "roles": ["builder"], "threshold": 1, "demo_keys": True},
    "approvals": {"required": 0, "not_the_builder": True},
    "canary": {
        "share": 0.25,
        "power": 0.8,
        "significance": 0.05,
        "baseline_errors": 0.001,
        "detectable_errors": 0.05,
        "latency_ratio": 2.0,
        "lease_s": 10.0,
        "timeout_s": 60.0,
    },
    "licences": {"allowed": ["Permissive"], "decisions": []},
}


def policy(**changes: Mapping[str, Any]) -> TargetPolicy:
    """The policy, with fields of its parts changed."""
    data = {**POLICY}
    for name, value in changes.items():
        data[name] = {**data[name], **value} if isinstance(value, Mapping) else value
    return policies.parse(data)


def reports(ref: PackageRef, **verdicts: str) -> list[Report]:
    """Reports of a gate that was passed, but for the stages named."""
    found = [conclude(stage, str(ref), [], facts={"stage": stage}) for stage in REQUIRED]
    return [
        replace(report, verdict=verdicts[report.stage], reason="planted")  # type: ignore[arg-type]
        if report.stage in verdicts
        else report
        for report in found
    ]


def origin(level: str = "L1") -> Origin:
    """Where the tiny packages come from."""
    return Origin(
        contract="nyc/flights@1.0.0",
        schema_hash=digest.of_bytes(b"schema"),
        feature_version="20131101-0123456789ab",
        git_commit="0" * 40,
        runtime_version=digest.of_bytes(b"code"),
        achieved_level=level,
    )


@dataclass(frozen=True)
class Scene:
    """One home folder with everything a release needs."""

    home: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock(step_s=0.01))

    @property
    def workspace(self) -> Workspace:
        """The workspace."""
        return Workspace(self.home, ROOT, self.clock).prepare()

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return Ledger(self.workspace.ledger_path, self.clock)

    @property
    def target(self) -> FakeTarget:
        """The target."""
        return FakeTarget(self.home / "targets" / TARGET, TARGET)

    @property
    def live(self) -> str | None:
        """What the ledger says is live."""
        pointer = self.ledger.pointer(MODEL, TARGET)
        return pointer.digest if pointer else None

    def build(self, version: str, weight: float = 2.0) -> PackageRef:
        """Build a package into the home folder; nothing is signed."""
        place = self.home / "work" / version
        source = write_source(place / "source", Options(version=version, weight=weight))
        code = write_runtime(place / "code")
        store = LayoutStore(self.workspace.packages(MODEL))
        return building.build(layouts.read_source(source), carried.read_code(code), store, MODEL)

    def release(self, ref: PackageRef, *, level: str = "L1", by: str = "") -> list[Report]:
        """Sign, push and register a package that passed the gate."""
        passed = reports(ref)
        signed = sign(self.workspace, ref, origin(level), passed)
        pushed = push(self.workspace, ref)
        bound = ReleaseFacts.from_dict(signed.facts["binding"])
        registered = register(
            self.workspace, ref, bound, passed, signature=signed.facts["signature"], by=by
        )
        return [signed, pushed, registered]

    def traffic(self, error_share: float = 0.0) -> DeployOptions:
        """Options that send requests between looks, some of which the candidate fails."""
        return DeployOptions(pump=lambda: self.target.serve(400, error_share=error_share))

    def deploy(
        self,
        ref: PackageRef,
        options: DeployOptions | None = None,
        demanded: TargetPolicy | None = None,
    ) -> Report:
        """Deploy a package under traffic."""
        chosen = options or self.traffic()
        return deploy(self.workspace, ref, self.target, demanded or policy(), chosen)

    def rollback(self) -> Report:
        """Roll back."""
        return rollback(self.workspace, MODEL, self.target)

    def kinds(self, *kinds: str) -> list[str]:
        """Which records of some kinds there are, in order."""
        return [record.kind for record in self.ledger.records() if record.kind in kinds]


def main(arguments: Sequence[str]) -> None:
    """Do one verb with the packages in a file."""
    home, verb, packages, points = arguments
    refs = [PackageRef.from_dict(item) for item in json.loads(Path(packages).read_text())]
    scene = Scene(Path(home))
    scene.workspace.prepare()
    failpoint.configure(points)
    if verb == "release":
        scene.release(refs[-1])
    elif verb == "deploy":
        scene.deploy(refs[-1])
    else:
        scene.rollback()
    files.write_json(Path(home) / "done.json", {"live": scene.live})


if __name__ == "__main__":
    main(sys.argv[1:])
