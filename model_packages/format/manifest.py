"""manifest.json: what a model is, takes, answers and claims (SPEC.md, section 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from contracts.base import canonical, files
from model_packages.format.fields import Fields, refuse, to_float
from model_packages.format.levels import LEVELS, Level
from model_packages.format.tensors import TensorSpec, read_spec

FORMAT_VERSION = 0
RUNTIME_API = 1
LIMIT = 2**20

Retrain = Literal["nightly", "manual"]

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
_FEATURE_VERSION = re.compile(r"(\d{8}-[0-9a-f]{12})?")
_FEATURE_SHAPE = "YYYYMMDD-<12 hexadecimal digits>"


@dataclass(frozen=True)
class Author:
    """Who answers for the model."""

    name: str
    email: str = ""


@dataclass(frozen=True)
class DataSource:
    """Data the model was made from, its licence and the contract that describes it."""

    name: str
    license: str = ""
    contract: str = ""


@dataclass(frozen=True)
class Hardware:
    """What the model needs: device names of ``infra/hardware`` and memory in MiB."""

    devices: tuple[str, ...] = ("cpu",)
    memory_mb: int = 0


@dataclass(frozen=True)
class Training:
    """How the model is made from features.

    Attributes:
        definition: Feature definition, such as ``nyc/flights/arrival-delay``.
        label: Column of the bundle that is predicted.
        feature_version: Bundle it was trained on; empty in an untrained source.
        holdout_version: Bundle it was judged on; empty in an untrained source.
        retrain: ``nightly`` or ``manual``.
        seed: Seed of everything random in it.
        options: Numbers and texts handed to ``train.py`` as they are.
        target_metric: Name and smallest acceptable value, such as ``{"roc_auc": 0.67}``.
    """

    definition: str
    label: str = ""
    feature_version: str = ""
    holdout_version: str = ""
    retrain: Retrain = "manual"
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    target_metric: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            **vars(self),
            "options": dict(self.options),
            "target_metric": dict(self.target_metric),
        }


@dataclass(frozen=True)
class Manifest:
    """The whole manifest; every field is described in SPEC.md, section 2.

    An absent licence reads as empty text: refusing it is the audit's business, not the format's.
    """

    name: str
    version: str
    title: str
    description: str
    authors: tuple[Author, ...]
    license: str
    compliance_level: Level
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    intended_use: str
    limitations: str = ""
    training: Training | None = None
    data: tuple[DataSource, ...] = ()
    hardware: Hardware = Hardware()
    format_version: int = FORMAT_VERSION
    runtime_api: int = RUNTIME_API

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that reads back equal."""
        return {
            **vars(self),
            "authors": [dict(vars(author)) for author in self.authors],
            "inputs": [spec.to_dict() for spec in self.inputs],
            "outputs": [spec.to_dict() for spec in self.outputs],
            "data": [dict(vars(source)) for source in self.data],
            "hardware": {**vars(self.hardware), "devices": list(self.hardware.devices)},
            "training": self.training.to_dict() if self.training else None,
        }

    def dumps(self) -> bytes:
        """Return the canonical bytes of the manifest."""
        return canonical.dumps(self.to_dict()) + b"\n"


def load(path: Path) -> Manifest:
    """Read a manifest file.

    Raises:
        InputError: If it cannot be read or is larger than 1 MiB.
        ManifestInvalid: With every problem in it.
    """
    return parse(files.read_bounded(path, LIMIT), where=str(path))


def parse(data: bytes, *, where: str = "manifest.json") -> Manifest:
    """Read a manifest's bytes.

    Raises:
        InputError: If they are not strict JSON or too many.
        ManifestInvalid: With every problem in them.
    """
    return from_dict(canonical.loads(data, limit=LIMIT, where=where), where=where)


def from_dict(data: Any, *, where: str = "manifest.json") -> Manifest:
    """Read a manifest's plain data.

    Raises:
        ManifestInvalid: With every problem in it.
    """
    problems: list[str] = []
    fields = Fields(data, "manifest", problems)
    manifest = _read(fields)
    fields.close()
    _judge(manifest, problems)
    refuse(problems, where)
    return manifest


def _read(fields: Fields) -> Manifest:
    return Manifest(
        format_version=fields.integer("format_version", maximum=FORMAT_VERSION),
        runtime_api=fields.integer("runtime_api", minimum=RUNTIME_API, maximum=RUNTIME_API),
        name=fields.text("name", pattern=_NAME, shape="lower-case words joined by - . or _"),
        version=fields.text("version", pattern=_VERSION, shape="a version such as 1.2.0"),
        title=fields.text("title"),
        description=fields.text("description"),
        authors=tuple(_author(item) for item in fields.records("authors", required=True)),
        license=fields.text("license", ""),
        compliance_level=cast("Level", fields.text("compliance_level", choices=LEVELS)),
        inputs=tuple(read_spec(item) for item in fields.records("inputs", required=True)),
        outputs=tuple(read_spec(item) for item in fields.records("outputs", required=True)),
        intended_use=fields.text("intended_use"),
        limitations=fields.text("limitations", ""),
        training=_training(fields.record("training")),
        data=tuple(_source(item) for item in fields.records("data")),
        hardware=_hardware(fields.record("hardware")),
    )


def _author(fields: Fields) -> Author:
    author = Author(fields.text("name"), fields.text("email", ""))
    fields.close()
    return author


def _source(fields: Fields) -> DataSource:
    source = DataSource(
        fields.text("name"), fields.text("license", ""), fields.text("contract", "")
    )
    fields.close()
    return source


def _hardware(fields: Fields | None) -> Hardware:
    if fields is None:
        return Hardware()
    hardware = Hardware(fields.texts("devices", required=True), fields.integer("memory_mb", 0))
    fields.close()
    return hardware


def _training(fields: Fields | None) -> Training | None:
    if fields is None:
        return None
    training = Training(
        definition=fields.text("definition"),
        label=fields.text("label", ""),
        feature_version=fields.text(
            "feature_version", "", pattern=_FEATURE_VERSION, shape=_FEATURE_SHAPE
        ),
        holdout_version=fields.text(
            "holdout_version", "", pattern=_FEATURE_VERSION, shape=_FEATURE_SHAPE
        ),
        retrain=cast("Retrain", fields.text("retrain", "manual", choices=("nightly", "manual"))),
        seed=fields.integer("seed", 0),
        options=_scalars(fields, "options"),
        target_metric={
            name: float(value)
            for name, value in _scalars(fields, "target_metric", only_numbers=True).items()
        },
    )
    fields.close()
    return training


def _scalars(fields: Fields, name: str, *, only_numbers: bool = False) -> dict[str, Any]:
    value = fields.raw(name)
    if value is None or value is ...:
        return {}
    kinds: tuple[type, ...] = () if only_numbers else (str, bool)
    if not isinstance(value, Mapping) or not all(
        type(item) in kinds or _is_exact(item) for item in value.values()
    ):
        wanted = "numbers" if only_numbers else "numbers, texts and booleans"
        fields.problems.append(f"{fields.path}.{name}: expected an object of {wanted}")
        return {}
    return dict(value)


def _is_exact(item: Any) -> bool:
    """Whether a number survives JSON."""
    return to_float(item) is not None and (isinstance(item, float) or abs(item) < 2**53)


def _judge(manifest: Manifest, problems: list[str]) -> None:
    for kind, specs in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        names = [spec.name for spec in specs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        problems += [f"manifest.{kind}: {name} is named twice" for name in repeated]
