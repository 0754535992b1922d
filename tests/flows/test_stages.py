"""What each wave of the gate is called with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from contracts.base.errors import ManifestInvalid
from contracts.base.report import Report
from flows import sources, stages
from flows.context import Context
from flows.judgement import GATE
from flows.stages import Calls
from flows.waves import Call, Outcome
from tests.fakes import calls, packages, world


@pytest.fixture
def bound(here: Context, tmp_path: Path) -> Calls:
    source = sources.resolve(here, "tiny", str(packages.write_source(tmp_path / "source")))
    return Calls(here, source, here.policy())


def parts(call: Call) -> tuple[str, tuple[object, ...]]:
    """Return the stage that a call runs, and with what besides the workspace."""
    assert isinstance(call, partial)
    return call.func.name, call.args[1:]  # type: ignore[attr-defined] # a Stage


def test_stages_are_named_as_they_are_called(bound: Calls) -> None:
    """Each wave's names are the gate's, and every call is the stage of its area."""
    waves = [
        bound.first(),
        bound.trust(calls.REF),
        bound.hardware(calls.REF),
        bound.verify(calls.REF),
        bound.compliance(calls.REF, []),
    ]
    named = {name: parts(call)[0] for wave in waves for name, call in wave.items()}
    assert named == {stage: stage for stage in GATE}


def test_stages_get_the_versions_that_the_manifest_names(bound: Calls) -> None:
    """Contract and bundles are those that the model learned from, never the newest."""
    training = bound.source.training
    versions = (training.definition, training.feature_version, training.holdout_version)
    first = bound.first()
    assert parts(first["validate"])[1] == versions
    assert parts(first["snapshot"])[1] == versions
    assert parts(first["package"])[1] == (bound.source.tree, "tiny")
    assert parts(bound.verify(calls.REF)["verify"])[1][1:3] == (None, training.holdout_version)


def test_a_source_without_versions_is_not_judged(bound: Calls) -> None:
    """Nothing is bound for a source that cannot be traced."""
    untraced = replace(bound.source, manifest=replace(bound.source.manifest, training=None))
    with pytest.raises(ManifestInvalid, match="names no feature version"):
        replace(bound, source=untraced).first()


def test_the_package_is_what_its_stage_built(bound: Calls) -> None:
    """There is one only if the stage passed."""
    built = Outcome("package", Report("package", "s", "pass", facts=calls.facts("package")), None)
    assert bound.package([world.passed("validate"), built]) == calls.REF
    failed = Outcome("package", Report("package", "s", "fail"), None)
    assert bound.package([failed]) is None
    assert bound.package([]) is None


def test_the_second_opinion_needs_a_recorded_decision(bound: Calls) -> None:
    """A library whose licence forbids production runs only where the policy says why it may."""
    decided = parts(bound.trust(calls.REF)["trust"])[1][-1]
    assert decided.licence_decision  # type: ignore[attr-defined] # TrustOptions
    licences = replace(bound.policy.licences, decisions=())
    without = replace(bound, policy=replace(bound.policy, licences=licences))
    options = parts(without.trust(calls.REF)["trust"])[1][-1]
    assert options.licence_decision == ""  # type: ignore[attr-defined] # TrustOptions
    assert stages._DETECTOR == "alibi-detect"
