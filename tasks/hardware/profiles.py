"""Device profiles: one TOML file a device in ``infra/hardware``, every figure with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from contracts.base import digest, files
from contracts.base.digest import Digest
from contracts.base.errors import InputError

Kind = Literal["cpu", "gpu", "soc"]

DIMENSIONS: Mapping[str, type] = {
    "memory_mb": int,
    "memory_type": str,
    "memory_bandwidth_gbs": float,
    "unified_memory": bool,
    "compute_units": int,
    "boost_clock_mhz": int,
    "fp32_tflops": float,
    "fp16_tflops": float,
    "int8_tops": float,
    "l2_cache_mb": float,
    "power_w": float,
    "peer_link_gbs": float,
    "host_link_gbs": float,
}
_TEXTS = ("name", "title", "vendor", "kind", "architecture", "compute_capability")
_LISTS = ("types", "providers")
_TOOLCHAIN = ("first_cuda", "last_cuda", "source")
_LIMIT = 1 << 16
# What the operating system, driver and context keep for themselves.
_RESERVED_MB = {"cpu": 1024, "soc": 4096, "gpu": 600}


@dataclass(frozen=True)
class Profile:
    """What a kind of device is.

    Attributes:
        name: Its name in policies and manifests.
        title: Its name for people.
        vendor: Who makes it.
        kind: cpu, gpu or soc.
        architecture: Family of the chip.
        compute_capability: CUDA compute capability; empty where there is none.
        types: Element types it computes with.
        providers: ONNX Runtime execution providers, in the order they are asked.
        toolchain: First and last CUDA version that supports it, and the source of that.
        dimensions: Its figures by name; see ``DIMENSIONS``.
        sources: Where each figure comes from, by name of the dimension.
        digest: Identity of the profile's content.
    """

    name: str
    title: str
    vendor: str
    kind: Kind
    architecture: str
    compute_capability: str
    types: frozenset[str]
    providers: tuple[str, ...]
    toolchain: Mapping[str, str]
    dimensions: Mapping[str, Any]
    sources: Mapping[str, str]
    digest: Digest

    @property
    def memory_mb(self) -> int:
        """Memory of the device."""
        return int(self.dimensions["memory_mb"])

    @property
    def usable_mb(self) -> int:
        """Memory left for a model."""
        return self.memory_mb - _RESERVED_MB[self.kind]


def load_all(folder: Path) -> dict[str, Profile]:
    """Read every profile of a folder, by name.

    Raises:
        InputError: If there is none, or one is malformed or misnamed.
    """
    profiles = {}
    for path in sorted(folder.glob("*.toml")):
        profile = parse(files.read_bounded(path, _LIMIT), where=str(path))
        if profile.name != path.stem:
            raise InputError(
                "profile is misnamed", expected=path.stem, found=profile.name, location=str(path)
            )
        profiles[profile.name] = profile
    if not profiles:
        raise InputError("no hardware profiles", location=str(folder))
    return profiles


def parse(data: bytes, *, where: str = "") -> Profile:
    """Read a profile, naming every problem at once.

    Raises:
        InputError: If a field or figure is missing, unknown, of the wrong kind or has no source.
    """
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise InputError(f"not readable as TOML: {err}", location=where) from err
    problems = _problems(content)
    if problems:
        raise InputError(
            f"profile is malformed: {'; '.join(problems)}",
            location=where,
            remedy="See infra/README.md for every field and figure.",
        )
    figures = content["dimensions"]
    sources = content["sources"]
    return Profile(
        **{name: content[name] for name in _TEXTS},
        types=frozenset(content["types"]),
        providers=tuple(content["providers"]),
        toolchain={**content["toolchain"]},
        dimensions={name: figures[name]["value"] for name in DIMENSIONS},
        sources={name: sources[figures[name]["source"]] for name in DIMENSIONS},
        digest=digest.of_json(content),
    )


def _problems(content: Mapping[str, Any]) -> list[str]:
    problems = []
    tables = ("toolchain", "dimensions", "sources")
    known = {*_TEXTS, *_LISTS, *tables, "format_version"}
    problems += [f"{name} is missing" for name in sorted(known - set(content))]
    problems += [f"{name} is unknown" for name in sorted(set(content) - known)]
    if problems:
        return problems
    if content["format_version"] != 0:
        problems.append(f"format_version: expected 0, got {content['format_version']!r}")
    problems += [f"{name} is not text" for name in _TEXTS if not isinstance(content[name], str)]
    problems += [f"{name} is not a list of texts" for name in _LISTS if not _texts(content[name])]
    problems += [f"{name} is not a table" for name in tables if not isinstance(content[name], dict)]
    if problems:
        return problems
    if content["kind"] not in get_args(Kind):
        problems.append(f"kind: expected one of cpu, gpu, soc, got {content['kind']!r}")
    if set(content["toolchain"]) != set(_TOOLCHAIN):
        problems.append(f"toolchain: expected {', '.join(_TOOLCHAIN)}")
    elif content["toolchain"]["source"] not in content["sources"]:
        problems.append("toolchain: its source is not listed under sources")
    return problems + _figure_problems(content["dimensions"], content["sources"])


def _figure_problems(figures: Mapping[str, Any], sources: Mapping[str, Any]) -> list[str]:
    problems = [f"dimensions.{name} is unknown" for name in sorted(set(figures) - set(DIMENSIONS))]
    for name, kind in DIMENSIONS.items():
        figure = figures.get(name)
        if not isinstance(figure, dict) or set(figure) != {"value", "source"}:
            problems.append(f"dimensions.{name}: expected a value and a source")
        elif figure["source"] not in sources:
            problems.append(f"dimensions.{name}: source {figure['source']!r} is not listed")
        elif not _fits(figure["value"], kind):
            problems.append(f"dimensions.{name}: {figure['value']!r} is not {kind.__name__} >= 0")
    return problems


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, kind)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
