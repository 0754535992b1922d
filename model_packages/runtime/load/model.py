"""What loading starts from and what it ends with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from contracts.base.digest import Digest
from model_packages.format.cases import Case
from model_packages.format.manifest import Manifest
from model_packages.format.settings import Settings
from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.interface import Session

Stage = Literal["metadata", "weights", "placement", "graph", "memory", "health"]

STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class PackageSource:
    """A package's files on this machine, and what they must be.

    Attributes:
        folder: The ``/model`` tree.
        package_digest: Digest of the OCI index; the identity answers carry.
        set_digest: Digest the files must have.
    """

    folder: Path
    package_digest: Digest
    set_digest: Digest


@dataclass(frozen=True)
class ModelSpec:
    """What the engine must know of a package to serve it.

    Attributes:
        manifest: Its manifest.
        settings: Its limits.
        cases: Its golden cases.
    """

    manifest: Manifest
    settings: Settings
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.manifest.name

    @property
    def version(self) -> str:
        """Version of the model."""
        return self.manifest.version

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Declared inputs."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Declared outputs."""
        return self.manifest.outputs


@dataclass(frozen=True)
class StageRecord:
    """One stage that went well.

    Attributes:
        stage: Its name.
        seconds: How long it took.
        figures: What it established.
    """

    stage: Stage
    seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"stage": self.stage, "seconds": self.seconds, "figures": dict(self.figures)}


@dataclass(frozen=True)
class LoadedModel:
    """A model that passed all six stages.

    Attributes:
        source: Where it came from.
        spec: What it is.
        session: The open graph; its outputs come in the order of ``spec.outputs``.
        platform: Name of the library in the protocol's metadata.
        records: The six stages.
    """

    source: PackageSource
    spec: ModelSpec
    session: Session
    platform: str
    records: tuple[StageRecord, ...]
