"""A tiny but whole model package, for every test that needs one.

The model answers ``score = 2 * distance + code(carrier) + 0.5`` with code AA 1, UA 2, else 0, and
a missing distance counting as 100. All golden values are exact in float32.

- ``write_source(folder)`` writes a valid source tree; ``Options`` vary it; edit files to spoil it.
- ``write_runtime(folder)`` writes a stand-in for the checkout whose code travels along.
- ``build(folder)`` builds it into the layout ``folder/layout`` and returns a ``BuiltPackage``.
- ``build_signed(folder)`` also signs it with a new key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.base import digest
from model_packages.format import layout as layouts
from model_packages.oci import build as building
from model_packages.oci import carried, keys
from model_packages.oci import sign as signing
from model_packages.oci.keys import PublicKey
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts
from model_packages.oci.store import LayoutStore

MISSING_DISTANCE = 100.0
CODES = {"AA": 1.0, "UA": 2.0}


@dataclass(frozen=True)
class Options:
    """What may differ between two tiny packages."""

    name: str = "tiny"
    version: str = "1.0.0"
    level: str = "L1"
    license: str | None = "Apache-2.0"
    weight: float = 2.0
    max_batch_size: int = 8
    memory_mb: int = 64
    feature_version: str = "20131101-0123456789ab"
    holdout_version: str = "20131201-ba9876543210"
    manifest: dict[str, Any] = field(default_factory=dict)


def write_source(folder: Path, options: Options | None = None) -> Path:
    """Write a valid package source tree and return its folder."""
    options = options or Options()
    (folder / "test_cases").mkdir(parents=True)
    (folder / "docs").mkdir()
    write_json(folder / "manifest.json", manifest(options))
    (folder / "config.yaml").write_text(
        f"max_batch_size: {options.max_batch_size}\ntimeout_ms: 1000\n"
        f"memory_mb: {options.memory_mb}\n"
    )
    write_model(folder / "model.onnx", options.weight)
    rows = [("AA", 10.0), ("ZZ", 0.25), ("UA", None)]
    write_case(folder, "01", rows, options.weight)
    write_case(folder, "02", [("UA", -4.0)], options.weight)
    (folder / "docs" / "usage.md").write_text("# Tiny\n\nSend carrier and distance.\n")
    (folder / "health_check.py").write_text('"""Says that all is well."""\n\nprint("{}")\n')
    return folder


def manifest(options: Options | None = None) -> dict[str, Any]:
    """Return the manifest as plain data."""
    options = options or Options()
    plain: dict[str, Any] = {
        "format_version": 0,
        "runtime_api": 1,
        "name": options.name,
        "version": options.version,
        "title": "Tiny",
        "description": "A linear model for tests.",
        "authors": [{"name": "Ada Example", "email": "ada@example.org"}],
        "compliance_level": options.level,
        "inputs": [
            {"name": "carrier", "datatype": "BYTES", "shape": [-1], "categories": sorted(CODES)},
            {"name": "distance", "datatype": "FP32", "shape": [-1], "nullable": True},
        ],
        "outputs": [{"name": "score", "datatype": "FP32", "shape": [-1]}],
        "intended_use": "Tests.",
        "limitations": "Everything else.",
        "training": {
            "definition": "nyc/flights/arrival-delay",
            "feature_version": options.feature_version,
            "holdout_version": options.holdout_version,
            "retrain": "manual",
        },
        "data": [{"name": "made up", "license": "CC0-1.0", "contract": "nyc/flights@1.0.0"}],
        "hardware": {"devices": ["cpu"], "memory_mb": options.memory_mb},
    }
    if options.license is not None:
        plain["license"] = options.license
    return {**plain, **options.manifest}


def score(carrier: str, distance: float | None, weight: float = 2.0) -> float:
    """Answer as the model does."""
    known = MISSING_DISTANCE if distance is None else distance
    return weight * known + CODES.get(carrier, 0.0) + 0.5


def write_case(
    folder: Path, number: str, rows: list[tuple[str, float | None]], weight: float
) -> None:
    """Write one golden case of a source tree."""
    length = [len(rows)]
    inputs = [
        {"name": "carrier", "datatype": "BYTES", "shape": length, "data": [row[0] for row in rows]},
        {"name": "distance", "datatype": "FP32", "shape": length, "data": [row[1] for row in rows]},
    ]
    answers = [score(carrier, distance, weight) for carrier, distance in rows]
    output = {"name": "score", "datatype": "FP32", "shape": length, "data": answers}
    tolerance = {"absolute": 1e-6, "relative": 1e-6}
    write_json(folder / "test_cases" / f"valid_input_{number}.json", {"inputs": inputs})
    write_json(
        folder / "test_cases" / f"valid_output_{number}.json",
        {"outputs": [output], "tolerance": tolerance},
    )


def write_model(path: Path, weight: float = 2.0) -> None:
    """Write the graph; equal arguments give equal bytes."""
    from onnx import TensorProto, helper, save

    text = helper.make_tensor_value_info("carrier", TensorProto.STRING, ["batch"])
    distance = helper.make_tensor_value_info("distance", TensorProto.FLOAT, ["batch"])
    answer = helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch"])
    constants = {"weight": weight, "bias": 0.5, "missing": MISSING_DISTANCE}
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["carrier"],
            ["code"],
            domain="ai.onnx.ml",
            keys_strings=list(CODES),
            values_floats=list(CODES.values()),
            default_float=0.0,
        ),
        helper.make_node("IsNaN", ["distance"], ["is_missing"]),
        helper.make_node("Where", ["is_missing", "missing", "distance"], ["known"]),
        helper.make_node("Mul", ["known", "weight"], ["weighted"]),
        helper.make_node("Add", ["weighted", "code"], ["sum"]),
        helper.make_node("Add", ["sum", "bias"], ["score"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [text, distance],
        [answer],
        [
            helper.make_tensor(name, TensorProto.FLOAT, [1], [value])
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(
        graph,
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
    )
    save(model, str(path))


def write_json(path: Path, value: Any) -> None:
    """Write plain data as JSON."""
    path.write_text(json.dumps(value, indent=1) + "\n")


def edit_json(path: Path, **fields: Any) -> None:
    """Replace fields of a JSON object in a file; None removes one."""
    value = {**json.loads(path.read_text()), **fields}
    write_json(path, {name: item for name, item in value.items() if item is not None})


def write_runtime(folder: Path) -> Path:
    """Write a stand-in for the checkout whose code travels with a package."""
    for area in ("contracts", "model_packages"):
        (folder / area).mkdir(parents=True)
        (folder / area / "__init__.py").write_text(f'"""Stand-in for {area}."""\n')
    return folder


@dataclass(frozen=True)
class BuiltPackage:
    """A built package: its layout's folder, its reference, its source and code folders."""

    layout: Path
    reference: PackageRef
    source: Path
    code: Path

    @property
    def store(self) -> LayoutStore:
        """The layout."""
        return LayoutStore(self.layout)


def build(folder: Path, options: Options | None = None) -> BuiltPackage:
    """Build a tiny package into ``folder/layout``."""
    options = options or Options()
    source = write_source(folder / "source", options)
    code = write_runtime(folder / "code")
    store = LayoutStore(folder / "layout")
    reference = building.build(
        layouts.read_source(source), carried.read_code(code), store, options.name
    )
    return BuiltPackage(store.path, reference, source, code)


def build_signed(folder: Path, options: Options | None = None) -> tuple[BuiltPackage, PublicKey]:
    """Build a tiny package and sign it with the key ``folder/keys/builder.pem``."""
    built = build(folder, options)
    key = keys.load_or_create(folder / "keys", "builder")
    signing.sign(built.store, built.reference, facts(built.reference), key)
    return built, key.public


def facts(reference: PackageRef) -> ReleaseFacts:
    """Return made-up facts to sign about a package."""
    return ReleaseFacts(
        set_digest=reference.set_digest,
        contract="nyc/flights@1.0.0",
        schema_hash=digest.of_bytes(b"schema"),
        feature_version="20131101-0123456789ab",
        git_commit="0" * 40,
        runtime_version=digest.of_bytes(b"code"),
        achieved_level="L1",
        reports={"package": digest.of_bytes(b"report")},
    )
