"""alibi-detect's environment and its opinion."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.base.errors import InputError, UnavailableError
from contracts.base.progress import silent
from tasks.trust import alarms, environment, opinion, outliers

ROOT = Path(__file__).resolve().parents[3]
ALARMS = {"inputs": ["b", "a"], "p_values": {"a": 0.4, "b": 0.9}}

STAND_IN = """#!{python}
import json, sys
request = json.load(open(sys.argv[3]))
json.dump({answer}, open(request["answer"], "w"))
"""


def _stand_in(folder: Path, answer: str) -> Path:
    """A program that takes the place of the environment's interpreter."""
    path = folder / "python"
    path.write_text(STAND_IN.format(python=sys.executable, answer=answer), encoding="utf-8")
    path.chmod(0o755)
    return path


def _ask(python: Path | None, folder: Path, decision: str = "evaluation") -> dict[str, Any]:
    return opinion.ask(
        python, ["one.npy", "two.npy"], ALARMS, folder=folder, licence_decision=decision,
        level=0.01, progress=silent,
    )  # fmt: skip


def test_requirements_are_pinned() -> None:
    """Every line of the environment is one exact version, without torch and TensorFlow."""
    text = (ROOT / environment.REQUIREMENTS).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    names = {line.partition("==")[0].lower() for line in lines}
    assert "alibi-detect" in names
    assert not names & {"torch", "tensorflow"}


def test_another_pin_is_another_environment(tmp_path: Path) -> None:
    """The folder is named after the pins, so a changed pin is never served by an old folder."""
    path = tmp_path / environment.REQUIREMENTS
    path.parent.mkdir(parents=True)
    path.write_text("a==1\n", encoding="utf-8")
    before = environment.locate(tmp_path, tmp_path)
    path.write_text("a==2\n", encoding="utf-8")
    assert environment.locate(tmp_path, tmp_path) != before
    assert re.fullmatch(r"alibi-[0-9a-f]{12}", before.name)
    assert environment.python_of(before) is None


def test_environment_that_is_there_is_not_built_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second installation starts at once and says where the environment is."""
    folder = environment.locate(ROOT, tmp_path)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    assert environment.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{folder}\n"


def test_build_that_cannot_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a working interpreter there is an error that says so, and no environment."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert environment.main([str(tmp_path)]) == 2
    assert [item.name for item in tmp_path.iterdir() if not item.name.endswith(".lock")] == []


@pytest.mark.slow
def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    """A build that pip refuses is an error with pip's words, and no environment."""
    path = tmp_path / environment.REQUIREMENTS
    path.parent.mkdir(parents=True)
    path.write_text("--no-such-option\n", encoding="utf-8")
    target = tmp_path / "environments"
    with pytest.raises(UnavailableError, match="no-such-option"):
        environment.build(tmp_path, target)
    assert [item.name for item in target.iterdir() if not item.name.endswith(".lock")] == []


def test_missing_requirements_are_an_error(tmp_path: Path) -> None:
    """Without pins there is no environment to speak of."""
    with pytest.raises(InputError):
        environment.locate(tmp_path, tmp_path)


def test_no_licence_decision_means_not_asked(tmp_path: Path) -> None:
    """Without a recorded decision the library does not run, installed or not."""
    found = _ask(_stand_in(tmp_path, "{}"), tmp_path, decision="")
    assert found["status"] == "skipped"
    assert "licence" in found["reason"]


def test_missing_environment_means_not_asked(tmp_path: Path) -> None:
    """Without the environment the reason says how to build it."""
    assert "tasks.trust.environment" in _ask(None, tmp_path)["reason"]


def test_opinions_are_compared_by_name(tmp_path: Path) -> None:
    """Its p-values come in the order of the columns, ours by name; they must be matched."""
    answer = '{"version": "1", "is_drift": False, "level": 0.005, "p_values": [0.91, 0.4]}'
    found = _ask(_stand_in(tmp_path, answer), tmp_path)
    assert found["p_values"] == {"b": 0.91, "a": 0.4}
    assert found["agrees"]
    assert found["largest_gap"] == pytest.approx(0.01)


def test_failure_of_the_other_library_is_a_skip(tmp_path: Path) -> None:
    """When it cannot answer, that is said, and the package is not blamed."""
    answer = '{"error": {"code": "unavailable", "message": "ImportError: no numba"}}'
    found = _ask(_stand_in(tmp_path, answer), tmp_path)
    assert found["status"] == "skipped"
    assert "no numba" in found["reason"]


def test_model_without_numbers_is_not_asked(tmp_path: Path) -> None:
    """There is nothing to test in texts."""
    nothing = {"inputs": [], "p_values": {}}
    found = opinion.ask(
        tmp_path, [], nothing, folder=tmp_path, licence_decision="yes", level=0.1, progress=silent
    )
    assert found["status"] == "skipped"


class _Detector:
    """Stands in for KSDrift, which is not installed here."""

    def __init__(self, reference: np.ndarray, p_val: float, correction: str) -> None:
        assert correction == "bonferroni"
        self.reference, self.level = reference, p_val

    def predict(self, test: np.ndarray, **_: object) -> dict[str, Any]:
        found = [alarms.p_value(a, b) for a, b in zip(self.reference.T, test.T, strict=True)]
        drift = min(found) < self.level
        return {"data": {"is_drift": int(drift), "threshold": self.level, "p_val": found}}


def test_script_answers_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script reads two arrays, asks, and writes plain data."""
    module = types.ModuleType("alibi_detect.cd")
    module.KSDrift = _Detector  # type: ignore[attr-defined] # a module made up here
    monkeypatch.setitem(sys.modules, "alibi_detect.cd", module)
    monkeypatch.setitem(sys.modules, "alibi_detect", types.ModuleType("alibi_detect"))
    monkeypatch.setattr(outliers.importlib.metadata, "version", lambda name: f"{name} 0")
    found = _run_script(tmp_path, shift=1.0)
    assert found["is_drift"] is True
    assert len(found["p_values"]) == 2


def test_script_says_when_the_library_is_missing(tmp_path: Path) -> None:
    """Run in the wrong environment, it answers with an error instead of dying."""
    assert "alibi_detect" in _run_script(tmp_path, shift=0.0)["error"]["message"]


def _run_script(folder: Path, shift: float) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    for name, by in (("one", 0.0), ("two", shift)):
        np.save(folder / f"{name}.npy", draw.normal(by, 1, (100, 2)), allow_pickle=False)
    request = {
        "reference": str(folder / "one.npy"), "test": str(folder / "two.npy"), "level": 0.01,
        "answer": str(folder / "answer.json"),
    }  # fmt: skip
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    outliers.main(str(folder / "request.json"))
    answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    return answer
