"""prefect.yaml: exactly the flows that exist, and a worker that runs one of them from anywhere."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import server
from tests.fakes.installation import AS_OF, ROOT, left_alone
from tests.fakes.reference import Reference

FLOWS = {"publish-contract", "nightly", "train", "gate", "release", "deploy", "rollback"}


def _deployments() -> list[dict[str, Any]]:
    return yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]


def _written() -> dict[str, str]:
    """The name of every flow in the source, and where it is."""
    found = {}
    for path in sorted((ROOT / "flows").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "flow":
                    (name,) = [item.value for item in mark.keywords if item.arg == "name"]
                    found[ast.literal_eval(name)] = f"{module}.{node.name}"
    return found


def test_deployments_are_the_flows_that_exist() -> None:
    """Every flow is deployed under its name from its module, and nothing else is."""
    named = {item["name"]: item["entrypoint"] for item in _deployments()}
    assert set(named) == FLOWS
    assert named == _written()


@pytest.mark.parametrize("deployment", _deployments(), ids=lambda item: item["name"])
def test_parameters_are_described(deployment: Mapping[str, Any]) -> None:
    """Prefect shows what each parameter means; those preset exist, those demanded have no default.

    A deployment without a preset for a demanded parameter cannot have a schedule.
    """
    module, _, name = deployment["entrypoint"].rpartition(".")
    schema = getattr(importlib.import_module(module), name).parameters
    for parameter, about in schema.properties.items():
        assert about.get("description", "").endswith("."), parameter
    assert set(deployment["parameters"]) <= set(schema.properties)
    if deployment.get("schedules"):
        assert set(schema.required or ()) <= set(deployment["parameters"])
    assert deployment["description"]
    assert deployment["tags"]
    assert deployment["work_pool"]["name"] == "caisson"


@pytest.mark.slow
@pytest.mark.xdist_group("installation")
def test_a_worker_elsewhere_runs_nightly(tmp_path: Path, undisturbed: Reference) -> None:
    """All deployments register, and a worker started in another folder completes a nightly run."""
    installation = undisturbed.copied(tmp_path)
    before = len(installation.ledger.records("nightly"))
    elsewhere = tmp_path / "élsewhere"
    elsewhere.mkdir()
    with left_alone(installation), server.ensure(installation.workspace) as running:
        variables = installation.environment(
            **running.variables, PREFECT_HOME=str(tmp_path / "prefect"), HOME=str(tmp_path)
        )
        _prefect(variables, ROOT, "work-pool", "create", "caisson", "--type", "process")
        said = _prefect(variables, ROOT, "--no-prompt", "deploy", "--all")
        assert all(f"{name}/{name}" in said for name in FLOWS), said
        with _worker(variables, elsewhere):
            run = ("deployment", "run", "nightly/nightly", "--param", f"as_of={AS_OF}", "--watch")
            _prefect(variables, elsewhere, *run)
    records = installation.ledger.records("nightly")
    assert len(records) == before + 1
    assert records[-1].body["verdict"] == "pass"
    assert list(elsewhere.iterdir()) == []


@contextlib.contextmanager
def _worker(variables: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Have a process worker for the time of a block."""
    arguments = ("worker", "start", "--pool", "caisson", "--type", "process")
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def _prefect(variables: Mapping[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=folder,
        env={**variables, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
