"""The hardware stage: one matrix from profiles, kernel tables and what this machine measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base.errors import RuntimeFault
from contracts.base.report import Finding, Report, Severity, conclude
from model_packages.format.manifest import Manifest
from model_packages.format.settings import Settings
from tasks.hardware import dynamic, matrix, static
from tasks.hardware.kernels import KernelTable
from tasks.hardware.matrix import Cell
from tasks.hardware.profiles import Profile
from tasks.hardware.static import Graph
from tasks.policy import DeviceDemand, TargetPolicy

STAGE = "hardware"

_REMEDIES: Mapping[str, str] = {
    "operators": "Replace the operators, lower the operator set, or do not demand this device.",
    "memory": "Lower hardware.memory_mb in manifest.json or max_batch_size in config.yaml to what"
    " the model needs, or demand a larger device.",
    "toolchain": "Plan an image of its own for this device, or do not demand it.",
    "latency": "Raise timeout_ms or lower max_batch_size in config.yaml.",
    "cold start": "Make the model smaller, or keep a warm spare.",
}


@dataclass(frozen=True)
class Package:
    """What the stage knows of a package.

    Attributes:
        subject: Which package, for reports.
        manifest: Its manifest.
        settings: Its limits.
        graph: Facts of its graph.
    """

    subject: str
    manifest: Manifest
    settings: Settings
    graph: Graph


Probe = Callable[[], Mapping[str, Any]]


def assess(
    package: Package,
    policy: TargetPolicy,
    profiles: Mapping[str, Profile],
    kernels: KernelTable,
    probe: Probe,
) -> Report:
    """Judge a package against every device.

    Args:
        package: The package.
        policy: Which devices the target demands, and with which evidence.
        profiles: All profiles by name.
        kernels: What the execution providers have.
        probe: Measures the package on this machine.
    """
    cells: list[Cell] = []
    findings = list(_unknown(package, policy, profiles))
    measurements: dict[str, Any] = {}
    for name, profile in sorted(profiles.items()):
        demand = policy.demand(name)
        if demand is None:
            reason = f"not demanded by the policy of {policy.target}"
            cells += matrix.not_run(name, reason)
            continue
        seen, notes, figures = _device(package, profile, kernels, demand, probe)
        cells += seen
        findings += notes
        measurements |= figures
    findings += _unproved(package, policy, cells)
    facts = _facts(policy, profiles, kernels, cells)
    measurements["figures"] = {
        f"{cell.device} {cell.check}": cell.figures for cell in cells if cell.figures
    }
    return conclude(STAGE, package.subject, findings, facts=facts, measurements=measurements)


def _device(
    package: Package, profile: Profile, kernels: KernelTable, demand: DeviceDemand, probe: Probe
) -> tuple[list[Cell], list[Finding], dict[str, Any]]:
    """Return cells, findings and figures of one demanded device."""
    settings, declared = package.settings, package.manifest.hardware.memory_mb
    needed = static.need(package.graph, declared, settings.max_batch_size)
    predicted, placement = static.predict(package.graph, profile, kernels, needed)
    cells = {cell.check: cell for cell in predicted}
    findings, figures = [], {}
    if placement.moved and not placement.unsupported:
        findings.append(_moved(package, profile, placement))
    present = profile.name == dynamic.here()
    if not present:
        cells |= _keyed(matrix.not_run(profile.name, "no such device here", matrix.DYNAMIC))
    elif all(cell.passed for cell in predicted):
        try:
            figures = {"probe": dict(probe())}
        except RuntimeFault as err:
            findings.append(_broken(package, profile, str(err)))
            cells |= _keyed(matrix.not_run(profile.name, "the model did not run", matrix.DYNAMIC))
        else:
            cells |= _keyed(dynamic.cells(profile, figures["probe"], settings))
            findings += _understated(package, profile, figures["probe"])
    else:
        reason = "not started: the static check already refuses"
        cells |= _keyed(matrix.not_run(profile.name, reason, matrix.DYNAMIC))
    ordered = [cells[check] for check in matrix.CHECKS]
    findings += [_failed(package, cell, demand) for cell in ordered if cell.passed is False]
    return ordered, findings, figures


def _keyed(cells: Iterable[Cell]) -> dict[Any, Cell]:
    return {cell.check: cell for cell in cells}


def _facts(
    policy: TargetPolicy,
    profiles: Mapping[str, Profile],
    kernels: KernelTable,
    cells: Sequence[Cell],
) -> dict[str, Any]:
    return {
        "policy": policy.digest,
        "target": policy.target,
        "profiles": {name: profile.digest for name, profile in sorted(profiles.items())},
        "kernels": {"digest": kernels.digest, "versions": dict(kernels.versions)},
        "matrix": [cell.to_dict() for cell in cells],
    }


def _unknown(
    package: Package, policy: TargetPolicy, profiles: Mapping[str, Profile]
) -> Iterator[Finding]:
    """Name devices nobody has a profile of."""
    for demand in policy.devices:
        if demand.device not in profiles:
            yield Finding(
                "hardware.device-unknown",
                package.subject,
                demand.device,
                "high" if demand.required else "low",
                f"The policy of {policy.target} demands {demand.device}, which has no profile.",
                f"Write infra/hardware/{demand.device}.toml, or correct the policy.",
            )
    kinds = {profile.kind for profile in profiles.values()}
    for device in package.manifest.hardware.devices:
        if device not in profiles and device not in kinds:
            yield Finding(
                "hardware.device-unknown",
                package.subject,
                device,
                "low",
                f"The manifest names the device {device}, which has no profile.",
                "Name a profile of infra/hardware, or a kind: cpu, gpu, soc.",
            )


def _unproved(package: Package, policy: TargetPolicy, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Name demanded devices whose evidence falls short; a refusal needs no second finding."""
    refused = {cell.device for cell in cells if cell.passed is False}
    known = {cell.device for cell in cells}
    for demand in policy.devices:
        if demand.device in refused or demand.device not in known:
            continue
        if not matrix.reaches(cells, demand.device, demand.evidence):
            yield Finding(
                "hardware.evidence-missing",
                package.subject,
                demand.device,
                "high" if demand.required else "info",
                f"The policy of {policy.target} demands {demand.evidence} evidence for"
                f" {demand.device}; there is less.",
                "Run the stage on a machine with this device, or relax the policy.",
            )


def _failed(package: Package, cell: Cell, demand: DeviceDemand) -> Finding:
    severity: Severity = "high" if demand.required else "low"
    if cell.check == "toolchain":
        severity = "medium" if demand.required else "low"
    return Finding(
        f"hardware.{cell.check.replace(' ', '-')}",
        package.subject,
        cell.device,
        severity,
        f"{package.manifest.name} does not fit {cell.device}: {cell.check}: {cell.reason}.",
        _REMEDIES[cell.check],
        {"status": cell.status, "required": demand.required},
    )


def _moved(package: Package, profile: Profile, placement: static.Placement) -> Finding:
    moved = sum(placement.counts.values()) - placement.counts.get(profile.providers[0], 0)
    return Finding(
        "hardware.operators-moved",
        package.subject,
        profile.name,
        "info",
        f"On {profile.name} {moved} of {sum(placement.counts.values())} operators run on the host"
        f" processor: {', '.join(placement.moved[:8])}.",
        "Expect a copy for each batch; nothing is wrong.",
    )


def _broken(package: Package, profile: Profile, message: str) -> Finding:
    return Finding(
        "hardware.does-not-run",
        package.subject,
        profile.name,
        "high",
        f"The model does not run on {profile.name}: {message}",
        "Open model.onnx with ONNX Runtime on such a machine and correct the export.",
    )


def _understated(
    package: Package, profile: Profile, figures: Mapping[str, Any]
) -> Iterator[Finding]:
    declared = package.manifest.hardware.memory_mb
    if declared and figures["memory_mb"] > declared:
        yield Finding(
            "hardware.memory-understated",
            package.subject,
            profile.name,
            "medium",
            f"The manifest declares {declared:,} MB; the model took more on {profile.name}.",
            "Raise hardware.memory_mb in manifest.json above what the matrix measured.",
        )
