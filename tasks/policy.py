"""What a target demands of a release, read strictly from ``infra/policies/<target>.json``.

One file a target: compliance level, evidence by device, signatures, approvals, canary, licences.
The file belongs to the organisation that deploys, never to the package that is judged; its digest
is recorded with every decision taken under it. Paths and keys are the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from contracts.base import digest, files
from contracts.base.digest import Digest
from contracts.base.errors import InputError

Level = Literal["L1", "L2", "L3"]
Evidence = Literal["measured", "predicted"]
Trust = Literal["home", "file"]
Role = Literal["builder", "approver"]
Decided = Literal["allowed", "refused"]

LEVELS: tuple[Level, ...] = get_args(Level)

_LIMIT = 1 << 20
_Built = TypeVar("_Built")


@dataclass(frozen=True)
class DeviceDemand:
    """Evidence the target wants for one device.

    Attributes:
        device: Name of a profile in ``infra/hardware``.
        evidence: ``measured`` wants a run on the device; ``predicted`` accepts the static check.
        required: Whether less than that evidence blocks; otherwise it is only reported.
    """

    device: str
    evidence: Evidence
    required: bool


@dataclass(frozen=True)
class SignatureDemand:
    """Who must have signed.

    Attributes:
        trust: ``home`` trusts the keys of the home folder; ``file`` those in ``infra/trust``.
        roles: Roles whose signature is wanted.
        threshold: How many of them must be valid.
        demo_keys: Whether keys marked as demonstration keys count.
    """

    trust: Trust
    roles: tuple[Role, ...]
    threshold: int
    demo_keys: bool


@dataclass(frozen=True)
class ApprovalDemand:
    """How many people must agree before a deployment.

    Attributes:
        required: Number of approvals; 0 records ``not-required``.
        not_the_builder: Whether the approver's key must differ from the builder's.
    """

    required: int
    not_the_builder: bool


@dataclass(frozen=True)
class CanaryDemand:
    """How a new release proves itself beside the old one.

    Attributes:
        share: Part of the requests the new release answers.
        power: Probability with which a worsening of ``detectable_errors`` is found.
        significance: Probability of calling an equal release worse.
        baseline_errors: Error share assumed of the old release when none was seen.
        detectable_errors: Error share that must be found.
        latency_ratio: Largest accepted ratio of the geometric mean latencies, new to old.
        lease_s: Seconds without the controller after which the runtime returns to the old one.
        timeout_s: Seconds after which too few answers mean ``inconclusive``.
    """

    share: float
    power: float
    significance: float
    baseline_errors: float
    detectable_errors: float
    latency_ratio: float
    lease_s: float
    timeout_s: float


@dataclass(frozen=True)
class LicenceDecision:
    """What somebody decided about one component's licence, for one use.

    Attributes:
        component: Name of the distribution, model or data set.
        license: The licence it was decided for; another licence voids the decision.
        use: ``run-time``, ``evaluation``, ``weights`` or ``data``.
        decision: Whether the use is allowed.
        reason: Why.
        owner: Who decided.
        decided: Day of the decision.
    """

    component: str
    license: str
    use: str
    decision: Decided
    reason: str
    owner: str
    decided: date


@dataclass(frozen=True)
class LicencePolicy:
    """Which licence categories pass, and the decisions about the others.

    Attributes:
        allowed: Categories of the ScanCode index that need no decision.
        decisions: Recorded decisions.
    """

    allowed: tuple[str, ...]
    decisions: tuple[LicenceDecision, ...]

    def decision(self, component: str, license: str, use: str) -> LicenceDecision | None:
        """Return the decision about a component's licence for a use, if there is one."""
        for item in self.decisions:
            if (item.component, item.license, item.use) == (component, license, use):
                return item
        return None


@dataclass(frozen=True)
class TargetPolicy:
    """All demands of one target.

    Attributes:
        target: Name of the target.
        description: What the target is, for people.
        level: Compliance level a release must have achieved.
        devices: Evidence wanted by device.
        signatures: Signatures wanted.
        approvals: Approvals wanted.
        canary: How a new release is compared with the live one.
        licences: Which licences pass.
        digest: Identity of the policy's content.
    """

    target: str
    description: str
    level: Level
    devices: tuple[DeviceDemand, ...]
    signatures: SignatureDemand
    approvals: ApprovalDemand
    canary: CanaryDemand
    licences: LicencePolicy
    digest: Digest

    def demand(self, device: str) -> DeviceDemand | None:
        """Return what is wanted for a device, if anything is."""
        return next((item for item in self.devices if item.device == device), None)


def load(folder: Path, target: str) -> TargetPolicy:
    """Read the policy of a target.

    Args:
        folder: Folder with one file a target.
        target: Name of the target.

    Raises:
        InputError: If there is none, it is malformed, or it is for another target.
    """
    path = folder / f"{target}.json"
    if "/" in target or not path.is_file():
        known = sorted(item.stem for item in folder.glob("*.json"))
        raise InputError(
            "target has no policy",
            expected=f"one of {', '.join(known) or 'none'}",
            found=repr(target),
            location=str(folder),
            remedy=f"Write {target}.json there, after infra/README.md.",
        )
    policy = parse(files.read_json(path, limit=_LIMIT), where=str(path))
    if policy.target != target:
        raise InputError(
            "policy is for another target",
            expected=target,
            found=policy.target,
            location=str(path),
            remedy="Name the file after the target.",
        )
    return policy


def parse(data: Any, *, where: str = "") -> TargetPolicy:
    """Read a policy from plain data, naming every problem at once.

    Raises:
        InputError: If a field is missing, unknown, of the wrong kind or out of range.
    """
    reader = _Reader()
    policy = reader.built("policy", lambda: _policy(reader, data))
    if reader.problems or policy is None:
        raise InputError(
            f"policy is malformed: {'; '.join(reader.problems)}",
            location=where,
            remedy="See infra/README.md for every field.",
        )
    return policy


class _Reader:
    """Collects problems while fields are read."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def built(self, where: str, build: Callable[[], _Built]) -> _Built | None:
        """Build an object; a missing or foreign field becomes a problem."""
        try:
            return build()
        except _Malformed as err:
            self.problems.append(f"{where}{'.' if err.path else ''}{err.path}: {err.reason}")
            return None

    def each(
        self, data: Mapping[str, Any], name: str, build: Callable[[Any], _Built]
    ) -> tuple[_Built, ...]:
        """Build one object per entry of a list."""
        entries: list[Any] = _value(data, name, list)
        built = [
            self.built(f"{name}[{index}]", partial(build, entry))
            for index, entry in enumerate(entries)
        ]
        return tuple(item for item in built if item is not None)


class _Malformed(Exception):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


def _policy(reader: _Reader, data: Any) -> TargetPolicy | None:
    names = ("format_version", "target", "description", "level", "devices")
    _exact(data, (*names, "signatures", "approvals", "canary", "licences"))
    if data["format_version"] != 0 or isinstance(data["format_version"], bool):
        raise _Malformed("format_version", f"expected 0, got {data['format_version']!r}")
    devices = reader.each(data, "devices", _device)
    if len({item.device for item in devices}) != len(devices):
        reader.problems.append("devices: a device is named twice")
    signatures = reader.built("signatures", lambda: _signatures(data["signatures"]))
    approvals = reader.built("approvals", lambda: _approvals(data["approvals"]))
    canary = reader.built("canary", lambda: _canary(data["canary"]))
    licences = reader.built("licences", lambda: _licences(reader, data["licences"]))
    target, description = _text(data, "target"), _value(data, "description", str)
    level: Level = _choice(data, "level", LEVELS)
    if signatures is None or approvals is None or canary is None or licences is None:
        return None
    return TargetPolicy(
        target, description, level, devices, signatures, approvals, canary, licences,
        digest.of_json(data),
    )  # fmt: skip


def _device(data: Any) -> DeviceDemand:
    _exact(data, ("device", "evidence", "required"))
    evidence: Evidence = _choice(data, "evidence", get_args(Evidence))
    return DeviceDemand(_text(data, "device"), evidence, _value(data, "required", bool))


def _signatures(data: Any) -> SignatureDemand:
    _exact(data, ("trust", "roles", "threshold", "demo_keys"))
    roles = tuple(_value(data, "roles", list))
    if (
        not roles
        or any(role not in get_args(Role) for role in roles)
        or len(set(roles)) != len(roles)
    ):
        raise _Malformed("roles", f"expected some of {', '.join(get_args(Role))}, got {roles!r}")
    trust: Trust = _choice(data, "trust", get_args(Trust))
    threshold = _whole(data, "threshold", 1, len(roles))
    return SignatureDemand(trust, roles, threshold, _value(data, "demo_keys", bool))


def _approvals(data: Any) -> ApprovalDemand:
    _exact(data, ("required", "not_the_builder"))
    return ApprovalDemand(_whole(data, "required", 0, 9), _value(data, "not_the_builder", bool))


def _canary(data: Any) -> CanaryDemand:
    bounds = {
        "share": (0.0, 0.5), "power": (0.5, 1.0), "significance": (0.0, 0.5),
        "baseline_errors": (0.0, 1.0), "detectable_errors": (0.0, 1.0),
        "latency_ratio": (1.0, 100.0), "lease_s": (0.0, 3600.0), "timeout_s": (0.0, 86400.0),
    }  # fmt: skip
    _exact(data, tuple(bounds))
    values = {name: _number(data, name, *limits) for name, limits in bounds.items()}
    if values["detectable_errors"] <= values["baseline_errors"]:
        raise _Malformed("detectable_errors", "must be larger than baseline_errors")
    return CanaryDemand(**values)


def _licences(reader: _Reader, data: Any) -> LicencePolicy:
    _exact(data, ("allowed", "decisions"))
    allowed = tuple(_value(data, "allowed", list))
    if any(not isinstance(item, str) for item in allowed):
        raise _Malformed("allowed", "expected category names")
    return LicencePolicy(allowed, reader.each(data, "decisions", _decision))


def _decision(data: Any) -> LicenceDecision:
    texts = ("component", "license", "use", "reason", "owner")
    _exact(data, (*texts, "decision", "decided"))
    decision: Decided = _choice(data, "decision", get_args(Decided))
    try:
        day = date.fromisoformat(_text(data, "decided"))
    except ValueError as err:
        raise _Malformed("decided", f"expected a date, got {data['decided']!r}") from err
    values = {name: _text(data, name) for name in texts}
    return LicenceDecision(decision=decision, decided=day, **values)


def _exact(data: Any, names: Sequence[str]) -> None:
    if not isinstance(data, Mapping):
        raise _Malformed("", f"expected an object, got {type(data).__name__}")
    missing, unknown = set(names) - set(data), set(data) - set(names)
    if missing or unknown:
        reason = [f"missing {', '.join(sorted(missing))}"] if missing else []
        reason += [f"unknown {', '.join(sorted(unknown))}"] if unknown else []
        raise _Malformed("", " and ".join(reason))


def _value(data: Mapping[str, Any], name: str, kind: type[_Built]) -> _Built:
    value = data[name]
    if not isinstance(value, kind):
        raise _Malformed(name, f"expected {kind.__name__}, got {value!r}"[:200])
    return value


def _text(data: Mapping[str, Any], name: str) -> str:
    value = _value(data, name, str)
    if not value.strip():
        raise _Malformed(name, "is empty")
    return value


def _choice(data: Mapping[str, Any], name: str, choices: Sequence[Any]) -> Any:
    if data[name] not in choices:
        raise _Malformed(name, f"expected one of {', '.join(choices)}, got {data[name]!r}")
    return data[name]


def _whole(data: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = _value(data, name, int)
    if isinstance(value, bool) or not low <= value <= high:
        raise _Malformed(name, f"expected a whole number from {low} to {high}, got {value!r}")
    return value


def _number(data: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Malformed(name, f"expected a number, got {value!r}")
    if not low < value <= high:
        raise _Malformed(name, f"expected more than {low:g} and at most {high:g}, got {value!r}")
    return float(value)
