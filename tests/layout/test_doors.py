"""Heavy libraries are imported only where the house has a door for them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

# Library -> where it may be imported at all, and there only inside functions unless starred.
DOORS = {
    "alibi_detect": ["tasks/trust/outliers.py"],
    "boto3": ["contracts/objects/"],
    "captum": ["tasks/trust/"],
    "cryptography": ["model_packages/oci/keys.py"],
    "duckdb": ["contracts/engine/"],
    "great_expectations": ["tasks/validate/expectations.py"],
    "jinja2": ["tasks/pages/"],
    "matplotlib": ["tasks/pages/plots.py"],
    "mlflow": ["tasks/lineage/store.py", "flows/engine.py"],
    "onnx": ["model_packages/graph/", "model_packages/published/"],
    "onnxruntime": ["model_packages/runtime/backends/", "model_packages/published/"],
    "prefect": ["tasks/engine.py", "flows/"],
    "pyarrow": [
        "contracts/engine/",
        "contracts/sources/",
        "contracts/features/",
        "model_packages/published/",
        "tasks/demo/",
    ],
    "scipy": ["tasks/trust/", "tasks/drift/"],
    "shap": ["tasks/trust/"],
    "torch": ["tasks/verify/reference.py", "model_packages/published/"],
}
ROOMS = ["contracts", "model_packages", "tasks", "flows"]
# Their own process, started on purpose: top-level imports are the point.
SCRIPTS = ("model_packages/published/", "tasks/trust/outliers.py")


def _sources(root: Path) -> list[Path]:
    return sorted(path for room in ROOMS for path in (root / room).rglob("*.py"))


@functools.cache
def _imports(path: Path) -> list[tuple[str, bool]]:
    """Return (top-level name, whether inside a function) of every import."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name.split(".")[0], inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.module:
                found.append((child.module.split(".")[0], inside))
            deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            visit(child, inside or deeper)

    visit(ast.parse(path.read_text(encoding="utf-8")), inside=False)
    return found


@pytest.mark.parametrize("library", sorted(DOORS))
def test_library_enters_only_through_its_door(root: Path, library: str) -> None:
    """A heavy library is imported nowhere but in its door."""
    trespassers = [
        str(path.relative_to(root))
        for path in _sources(root)
        if any(name == library for name, _ in _imports(path))
        and not any(str(path.relative_to(root)).startswith(door) for door in DOORS[library])
    ]
    assert trespassers == []


def test_doors_open_only_when_called(root: Path) -> None:
    """Importing a module of ours imports no heavy library; prefect in flows is the exception."""
    heavy = set(DOORS) - {"prefect"}
    early = [
        f"{path.relative_to(root)}: {name}"
        for path in _sources(root)
        if not str(path.relative_to(root)).startswith(SCRIPTS)
        for name, inside in _imports(path)
        if name in heavy and not inside
    ]
    assert early == []
