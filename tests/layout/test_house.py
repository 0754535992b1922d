"""The shape of the house: names, sizes, places, and what importing it costs."""

from __future__ import annotations

import ast
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOMS = ["contracts", "model_packages", "tasks", "flows"]
TOP_LEVEL = {
    "flows", "tasks", "model_packages", "contracts", "infra", "tests", "prefect.yaml", "README.md",
    "pyproject.toml", "requirements.lock", "Makefile", ".ci", "LICENSE", ".gitignore", ".github",
}  # fmt: skip


def _tracked(root: Path) -> list[Path]:
    """Return what git holds or would hold."""
    done = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [root / line for line in done.stdout.splitlines() if (root / line).is_file()]


def _sources(root: Path) -> list[Path]:
    return sorted(path for room in ROOMS for path in (root / room).rglob("*.py"))


def test_top_level_is_fixed(root: Path) -> None:
    """Nothing appears at the top level that the house does not know."""
    found = {path.relative_to(root).parts[0] for path in _tracked(root)}
    assert found - TOP_LEVEL == set()


def test_files_stay_small(root: Path) -> None:
    """No file passes 400 lines, and half of them stay within 150."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _sources(root)}
    assert {str(path): n for path, n in lengths.items() if n > 400} == {}
    assert statistics.median(lengths.values()) <= 150


def test_every_exception_to_a_rule_says_why(root: Path) -> None:
    """A noqa or type: ignore carries words after it."""
    bare = re.compile(
        r"#\s*(noqa(?!:\s*[A-Z0-9, ]+\s+-\s+\w)|type:\s*ignore(?!\[[^]]+\]\s+#\s*\w))"
    )
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in _sources(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if bare.search(line)
    ]
    assert found == []


def test_published_folders_hold_nothing_importable(root: Path) -> None:
    """Owners' folders are data: no package, and no code but the two scripts of a model."""
    for published in (root / "contracts/published", root / "model_packages/published"):
        scripts = {path.name for path in published.rglob("*.py")}
        assert scripts <= {"train.py", "health_check.py"}
    assert not list((root / "contracts/published").rglob("*.py"))


def test_names_resolve_to_this_checkout(root: Path) -> None:
    """Another distribution's `contracts` or `tasks` never shadows ours."""
    files = ", ".join(f"{name}.__file__" for name in ROOMS)
    program = f"import {', '.join(ROOMS)}; print(*[{files}], sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert all(Path(line).is_relative_to(root) for line in done.stdout.splitlines())


def test_failpoint_names_are_literal_and_unique(root: Path) -> None:
    """Every failpoint has a name of its own that a test can find in the source."""
    names: list[str] = []
    for path in _sources(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "failpoint.hit":
                assert isinstance(node.args[0], ast.Constant), path
                names.append(node.args[0].value)
    assert names
    assert len(names) == len(set(names))


def test_importing_flows_loads_no_heavy_library(root: Path) -> None:
    """A worker that imports a flow pays for no library that only a stage needs."""
    flows = ["nightly", "train", "gate", "release", "deploy", "rollback", "publish_contract"]
    program = (
        f"import sys, json, {', '.join(f'flows.{flow}' for flow in flows)}; heavy = ["
        "'torch', 'shap', 'captum', 'great_expectations', 'mlflow', 'onnxruntime',"
        "'alibi_detect', 'onnx', 'duckdb', 'matplotlib', 'scipy', 'pyarrow'];"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_no_file_names_a_registry_host(root: Path) -> None:
    """No file holds the address of a package or image registry."""
    hosts = re.compile(
        r"(pypi\.org|pythonhosted|docker\.io|ghcr\.io|quay\.io|gcr\.io|npmjs\.|deb\.debian)"
    )
    found = [
        str(path.relative_to(root))
        for path in _tracked(root)
        if path.name != Path(__file__).name
        and hosts.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert found == []
