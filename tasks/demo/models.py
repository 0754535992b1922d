"""Plants one fault in a model: a label that leaks into its inputs, or a weight that was changed.

Either passes every stage but the one that is there for it. Nothing good is touched: what is made
is stored beside it, as a source tree and bundles of their own.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from contracts.base import canonical, files
from contracts.base.digest import Digest
from contracts.base.errors import ManifestInvalid
from contracts.catalog import Catalog
from contracts.features import declaration, reader, store
from contracts.features.bundle import BundleManifest
from contracts.features.definition import FeatureDefinition
from contracts.features.inputs import InputBatch, InputData, InputFile
from contracts.objects import content
from contracts.sources import files as sources
from model_packages.format import manifest as manifests
from model_packages.format.manifest import Training
from model_packages.graph.weights import with_changed_weight
from tasks.train.options import TrainOptions
from tasks.train.train import Versions, train
from tasks.workspace import Workspace

LEAK = "departure_delay"
DEFINITION = "nyc/flights/arrival-delay-with-leak"
EPOCHS, ROWS = 8, 20_000  # enough for the leak to show, in a second of training

_PUBLISHED = "contracts/published"
_GRAPH = "model.onnx"
_LARGEST = 64 * 2**20
_LEAKED_COLUMN = "flights.dep_delay"


def leaked_label(workspace: Workspace, tree: Digest) -> tuple[Digest, Digest | None]:
    """Train a model that takes the delay at departure, which is known only after the question.

    Args:
        workspace: Where sources, bundles and source trees are.
        tree: A trained package source; its newest month of training is learned again.

    Returns:
        The package source of the leaking model, and its float reference.

    Raises:
        ManifestInvalid: If the package source was not trained here.
        CaissonError: If its bundles or their batches are gone.
    """
    workspace.tmp.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".leak-", suffix=".part", dir=workspace.tmp) as name:
        trained = content.checkout_tree(workspace.objects, tree, Path(name) / "trained")
        model, training = _training(trained)
        folder = Path(name) / "source"
        shutil.copytree(TrainOptions().folder(workspace.root, model), folder)
        definition = _leaking_definition(workspace.root / _PUBLISHED, training.definition)
        versions = [
            _bundle(workspace, definition, *_newest(workspace, training.definition, version))
            for version in (training.feature_version, training.holdout_version)
        ]
        _add_input(folder)
        options = TrainOptions(epochs=EPOCHS, rows=ROWS, enforce_target=False)
        report = train(workspace, folder, Versions(*versions), options)
    return report.facts["source_tree"], report.facts["reference_digest"]


def changed_weight(workspace: Workspace, tree: Digest) -> Digest:
    """Change the largest weight of the last layer in a stored package source by a quarter.

    Args:
        workspace: Where source trees are stored.
        tree: The trained package source.

    Returns:
        The changed package source; only ``model.onnx`` differs, by four bytes.

    Raises:
        InputError: If the graph holds no such weights.
    """
    with tempfile.TemporaryDirectory(prefix=".weight-", suffix=".part", dir=workspace.tmp) as name:
        folder = content.checkout_tree(workspace.objects, tree, Path(name) / "source")
        graph = folder / _GRAPH
        files.write_atomic(graph, with_changed_weight(files.read_bounded(graph, _LARGEST)))
        return content.put_tree(workspace.objects, folder)


def _training(folder: Path) -> tuple[str, Training]:
    manifest = manifests.load(folder / "manifest.json")
    training = manifest.training
    if training is None or not training.feature_version or not training.holdout_version:
        raise ManifestInvalid("package source was not trained here", location=str(folder))
    return manifest.name, training


def _leaking_definition(root: Path, name: str) -> FeatureDefinition:
    """Return a definition in which somebody forgot that a column is known only later."""
    plain = files.read_json(root / f"{name}.features.json")
    plain["name"] = DEFINITION
    plain["known_later"] = [name for name in plain["known_later"] if name != _LEAKED_COLUMN]
    plain["features"].append(
        {
            "name": LEAK,
            "kind": "numeric",
            "transform": "value",
            "columns": [_LEAKED_COLUMN],
            "description": "Minutes late at departure, known only after it",
        }
    )
    return declaration.parse(canonical.dumps(plain), where=DEFINITION)


def _newest(
    workspace: Workspace, definition: str, version: str
) -> tuple[dict[str, Sequence[str]], datetime]:
    """Return the newest batch of each input of a bundle, and its logical time."""
    bundle: BundleManifest = reader.open_version(workspace.objects, definition, version).manifest
    named = {item.contract: [max(name for name, _ in item.batches)] for item in bundle.inputs}
    return dict(named), bundle.as_of


def _bundle(
    workspace: Workspace,
    definition: FeatureDefinition,
    batches: Mapping[str, Sequence[str]],
    as_of: datetime,
) -> str:
    """Publish a bundle of a definition that is not published itself; return its version."""
    catalog = Catalog(workspace.root / _PUBLISHED)
    data = {}
    for item in definition.inputs:
        contract = catalog.load(item.contract)
        opened = [
            sources.open_batch(workspace.sources, contract, name) for name in batches[item.contract]
        ]
        found = tuple(
            InputBatch(
                batch.name,
                batch.digest,
                tuple(InputFile(file.path, file.sha256) for file in batch.files),
            )
            for batch in opened
        )
        data[item.name] = InputData(contract.identity, contract.schema_hash, found)
    provenance = {"made_by": "tasks.demo.models"}
    made = store.snapshot(
        definition, data, as_of=as_of, store=workspace.objects, provenance=provenance
    )
    return made.pointer.version


def _add_input(folder: Path) -> None:
    """Let the model and its golden requests take the leaked column."""
    manifest = files.read_json(folder / "manifest.json")
    manifest["inputs"].append({"name": LEAK, "datatype": "FP32", "shape": [-1], "nullable": True})
    manifest["training"]["definition"] = DEFINITION
    files.write_json(folder / "manifest.json", manifest)
    for path in sorted((folder / "test_cases").glob("valid_input_*.json")):
        request = files.read_json(path)
        rows = request["inputs"][0]["shape"][0]
        tensor = {"name": LEAK, "datatype": "FP32", "shape": [rows], "data": [5.0] * rows}
        files.write_json(path, {**request, "inputs": [*request["inputs"], tensor]})
