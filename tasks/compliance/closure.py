"""What a package runs on: the libraries its runtime needs, from installed metadata.

The roots are what ``model_packages/runtime`` and the verification of packages import; a test
compares them with the source. The pipeline's own tools are listed apart and never block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

from tasks.compliance import licences
from tasks.compliance.licences import Classified
from tasks.policy import LicencePolicy

ROOTS = ("cryptography", "httptools", "numpy", "onnxruntime", "orjson", "pyyaml", "uvloop")
TOOLS = (
    "captum",
    "duckdb",
    "great-expectations",
    "mlflow",
    "onnx",
    "prefect",
    "pyarrow",
    "scipy",
    "shap",
    "torch",
)


@dataclass(frozen=True)
class Library:
    """One installed distribution.

    Attributes:
        name: Its normalised name.
        version: Its version; empty if it is not installed.
        requires: Names of the distributions it needs here.
        license: How its licence is judged.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    license: Classified

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "version": self.version,
            "license": self.license.expression,
            "categories": list(self.license.categories),
            "ruling": self.license.ruling,
            "reason": self.license.reason,
        }


def closure(roots: Iterable[str], policy: LicencePolicy) -> tuple[Library, ...]:
    """Return distributions and all they need in this environment, sorted by name."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - not needed to import the area

    found: dict[str, Library] = {}
    waiting: list[str] = [canonicalize_name(name) for name in roots]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _library(name, "run-time", policy)
            waiting += found[name].requires
    return tuple(found[name] for name in sorted(found))


def tools(policy: LicencePolicy, environments: Path | None = None) -> tuple[Library, ...]:
    """Return the pipeline's own tools, those in environments of their own included."""
    main = [_library(name, "evaluation", policy) for name in TOOLS]
    found = {item.name: item for item in main if item.version}
    for folder in sorted(environments.glob("*/lib/python*/site-packages")) if environments else []:
        for item in distributions(name="alibi-detect", path=[str(folder)]):
            found["alibi-detect"] = _describe("alibi-detect", item, "evaluation", policy)
    return tuple(found[name] for name in sorted(found))


def _library(name: str, use: str, policy: LicencePolicy) -> Library:
    try:
        return _describe(name, distribution(name), use, policy)
    except PackageNotFoundError:
        missing = Classified("", (), "unknown", "not installed here")
        return Library(name, "", (), missing)


def _describe(name: str, item: Distribution, use: str, policy: LicencePolicy) -> Library:
    metadata = {
        field: " ".join(item.metadata.get_all(field) or [])
        for field in ("License-Expression", "License")
    }
    classifiers = item.metadata.get_all("Classifier") or []
    expression = licences.declared(metadata, classifiers)
    judged = licences.classify(expression, name, use, policy)
    return Library(name, item.version, _needs(item.requires or ()), judged)


def _needs(requires: Sequence[str]) -> tuple[str, ...]:
    from packaging.requirements import Requirement  # noqa: PLC0415 - see closure
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - see closure

    needed = set()
    for text in requires:
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            needed.add(str(canonicalize_name(wanted.name)))
    return tuple(sorted(needed))
