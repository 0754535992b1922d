"""Golden cases: a request, the answer it must get, and how near is near enough (section 4)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import canonical, files
from contracts.base.errors import ManifestInvalid
from model_packages.format.fields import Fields, refuse, to_float
from model_packages.format.manifest import Manifest
from model_packages.format.tensors import DATATYPES, FLOATS, TensorSpec

LIMIT = 64 * 2**20
_INPUT = re.compile(r"(valid)_input_(\d{2,4})\.json")
_OUTPUT = re.compile(r"(valid)_output_(\d{2,4})\.json")
_MOST_MISMATCHES = 20


@dataclass(frozen=True)
class Tensor:
    """A tensor with its values, flat in row-major order; a missing float is None."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: tuple[Any, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the tensor as OIP v2 JSON."""
        return {
            "name": self.name,
            "datatype": self.datatype,
            "shape": list(self.shape),
            "data": list(self.data),
        }


@dataclass(frozen=True)
class Tolerance:
    """How far a float may lie from the golden one: absolute + relative * |golden|."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True)
class Case:
    """One golden case.

    Attributes:
        name: Such as ``valid_01``.
        inputs: The tensors of the request.
        outputs: The tensors of the golden answer.
        tolerance: How near an answer must come.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tolerance: Tolerance

    @property
    def rows(self) -> int:
        """Length of the batch."""
        return self.inputs[0].shape[0]

    @property
    def request(self) -> dict[str, Any]:
        """The request as an OIP v2 inference body."""
        return {"id": self.name, "inputs": [tensor.to_dict() for tensor in self.inputs]}


def load(folder: Path) -> tuple[Case, ...]:
    """Read all cases of a ``test_cases`` folder, sorted by name.

    Raises:
        InputError: If a file cannot be read, is no strict JSON or is too large.
        ManifestInvalid: With every problem in them.
    """
    problems: list[str] = []
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    cases = []
    for name in sorted(names):
        match = _INPUT.fullmatch(name)
        if match is None:
            if _OUTPUT.fullmatch(name) is None:
                problems.append(f"{name}: expected valid_input_NN.json or valid_output_NN.json")
            elif name.replace("_output_", "_input_") not in names:
                problems.append(f"{name}: has no input beside it")
            continue
        other = f"{match[1]}_output_{match[2]}.json"
        if other not in names:
            problems.append(f"{name}: has no {other} beside it")
        else:
            cases.append(
                _read_case(f"{match[1]}_{match[2]}", folder / name, folder / other, problems)
            )
    if not cases and not problems:
        problems.append("there is no case")
    refuse(problems, str(folder))
    return tuple(cases)


def mismatches(manifest: Manifest, cases: Sequence[Case]) -> list[str]:
    """Say where cases do not fit the inputs and outputs the manifest declares."""
    problems: list[str] = []
    for case in cases:
        for kind, specs, tensors in (
            ("input", manifest.inputs, case.inputs),
            ("output", manifest.outputs, case.outputs),
        ):
            given = {tensor.name: tensor for tensor in tensors}
            for spec in specs:
                problems += _fit(
                    f"{case.name}: {kind} {spec.name}", spec, given.pop(spec.name, None)
                )
            problems += [f"{case.name}: {kind} {name} is not declared" for name in sorted(given)]
        lengths = {tensor.shape[:1] for tensor in case.inputs + case.outputs}
        if len(lengths) > 1:
            problems.append(f"{case.name}: tensors differ in the length of their batch")
    return problems


def compare(case: Case, answers: Mapping[str, Sequence[Any]]) -> list[str]:
    """Say where answers differ from the golden ones by more than the tolerance.

    Args:
        case: The golden case.
        answers: Flat values of each output, by name; NaN or None is a missing float.
    """
    problems: list[str] = []
    for golden in case.outputs:
        found = answers.get(golden.name)
        if found is None:
            problems.append(f"output {golden.name} is missing")
        elif len(found) != len(golden.data):
            problems.append(
                f"output {golden.name}: expected {len(golden.data)} values, got {len(found)}"
            )
        else:
            problems += _differences(golden, found, case.tolerance)
    return problems[:_MOST_MISMATCHES]


def _differences(golden: Tensor, found: Sequence[Any], tolerance: Tolerance) -> Iterator[str]:
    for index, (wanted, got) in enumerate(zip(golden.data, found, strict=True)):
        if not _near(wanted, got, tolerance, golden.datatype in FLOATS):
            yield f"output {golden.name}[{index}]: expected {wanted!r}, got {got!r}"


def _near(wanted: Any, got: Any, tolerance: Tolerance, is_float: bool) -> bool:
    if not is_float:
        return bool(wanted == got)
    first = math.nan if wanted is None else float(wanted)
    second = math.nan if got is None else float(got)
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    return abs(first - second) <= tolerance.absolute + tolerance.relative * abs(first)


def _read_case(name: str, request: Path, answer: Path, problems: list[str]) -> Case:
    inputs = Fields(_read(request), request.name, problems)
    outputs = Fields(_read(answer), answer.name, problems)
    inputs.text("id", "")
    case = Case(
        name=name,
        inputs=tuple(_tensor(item) for item in inputs.records("inputs", required=True)),
        outputs=tuple(_tensor(item) for item in outputs.records("outputs", required=True)),
        tolerance=_tolerance(outputs.record("tolerance")),
    )
    inputs.close()
    outputs.close()
    return case


def _read(path: Path) -> Any:
    return canonical.loads(files.read_bounded(path, LIMIT), limit=LIMIT, where=str(path))


def _tolerance(fields: Fields | None) -> Tolerance:
    if fields is None:
        return Tolerance()
    tolerance = Tolerance(fields.number("absolute") or 0.0, fields.number("relative") or 0.0)
    fields.close()
    if tolerance.absolute < 0 or tolerance.relative < 0:
        fields.problems.append(f"{fields.path}: a tolerance cannot be negative")
    return tolerance


def _tensor(fields: Fields) -> Tensor:
    datatype = fields.text("datatype", choices=DATATYPES)
    data = _flat(fields.raw("data"), fields)
    if datatype in FLOATS:
        data = tuple(value if to_float(value) is None else float(value) for value in data)
    tensor = Tensor(
        name=fields.text("name"),
        datatype=datatype,
        shape=fields.integers("shape", required=True),
        data=data,
    )
    fields.close()
    if math.prod(tensor.shape) != len(tensor.data):
        fields.problems.append(
            f"{fields.path}: shape {list(tensor.shape)} does not hold {len(tensor.data)} values"
        )
    fields.problems += _unfit(tensor, fields.path)
    return tensor


def _flat(value: Any, fields: Fields) -> tuple[Any, ...]:
    """Return nested or flat JSON values in row-major order."""
    if not isinstance(value, list):
        fields.problems.append(f"{fields.path}.data: expected a list")
        return ()
    flat: list[Any] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(reversed(item))
        else:
            flat.append(item)
    return tuple(flat)


def _unfit(tensor: Tensor, path: str) -> list[str]:
    for index, value in enumerate(tensor.data):
        if not _is_of(tensor.datatype, value):
            return [f"{path}.data[{index}]: {value!r} is no {tensor.datatype}"]
    return []


def _is_of(datatype: str, value: Any) -> bool:
    if datatype == "BYTES":
        return isinstance(value, str)
    if datatype == "BOOL":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if datatype in FLOATS:
        return value is None or isinstance(value, float)
    return isinstance(value, int)


def _fit(what: str, spec: TensorSpec, tensor: Tensor | None) -> list[str]:
    if tensor is None:
        return [f"{what} is missing"]
    problems = []
    if tensor.datatype != spec.datatype:
        problems.append(f"{what}: expected {spec.datatype}, got {tensor.datatype}")
    same_rank = len(tensor.shape) == len(spec.shape)
    if not same_rank or any(
        wanted not in (-1, found) for wanted, found in zip(spec.shape, tensor.shape, strict=True)
    ):
        problems.append(f"{what}: expected shape {list(spec.shape)}, got {list(tensor.shape)}")
    return problems


def dump(case: Case) -> tuple[bytes, bytes]:
    """Return the canonical bytes of a case's input and output file.

    Raises:
        ManifestInvalid: If a value has no JSON form.
    """
    request = {"inputs": [tensor.to_dict() for tensor in case.inputs]}
    answer = {
        "outputs": [tensor.to_dict() for tensor in case.outputs],
        "tolerance": dict(vars(case.tolerance)),
    }
    for tensor in case.inputs + case.outputs:
        for value in tensor.data:
            if isinstance(value, float) and not math.isfinite(value):
                raise ManifestInvalid(
                    f"{value} has no JSON form; write None for a missing value",
                    location=f"{case.name}: {tensor.name}",
                )
    return canonical.dumps(request) + b"\n", canonical.dumps(answer) + b"\n"
