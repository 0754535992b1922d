"""Facts of graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format import manifest
from model_packages.graph import facts as graphs
from model_packages.graph import match
from model_packages.graph.facts import GraphFacts
from tests.fakes import packages

FLOAT = TensorProto.FLOAT


def value(name: str, shape: list[Any], kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], *more: Any) -> Path:
    """Save a model; ``more`` are its constants."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(more))
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return path


def external(path: Path, location: str, **places: int) -> Path:
    """Save a model whose constant says it lies in another file."""
    tensor = constant("w", 4)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in {"location": location, **places}.items():
        tensor.external_data.add(key=key, value=str(text))
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return save(path, [node], [value("x", ["n", 4])], [value("y", ["n", 4])], tensor)


def test_facts_of_the_tiny_model(source: Path) -> None:
    """Operators, interface and constants are those that were written."""
    found = graphs.facts(source / "model.onnx")
    assert found.opsets == {"ai.onnx": 17, "ai.onnx.ml": 3}
    assert found.operators == {
        "ai.onnx.ml::LabelEncoder": 1,
        "ai.onnx::Add": 2,
        "ai.onnx::IsNaN": 1,
        "ai.onnx::Mul": 1,
        "ai.onnx::Where": 1,
    }
    assert [(spec.name, spec.datatype, spec.shape) for spec in found.inputs] == [
        ("carrier", "BYTES", (-1,)),
        ("distance", "FP32", (-1,)),
    ]
    assert (found.parameters, found.parameter_bytes) == (3, 12)
    assert found.flops_per_row == 5
    assert found.unestimated == ()


def test_facts_read_back_equal(source: Path) -> None:
    """They travel in the package's record as plain data."""
    found = graphs.facts(source / "model.onnx")
    assert GraphFacts.from_dict(found.to_dict()) == found
    with pytest.raises(ManifestInvalid, match="opsets: expected an object of whole numbers"):
        GraphFacts.from_dict({**found.to_dict(), "opsets": []})


def test_products_are_counted(tmp_path: Path) -> None:
    """Two operations for each multiplication of a matrix product, and one for each element."""
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "b"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"]),
    ]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", ["n", 10])],
        [value("y", ["n", 3])],
        constant("a", 10, 20),
        constant("b", 20, 3),
    )
    found = graphs.facts(path)
    assert found.flops_per_row == 2 * 10 * 20 + 20 + 2 * 20 * 3 + 5 * 3
    assert found.parameters == 10 * 20 + 20 * 3
    assert found.activation_bytes_per_row == 4 * (20 + 20)


def test_convolutions_are_counted(tmp_path: Path) -> None:
    """Every output element costs the kernel."""
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        [value("x", ["n", 3, 8, 8])],
        [value("y", ["n", 5, 6, 6])],
        constant("w", 5, 3, 3, 3),
    )
    assert graphs.facts(path).flops_per_row == 2 * 5 * 6 * 6 * 3 * 3 * 3


def test_a_transposed_product_is_counted(tmp_path: Path) -> None:
    """Gemm with transA multiplies along the other side."""
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Gemm", ["a", "b"], ["y"], transA=1)],
        [value("x", ["n"])],
        [value("y", [10, 3])],
        constant("a", 20, 10),
        constant("b", 20, 3),
    )
    assert graphs.facts(path).flops_per_row == 2 * 10 * 3 * 20


def test_sub_graphs_are_counted_and_named_as_unestimated(tmp_path: Path) -> None:
    """What stands inside If is an operator too, and its cost is said to be unknown."""
    branches = [
        helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [], [value(kind, ["n"])])
        for kind in ("Abs", "Neg")
    ]
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", ["n"]), value("c", [], TensorProto.BOOL)],
        [value("y", ["n"])],
    )
    found = graphs.facts(path)
    assert found.subgraphs == 2
    assert found.operators == {"ai.onnx::Abs": 1, "ai.onnx::If": 1, "ai.onnx::Neg": 1}
    assert found.unestimated == ("ai.onnx::If",)


def test_constants_in_operators_are_counted(tmp_path: Path) -> None:
    """Constants hide in initializers, sparse initializers and attributes."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [1], [2.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [1]),
        [3],
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=constant("c", 3)),
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node(
            "Constant", [], ["t"], value=helper.make_tensor("t", TensorProto.STRING, [1], [b"abc"])
        ),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["n", 3])], [value("y", ["n", 3])])
    found = graphs.facts(path)
    assert found.parameters == 3 + 1 + 1 + 1
    assert found.parameter_bytes == 12 + 4 + 8 + 3


def test_unknown_kinds_of_values_keep_their_name(tmp_path: Path) -> None:
    """A sequence has no datatype of the protocol and is named as it is."""
    sequence = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("SequenceConstruct", ["x"], ["y"])],
        [value("x", ["n"])],
        [sequence],
    )
    found = graphs.facts(path)
    assert found.outputs[0].datatype == "sequence_type"
    assert found.unestimated == ("ai.onnx::SequenceConstruct",)


def test_data_beside_the_graph_is_taken(tmp_path: Path) -> None:
    """One plain file beside the graph may hold constants."""
    (tmp_path / "model.onnx.data").write_bytes(b"\0" * 16)
    path = external(tmp_path / "model.onnx", "model.onnx.data", offset=0, length=16)
    found = graphs.facts(path)
    assert found.external_data == ("model.onnx.data",)
    assert found.parameter_bytes == 16


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "sub/data", ".hidden", "", "a b", "..", "x\0y"]
)
def test_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    """A graph cannot read other files of the machine."""
    path = external(tmp_path / "model.onnx", location)
    with pytest.raises(ManifestInvalid, match="data outside the package's folder"):
        graphs.facts(path)


def as_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def as_folder(path: Path) -> None:
    path.mkdir()


def as_short_file(path: Path) -> None:
    path.write_bytes(b"\0" * 15)


def as_nothing(path: Path) -> None:
    del path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (as_link, "no plain file"),
        (as_folder, "no plain file"),
        (as_nothing, "no plain file"),
        (as_short_file, "cut short"),
    ],
)
def test_data_that_is_no_whole_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    """External data is a plain file of the stated length."""
    make(tmp_path / "data")
    path = external(tmp_path / "model.onnx", "data", offset=0, length=16)
    with pytest.raises(ManifestInvalid, match=words):
        graphs.facts(path)


def test_a_place_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """A negative offset does not read in front of the file."""
    (tmp_path / "data").write_bytes(b"\0" * 16)
    path = external(tmp_path / "model.onnx", "data", offset=-16, length=16)
    with pytest.raises(ManifestInvalid, match="malformed place"):
        graphs.facts(path)


@pytest.mark.parametrize("data", [b"", b"junk", b"\x08\x07", bytes(range(64))])
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    """Garbage is a typed error."""
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ManifestInvalid, match="not an ONNX model"):
        graphs.facts(tmp_path / "m.onnx")


def test_a_link_and_a_missing_file_are_refused(source: Path) -> None:
    """The graph is a plain file."""
    (source / "link.onnx").symlink_to(source / "model.onnx")
    for name in ("link.onnx", "absent.onnx"):
        with pytest.raises(InputError):
            graphs.facts(source / name)


def test_a_graph_the_checker_refuses_is_refused(tmp_path: Path) -> None:
    """An operator without its input is found before anything runs."""
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "nowhere"], ["y"])],
        [value("x", ["n"])],
        [value("y", ["n"])],
    )
    with pytest.raises(ManifestInvalid, match="refused by the ONNX checker"):
        graphs.facts(path)


def test_shapes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """A product of matrices that do not fit is found at build."""
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["n", 4])],
        [value("y", ["n", 2])],
        constant("w", 3, 2),
    )
    with pytest.raises(ManifestInvalid, match="shapes contradict"):
        graphs.facts(path)


def test_a_manifest_that_fits_has_no_mismatches(source: Path) -> None:
    """The tiny manifest describes the tiny graph."""
    found = graphs.facts(source / "model.onnx")
    assert match.mismatches(manifest.load(source / "manifest.json"), found) == []


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([{"name": "carrier", "datatype": "BYTES", "shape": [-1]}], "does not declare it"),
        ([{"name": "other", "datatype": "BYTES", "shape": [-1]}], "has no such tensor"),
        ([{"name": "distance", "datatype": "FP64", "shape": [-1]}], "expected FP32"),
        ([{"name": "distance", "datatype": "FP32", "shape": [-1, 2]}], "expected \\[-1\\]"),
    ],
)
def test_mismatches_are_named(source: Path, inputs: list[dict[str, Any]], words: str) -> None:
    """Missing, undeclared, wrongly typed and wrongly shaped tensors are told apart."""
    found = graphs.facts(source / "model.onnx")
    declared = manifest.from_dict({**packages.manifest(), "inputs": inputs})
    text = "; ".join(f"{where}: {message}" for where, message in match.mismatches(declared, found))
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(text)


def test_a_manifest_may_promise_less_than_the_graph_takes(tmp_path: Path) -> None:
    """A fixed width is declared where the graph takes any, but not the other way round."""
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save(tmp_path / "m.onnx", [node], [value("x", ["n", "k"])], [value("y", ["n", 3])])
    found = graphs.facts(path)
    wide = {"datatype": "FP32", "shape": [-1, 3]}
    declared = manifest.from_dict(
        {
            **packages.manifest(),
            "inputs": [{"name": "x", **wide}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, -1]}],
        }
    )
    assert [where for where, _ in match.mismatches(declared, found)] == ["manifest.json: outputs y"]
