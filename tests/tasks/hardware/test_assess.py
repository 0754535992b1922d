"""The hardware stage: measured, predicted and not-run are never mixed up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import RuntimeFault
from contracts.base.report import Report
from model_packages.format import layout as layouts
from model_packages.format import manifest as manifests
from model_packages.format import settings
from model_packages.oci import build as building
from model_packages.oci import carried
from model_packages.oci.store import LayoutStore
from tasks import policy as policies
from tasks.demo import hardware as plants
from tasks.hardware import dynamic, graph, kernels, matrix, profiles, steps
from tasks.hardware.assess import Package, assess
from tasks.hardware.static import Graph
from tasks.policy import DeviceDemand, TargetPolicy
from tasks.workspace import Workspace
from tests.fakes import packages

FIGURES: Mapping[str, Any] = {
    "cold_start_s": 0.2,
    "open_s": 0.1,
    "memory_mb": 3.0,
    "cpu": "a processor",
    "curve": [{"batch": 1, "p50_ms": 0.1, "p99_ms": 0.2}, {"batch": 8, "p50_ms": 0.2, "p99_ms": 1}],
}
HERE = "cpu-x86-64"


class Judge:
    """Everything but the package, so that a test names only what it varies."""

    def __init__(self, root: Path) -> None:
        self.policy = policies.load(root / "infra/policies", "local")
        self.profiles = profiles.load_all(root / "infra/hardware")
        self.kernels = kernels.load(root / "infra/hardware/kernels.json")
        self.probed = 0

    def __call__(
        self,
        package: Package,
        *,
        figures: Mapping[str, Any] = FIGURES,
        policy: TargetPolicy | None = None,
    ) -> Report:
        def probe() -> Mapping[str, Any]:
            self.probed += 1
            return figures

        return assess(package, policy or self.policy, self.profiles, self.kernels, probe)


@pytest.fixture
def judge(root: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr(dynamic, "here", lambda: HERE)
    return Judge(root)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return packages.write_source(tmp_path / "tiny")


@pytest.fixture
def package(source: Path) -> Package:
    return read(source)


def read(source: Path) -> Package:
    return Package(
        "tiny@sha256:0",
        manifests.load(source / "manifest.json"),
        settings.load(source / "config.yaml"),
        graph.read(source / "model.onnx"),
    )


def cells(report: Report) -> dict[tuple[str, str], dict[str, Any]]:
    return {(cell["device"], cell["check"]): cell for cell in report.facts["matrix"]}


def rules(report: Report) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in report.findings}


def test_measured_here_predicted_there_and_the_rest_not_run(judge: Judge, package: Package) -> None:
    """The CPU is measured, the demanded GPU predicted, all others say why they were not run."""
    report = judge(package)
    assert report.verdict == "pass"
    found = cells(report)
    assert {found[HERE, check]["status"] for check in ("operators", "memory", "latency")} == {
        "measured"
    }
    assert found["rtx4090", "memory"]["status"] == "predicted"
    assert found["rtx4090", "latency"] == {
        "device": "rtx4090", "check": "latency", "status": "not-run", "passed": None,
        "reason": "no such device here",
    }  # fmt: skip
    assert "not demanded" in found["a100", "operators"]["reason"]
    assert len(found) == len(judge.profiles) * len(matrix.CHECKS)
    assert rules(report) == {"hardware.operators-moved": "info"}


def test_figures_never_enter_the_digest(judge: Judge, package: Package) -> None:
    """Two runs with other times and the same verdict are one report."""
    slower = {**FIGURES, "cold_start_s": 0.9, "memory_mb": 4.0}
    first, second = judge(package), judge(package, figures=slower)
    assert first.digest == second.digest
    assert first.measurements != second.measurements
    assert "0.20 s" in first.measurements["figures"][f"{HERE} cold start"]


def test_memory_over_a_required_profile_is_refused(judge: Judge, source: Path) -> None:
    """The planted package that demands a terabyte fails on memory alone, before it is started."""
    plants.oversized(source, memory_mb=2**20)
    report = judge(read(source))
    blocking = [finding for finding in report.findings if finding.blocks]
    assert [(item.rule, item.location) for item in blocking] == [("hardware.memory", HERE)]
    assert "1,048,576 MB needed" in blocking[0].message
    assert judge.probed == 0
    assert "not started" in cells(report)[HERE, "latency"]["reason"]


def test_memory_computed_from_shapes_counts_too(judge: Judge, package: Package) -> None:
    """A manifest that declares nothing does not hide weights that do not fit."""
    huge = dataclasses.replace(package.graph, weight_bytes=9 * 2**30)
    report = judge(dataclasses.replace(package, graph=huge))
    assert report.verdict == "fail"
    assert "computed 9,217" in cells(report)[HERE, "memory"]["reason"]


def test_a_demanded_device_that_is_absent_blocks(judge: Judge, package: Package) -> None:
    """Predicted never passes where measured is demanded; optional evidence only informs."""
    demanded = (*judge.policy.devices[:1], DeviceDemand("h200", "measured", True))
    report = judge(package, policy=dataclasses.replace(judge.policy, devices=demanded))
    assert rules(report)["hardware.evidence-missing"] == "high"
    optional = (*judge.policy.devices[:1], DeviceDemand("h200", "measured", False))
    report = judge(package, policy=dataclasses.replace(judge.policy, devices=optional))
    assert report.verdict == "pass"
    assert rules(report)["hardware.evidence-missing"] == "info"


def test_on_another_processor_nothing_is_measured(
    judge: Judge, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without a profile the CPU demand is not met."""
    monkeypatch.setattr(dynamic, "here", lambda: "")
    report = judge(package)
    assert report.verdict == "fail"
    assert judge.probed == 0


def test_an_unknown_operator_is_refused(judge: Judge, package: Package) -> None:
    """An operator no provider has is named with its operator set."""
    custom = kernels.NodeKind("com.example", "Magic", frozenset({"float32"}), 1)
    spoiled = Graph({"com.example": 1}, (custom,), 0, 0)
    report = judge(dataclasses.replace(package, graph=spoiled))
    told = {(f.location, f.severity) for f in report.findings if f.rule == "hardware.operators"}
    assert told == {(HERE, "high"), ("rtx4090", "low")}
    assert "com.example:Magic-1 (float32)" in cells(report)[HERE, "operators"]["reason"]


def test_devices_without_a_profile_are_named(judge: Judge, package: Package) -> None:
    """A policy for an unknown device blocks; a manifest that names one is told."""
    demanded = (*judge.policy.devices, DeviceDemand("abacus", "measured", True))
    hardware = dataclasses.replace(package.manifest.hardware, devices=("cpu", "sundial"))
    manifest = dataclasses.replace(package.manifest, hardware=hardware)
    report = judge(
        dataclasses.replace(package, manifest=manifest),
        policy=dataclasses.replace(judge.policy, devices=demanded),
    )
    told = {
        (f.location, f.severity) for f in report.findings if f.rule == "hardware.device-unknown"
    }
    assert told == {("abacus", "high"), ("sundial", "low")}


@pytest.mark.parametrize(
    ("figures", "rule"),
    [
        ({"memory_mb": 65.0}, "hardware.memory-understated"),
        ({"curve": [{"batch": 8, "p50_ms": 900, "p99_ms": 1001}]}, "hardware.latency"),
    ],
)
def test_measurements_that_break_a_promise_block(
    judge: Judge, package: Package, figures: dict[str, Any], rule: str
) -> None:
    """More memory than declared, or slower than the timeout, is a finding."""
    report = judge(package, figures={**FIGURES, **figures})
    assert report.verdict == "fail"
    assert rule in rules(report)


def test_a_model_that_does_not_run_is_a_finding(root: Path, judge: Judge, package: Package) -> None:
    """A failing child is a verdict about the package, with the child's own words."""

    def probe() -> Mapping[str, Any]:
        raise RuntimeFault("it ran out of memory")

    report = assess(package, judge.policy, judge.profiles, judge.kernels, probe)
    assert rules(report)["hardware.does-not-run"] == "high"
    assert cells(report)[HERE, "latency"]["status"] == "not-run"


def test_an_old_device_needs_a_stack_of_its_own(judge: Judge, package: Package) -> None:
    """V100 is told apart: the present toolchain has left it."""
    demanded = (*judge.policy.devices, DeviceDemand("v100", "predicted", True))
    report = judge(package, policy=dataclasses.replace(judge.policy, devices=demanded))
    assert rules(report)["hardware.toolchain"] == "medium"


def test_batch_sizes_span_one_to_the_largest() -> None:
    """The curve always has both ends."""
    assert dynamic.batch_sizes(1) == [1]
    assert dynamic.batch_sizes(64) == [1, 8, 64]
    assert dynamic.batch_sizes(100) == [1, 8, 64, 100]


def test_the_probe_measures_a_real_model(root: Path, source: Path, tmp_path: Path) -> None:
    """The tiny model runs in a process of its own, and leaves nothing behind."""
    workspace = Workspace(home=tmp_path / "home é", root=root).prepare()
    options = dynamic.ProbeOptions(seconds=0.02)
    limits = settings.load(source / "config.yaml")
    figures = dynamic.probe(workspace, source, limits, options)
    assert [point["batch"] for point in figures["curve"]] == [1, 8]
    assert all(0 < point["p50_ms"] <= point["p99_ms"] for point in figures["curve"])
    assert figures["memory_mb"] < 64
    assert list(workspace.tmp.iterdir()) == []


def test_the_stage_measures_once(root: Path, tmp_path: Path) -> None:
    """A built package is measured on this machine; a second run is a reuse."""
    workspace = Workspace(home=tmp_path / "home", root=root).prepare()
    source = packages.write_source(tmp_path / "source")
    code = packages.write_runtime(tmp_path / "code")
    package = building.build(
        layouts.read_source(source),
        carried.read_code(code),
        LayoutStore(workspace.packages("tiny")),
        "tiny",
    )
    policy = policies.load(root / "infra/policies", "local")
    options = dynamic.ProbeOptions(seconds=0.02)

    def stage() -> Report:
        return steps.test_hardware.function(workspace, package, policy, options)

    first = stage()
    if dynamic.here() != HERE:
        assert first.verdict == "fail"
        return
    assert first.verdict == "pass", first.findings
    assert first.measurements["probe"]["isolation"]
    assert stage().measurements["unchanged"] is True
