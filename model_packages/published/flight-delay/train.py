"""Train flight-delay: will a flight arrive more than 15 minutes late, asked at its departure time.

Run as ``python train.py request.json``. The request names the training and hold-out rows (Parquet),
the features in the order of the manifest, the label, the seed, and the folder to write into:

    {"training", "holdout", "features": [{"name", "kind"}], "label", "seed", "output",
     "cases", "options": {"epochs"?, "rows"?}, "answer", "progress"?}

It writes model.onnx, reference.pt2, and in test_cases/ the golden answers to the requests of the
folder ``cases``; it answers with what it measured. Nothing else is read; one thread, one seed and
no clock, so that the same request gives the same bytes on the same machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from onnx import TensorProto, compose, helper, numpy_helper

Array = NDArray[Any]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 10
EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY, DROPOUT = 5, 2048, 3e-3, 5e-2, 0.25
HIDDEN, EMBEDDING, AVERAGING = (64, 32), 8, 0.98
CLIP = 5.0  # standard deviations; a wild measurement counts as a large one
BINS = 10
SMALLEST_SLICE = 200  # rows under which a slice's rates say little
TOLERANCE = {"absolute": 1e-5, "relative": 1e-4}  # golden outputs: fp32 engines against fp64 torch


@dataclass(frozen=True)
class Rows:
    """Columns of a table: text by name, numbers side by side (missing = NaN), and the label."""

    texts: dict[str, Array]
    numbers: Array
    label: Array


@dataclass(frozen=True)
class Encoding:
    """How columns become arrays; an unknown text takes the index after the last known one."""

    vocabularies: dict[str, list[str]]
    numeric: list[str]

    def codes(self, texts: dict[str, Array]) -> Array:
        columns = []
        for name, words in self.vocabularies.items():
            known = np.array(words, dtype=object)
            place = np.minimum(np.searchsorted(known, texts[name]), len(known) - 1)
            columns.append(np.where(known[place] == texts[name], place, len(known)))
        return np.stack(columns, axis=1).astype(np.int64)


class Core(torch.nn.Module):
    """Embeddings and a small multilayer perceptron over codes and standardised numbers."""

    def __init__(self, sizes: list[int], width: int) -> None:
        super().__init__()
        dimensions = [min(EMBEDDING, size) for size in sizes]
        pairs = zip(sizes, dimensions, strict=True)
        self.embeddings = torch.nn.ModuleList(torch.nn.Embedding(a, b) for a, b in pairs)
        layers: list[torch.nn.Module] = []
        before = sum(dimensions) + width
        for after in HIDDEN:
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU(), torch.nn.Dropout(DROPOUT)]
            before = after
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(before, 1))

    def logits(self, codes: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
        parts = [table(codes[:, index]) for index, table in enumerate(self.embeddings)]
        return self.layers(torch.cat([*parts, scaled], dim=1)).squeeze(1)

    def forward(self, codes: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.logits(codes, scaled))


class Network(torch.nn.Module):
    """The whole model on codes and raw numbers; what reference.pt2 holds."""

    def __init__(self, core: Core, mean: Array, scale: Array) -> None:
        super().__init__()
        self.core = core
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))

    def prepare(self, numbers: torch.Tensor) -> torch.Tensor:
        filled = torch.where(torch.isnan(numbers), self.mean, numbers)
        return torch.clamp((filled - self.mean) / self.scale, -CLIP, CLIP)

    def forward(self, codes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        return self.core(codes, self.prepare(numbers))


def read(path: str, features: list[dict[str, str]], label: str) -> Rows:
    names = [feature["name"] for feature in features]
    table = pq.read_table(path, columns=[*names, label])
    texts, numbers = {}, []
    for feature in features:
        column = table[feature["name"]]
        if feature["kind"] == "categorical":
            filled = pc.fill_null(column.cast("string"), "")
            texts[feature["name"]] = filled.to_numpy(zero_copy_only=False).astype(object)
        else:
            numbers.append(_floats(column))
    return Rows(texts, np.stack(numbers, axis=1), _floats(table[label]))


def _floats(column: Any) -> Array:
    filled = pc.fill_null(column.cast("float64"), float("nan"))
    return filled.to_numpy(zero_copy_only=False).astype(np.float32)


def learn_encoding(rows: Rows, features: list[dict[str, str]]) -> Encoding:
    words = {name: sorted(set(values) - {""}) or [""] for name, values in rows.texts.items()}
    return Encoding(words, [item["name"] for item in features if item["kind"] != "categorical"])


def fit(rows: Rows, encoding: Encoding, seed: int, epochs: int, report: Any) -> Network:
    """Train with AdamW on a one-cycle schedule; the result is the running mean of the weights."""
    if not len(rows.label):
        raise ValueError("there are no training rows")
    torch.manual_seed(seed)
    wide = rows.numbers.astype(np.float64)
    mean, scale = np.nanmean(wide, axis=0), np.nanstd(wide, axis=0)
    sizes = [len(words) + 1 for words in encoding.vocabularies.values()]
    core = Core(sizes, rows.numbers.shape[1])
    network = Network(core, np.nan_to_num(mean), np.where(scale > 0, scale, 1.0))
    codes = torch.from_numpy(encoding.codes(rows.texts))
    scaled = network.prepare(torch.from_numpy(rows.numbers))
    label = torch.from_numpy(rows.label)
    averaged = torch.optim.swa_utils.AveragedModel(core, avg_fn=_running_mean)
    optimizer = torch.optim.AdamW(core.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    batches = list(_batches(len(label), epochs, seed))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, len(batches))
    for step, batch in enumerate(batches):
        logits = core.logits(codes[batch], scaled[batch])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, label[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        averaged.update_parameters(core)
        if step % 20 == 0:
            report("train", step * BATCH, len(batches) * BATCH)
    core.load_state_dict(averaged.module.state_dict())
    return network.eval()


def _running_mean(mean: torch.Tensor, value: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Weigh new values more in the beginning, so that a short run is not held by its start."""
    return torch.lerp(mean, value, max(1 - AVERAGING, 9 / (10 + float(count))))


def _batches(count: int, epochs: int, seed: int) -> Iterator[torch.Tensor]:
    order, size = np.random.default_rng(seed), min(BATCH, count)
    for _ in range(epochs):
        mixed = torch.from_numpy(order.permutation(count))
        yield from (mixed[start : start + size] for start in range(0, count - size + 1, size))


def predict(network: Network, codes: Array, numbers: Array) -> Array:
    with torch.no_grad():
        return network(torch.from_numpy(codes), torch.from_numpy(numbers)).numpy().astype(float)


def roc_auc(label: Array, score: Array) -> float | None:
    """Return the share of pairs in the right order, ties counting half; None if one-sided."""
    positive, negative = int((label > 0).sum()), int((label <= 0).sum())
    if not positive or not negative:
        return None
    _, inverse, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[inverse]
    above = rank[label > 0].sum() - positive * (positive + 1) / 2
    return float(above / (positive * negative))


def baseline(training: Rows, holdout: Rows, minute: int) -> float | None:
    """Return the AUC of the carrier x hour rate, which any model must beat."""

    def keys(rows: Rows) -> Array:
        hours = np.nan_to_num(rows.numbers[:, minute] // 60).astype(int)
        return np.char.add(rows.texts["carrier"].astype(str), hours.astype(str)).astype(object)

    encoding = Encoding({"key": sorted(set(keys(training)))}, [])
    known, asked = (encoding.codes({"key": keys(rows)})[:, 0] for rows in (training, holdout))
    rate = np.bincount(known, training.label) / np.bincount(known)
    return roc_auc(holdout.label, np.append(rate, training.label.mean())[asked])


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    floats = float | np.floating
    return {k: round(float(v), 6) if isinstance(v, floats) else v for k, v in values.items()}


def calibration(label: Array, score: Array) -> dict[str, Any]:
    """Return the reliability table and the expected calibration error over equal-width bins."""
    table, error = [], 0.0
    for place in range(BINS):
        inside = np.minimum((score * BINS).astype(int), BINS - 1) == place
        if inside.any():
            means = {"predicted": score[inside].mean(), "observed": label[inside].mean()}
            error += inside.mean() * abs(means["predicted"] - means["observed"])
            table.append(rounded({"bin": place, "rows": int(inside.sum()), **means}))
    return {"expected_calibration_error": round(float(error), 6), "reliability": table}


def slices(groups: Array, label: Array, score: Array) -> list[dict[str, Any]]:
    """Return counts and quality for each value that has enough rows."""
    found = []
    for value in sorted(set(groups.astype(str))):
        inside = groups.astype(str) == value
        if inside.sum() >= SMALLEST_SLICE:
            means = {"observed": label[inside].mean(), "predicted": score[inside].mean()}
            auc = roc_auc(label[inside], score[inside])
            rows = int(inside.sum())
            found.append(rounded({"value": value, "rows": rows, "roc_auc": auc, **means}))
    return found


def evaluate(network: Network, encoding: Encoding, training: Rows, rows: Rows) -> dict[str, Any]:
    score = predict(network, encoding.codes(rows.texts), rows.numbers)
    minute = encoding.numeric.index("scheduled_departure_minute")
    hours = np.char.zfill(np.nan_to_num(rows.numbers[:, minute] // 60).astype(int).astype(str), 2)
    bounded = np.clip(score, 1e-7, 1 - 1e-7)
    loss = -np.mean(rows.label * np.log(bounded) + (1 - rows.label) * np.log(1 - bounded))
    groups = {"carrier": rows.texts["carrier"], "origin": rows.texts["origin"], "hour": hours}
    auc, least = roc_auc(rows.label, score), baseline(training, rows, minute)
    numbers = {
        "late_share": rows.label.mean(),
        "mean_prediction": score.mean(),
        "roc_auc": auc,
        "baseline_roc_auc": least,
        "roc_auc_above_baseline": None if auc is None or least is None else auc - least,
        "log_loss": loss,
        "brier": np.mean((score - rows.label) ** 2),
        "training_rows": len(training.label),
        "holdout_rows": len(rows.label),
    }
    return {
        **rounded(numbers),
        "calibration": calibration(rows.label, score),
        "slices": {name: slices(values, rows.label, score) for name, values in groups.items()},
    }


def preprocessing(encoding: Encoding, network: Network, names: list[str]) -> onnx.ModelProto:
    """Build the graph from one named input a column to codes and standardised numbers."""
    node, info = helper.make_node, helper.make_tensor_value_info
    words, numeric = encoding.vocabularies, encoding.numeric
    nodes = [
        node("LabelEncoder", [name], [f"{name}_code"], f"encode_{name}", domain="ai.onnx.ml",
             keys_strings=known, values_int64s=list(range(len(known))), default_int64=len(known))
        for name, known in words.items()
    ]  # fmt: skip
    nodes += [
        node("Unsqueeze", [name, "last"], [f"{name}_column"], f"column_{name}")
        for name in [*(f"{text}_code" for text in words), *numeric]
    ]
    nodes += [
        node("Concat", [f"{text}_code_column" for text in words], ["codes"], "join_codes", axis=1),
        node("Concat", [f"{name}_column" for name in numeric], ["raw"], "join_numbers", axis=1),
        node("IsNaN", ["raw"], ["missing"], "find_missing"),
        node("Where", ["missing", "mean", "raw"], ["filled"], "fill_missing"),
        node("Sub", ["filled", "mean"], ["centred"], "centre"),
        node("Div", ["centred", "scale"], ["divided"], "divide"),
        node("Clip", ["divided", "low", "high"], ["scaled"], "clip"),
    ]
    constants = {
        "last": np.array([1], dtype=np.int64), "mean": network.mean.numpy(),
        "scale": network.scale.numpy(), "low": np.array(-CLIP, dtype=np.float32),
        "high": np.array(CLIP, dtype=np.float32),
    }  # fmt: skip
    kinds = {name: TensorProto.STRING if name in words else TensorProto.FLOAT for name in names}
    graph = helper.make_graph(
        nodes,
        "preprocessing",
        [info(name, kind, ["batch"]) for name, kind in kinds.items()],
        [info("codes", TensorProto.INT64, ["batch", len(words)]),
         info("scaled", TensorProto.FLOAT, ["batch", len(numeric)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    return _model(graph)


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _example(encoding: Encoding) -> tuple[torch.Tensor, torch.Tensor]:
    texts, numbers = len(encoding.vocabularies), len(encoding.numeric)
    return torch.zeros((2, texts), dtype=torch.int64), torch.zeros((2, numbers))


def export(network: Network, encoding: Encoding, names: list[str], output: Path) -> None:
    """Write model.onnx: preprocessing and core as one graph, the same bytes every time."""
    path = output / "core.onnx"
    torch.onnx.export(
        network.core, _example(encoding), str(path), dynamo=False, opset_version=OPSET,
        input_names=["codes", "scaled"], output_names=["probability"],
        dynamic_axes={"codes": {0: "batch"}, "scaled": {0: "batch"}, "probability": {0: "batch"}},
    )  # fmt: skip
    core = _model(onnx.load(str(path)).graph)
    path.unlink()
    merged = compose.merge_models(
        preprocessing(encoding, network, names),
        compose.add_prefix(core, "core_", rename_inputs=False, rename_outputs=False),
        io_map=[("codes", "codes"), ("scaled", "scaled")],
        name="flight-delay",
    )
    merged.producer_name, merged.producer_version = "", ""
    for part in [merged, *merged.graph.node]:
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    onnx.checker.check_model(merged, full_check=True)
    (output / "model.onnx").write_bytes(merged.SerializeToString(deterministic=True))


def keep_reference(network: Network, encoding: Encoding, output: Path) -> None:
    """Write reference.pt2: the float module over codes and numbers, and how to encode."""
    rows = {0: torch.export.Dim("batch", min=1, max=65536)}
    program = torch.export.export(network, _example(encoding), dynamic_shapes=(rows, rows))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # holds the path of this file
    described = {
        "categorical": [{"name": n, "values": v} for n, v in encoding.vocabularies.items()],
        "numeric": encoding.numeric,
        "output": "probability",
    }
    extra = {"encoding.json": json.dumps(described)}
    torch.export.save(program, output / "reference.pt2", extra_files=extra)


def golden(network: Network, encoding: Encoding, cases: Path, output: Path) -> None:
    """Write the expected answer of every committed request, from a run in double precision."""
    precise = Network(network.core, network.mean.numpy(), network.scale.numpy()).eval().double()
    words = encoding.vocabularies
    for path in sorted(cases.glob("valid_input_*.json")):
        tensors = {item["name"]: item["data"] for item in json.loads(path.read_text())["inputs"]}
        texts = {n: np.array([v or "" for v in tensors[n]], dtype=object) for n in words}
        numbers = np.array([tensors[name] for name in encoding.numeric], dtype=float).T
        answer = predict(precise, encoding.codes(texts), numbers.astype(np.float32).astype(float))
        data = [float(f"{value:.12g}") for value in answer]
        tensor = {"name": "probability", "datatype": "FP32", "shape": [len(data)], "data": data}
        content = {"outputs": [tensor], "tolerance": TOLERANCE}
        _write_json(output / "test_cases" / path.name.replace("input", "output"), content)
    network.float()


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Do what the request asks and return the answer."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    output, cases = Path(request["output"]), Path(request["cases"])
    options, seed, features = request["options"], int(request["seed"]), request["features"]

    def report(stage: str, done: float, total: float) -> None:
        if "progress" in request:
            line = {"stage": stage, "done": done, "total": total, "unit": "rows"}
            os.write(request["progress"], (json.dumps(line) + "\n").encode())

    training = read(request["training"], features, request["label"])
    if options.get("rows") and options["rows"] < len(training.label):
        chosen = np.random.default_rng(seed).permutation(len(training.label))[: options["rows"]]
        texts = {name: values[chosen] for name, values in training.texts.items()}
        training = Rows(texts, training.numbers[chosen], training.label[chosen])
    holdout = read(request["holdout"], features, request["label"])
    encoding = learn_encoding(training, features)
    network = fit(training, encoding, seed, options.get("epochs") or EPOCHS, report)
    metrics = evaluate(network, encoding, training, holdout)
    report("train", 1, 1)
    export(network, encoding, [feature["name"] for feature in features], output)
    keep_reference(network, encoding, output)
    golden(network, encoding, cases, output)
    environment = {"torch": torch.__version__, "numpy": np.__version__, "onnx": onnx.__version__}
    return {"metrics": metrics, "environment": {**environment, "threads": 1}}


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _write_json(Path(asked["answer"]), work(asked))
