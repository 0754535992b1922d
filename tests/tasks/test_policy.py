"""A target's policy is read strictly, and every problem in it is named at once."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError
from tasks import policy


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    path = Path(__file__).resolve().parents[2] / "infra/policies/local.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_local_policy_demands_what_the_demo_shows(root: Path) -> None:
    """The shipped local policy asks L1, a measured CPU, one builder signature, no approval."""
    local = policy.load(root / "infra/policies", "local")
    assert (local.level, local.approvals.required, local.canary.share) == ("L1", 0, 0.2)
    cpu = local.demand("cpu-x86-64")
    assert cpu is not None
    assert (cpu.evidence, cpu.required) == ("measured", True)
    assert local.demand("a100") is None
    assert local.signatures.roles == ("builder",)
    assert local.licences.decision("alibi-detect", "BUSL-1.1", "evaluation") is not None
    assert local.licences.decision("alibi-detect", "BUSL-1.1", "run-time") is None


def test_digest_follows_the_content_not_the_layout(plain: dict[str, Any]) -> None:
    """Two spellings of one policy have one digest; any other content has another."""
    again = json.loads(json.dumps(plain, sort_keys=True, indent=7))
    assert policy.parse(plain).digest == policy.parse(again).digest
    again["canary"]["share"] = 0.25
    assert policy.parse(plain).digest != policy.parse(again).digest


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("level", "L4", "level: expected one of L1, L2, L3, got 'L4'"),
        ("target", " ", "target: is empty"),
        ("format_version", 1, "format_version: expected 0"),
        ("canary.share", 0.9, "canary.share: expected more than 0 and at most 0.5"),
        ("canary.share", True, "canary.share: expected a number"),
        ("canary.power", float("nan"), "canary.power: expected a number"),
        ("canary.detectable_errors", 0.0001, "must be larger than baseline_errors"),
        ("signatures.roles", ["janitor"], "signatures.roles: expected some of builder"),
        ("signatures.threshold", 2, "signatures.threshold: expected a whole number from 1 to 1"),
        ("approvals.required", -1, "approvals.required"),
        ("devices.0.evidence", "hoped", "devices[0].evidence: expected one of measured"),
        ("devices.1.device", "cpu-x86-64", "devices: a device is named twice"),
        ("licences.allowed", [1], "licences.allowed: expected category names"),
        ("licences.decisions.0.decided", "soon", "decisions[0].decided: expected a date"),
        ("licences.decisions.0", [], "decisions[0]: expected an object"),
        ("approvals", {}, "approvals: missing not_the_builder, required"),
        ("surprise", 1, "unknown surprise"),
    ],
)  # fmt: skip
def test_every_field_is_checked(plain: dict[str, Any], path: str, value: Any, said: str) -> None:
    """A wrong value is refused with the name of its field."""
    spoiled = _with(plain, path, value)
    with pytest.raises(InputError) as caught:
        policy.parse(spoiled, where="local.json")
    assert said in str(caught.value)
    assert caught.value.location == "local.json"


def test_all_problems_are_named_at_once(plain: dict[str, Any]) -> None:
    """Three mistakes in three parts come in one message."""
    spoiled = _with(_with(plain, "canary.share", 2), "approvals.required", 99)
    spoiled = _with(spoiled, "devices.0.required", "yes")
    with pytest.raises(InputError) as caught:
        policy.parse(spoiled)
    assert all(name in str(caught.value) for name in ("canary", "approvals", "devices[0].required"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_anything_else_is_refused_as_input(value: Any) -> None:
    """Whatever a policy file holds, the only error is InputError."""
    with pytest.raises(InputError):
        policy.parse(value)


def test_a_policy_is_found_by_its_target(tmp_path: Path, plain: dict[str, Any]) -> None:
    """An unknown target names the known ones; a file under a wrong name is refused."""
    (tmp_path / "local.json").write_text(json.dumps(plain), encoding="utf-8")
    (tmp_path / "other.json").write_text(json.dumps(plain), encoding="utf-8")
    assert policy.load(tmp_path, "local").target == "local"
    with pytest.raises(InputError, match="one of local, other"):
        policy.load(tmp_path, "moon")
    with pytest.raises(InputError, match="another target"):
        policy.load(tmp_path, "other")
    with pytest.raises(InputError, match="no policy"):
        policy.load(tmp_path, "../tmp/local")


def _with(plain: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    spoiled = copy.deepcopy(plain)
    *parents, name = path.split(".")
    place: Any = spoiled
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[int(name) if name.isdigit() else name] = value
    return spoiled
