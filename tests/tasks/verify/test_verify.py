"""Verification of a real package: a changed weight is found, a good one passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.base.errors import InputError
from contracts.objects import content
from contracts.objects.interface import ObjectMissing
from tasks.demo import models
from tasks.verify.options import VerifyOptions
from tasks.verify.verify import verify
from tests.fakes import trained as training

pytestmark = pytest.mark.xdist_group("trained")

OPTIONS = VerifyOptions(rows=256, load_s=0.2, arrivals_per_s=100)


def test_good_package_passes() -> None:
    """What was trained is what is shipped; the report carries distances, limits and latency."""
    made = training.trained()
    report = verify(made.workspace, made.ref, made.reference, made.versions.holdout, OPTIONS)
    assert report.verdict == "pass"
    (output,) = report.facts["equivalence"]
    assert output["output"] == "probability"
    assert output["maximum"]["found"] <= output["maximum"]["limit"] < 1e-5
    assert report.measurements["load"]["requests"] == 20
    assert list(made.workspace.tmp.iterdir()) == []


def test_changed_weight_is_found() -> None:
    """One weight changed after training fails, by its distance and its golden answers."""
    made = training.trained()
    ref = training.build(made.workspace, models.changed_weight(made.workspace, made.tree))
    options = replace(OPTIONS, load_s=0)
    report = verify(made.workspace, ref, made.reference, made.versions.holdout, options)
    assert report.verdict == "fail"
    assert {finding.rule for finding in report.findings} >= {"verify.not-equivalent"}
    assert report.measurements["load"] is None


def test_package_without_reference_says_so() -> None:
    """Nothing to compare with is no failure, but never silent; a slow answer is a failure."""
    made = training.trained()
    options = replace(OPTIONS, latency_limit_ms=1e-6)
    report = verify(made.workspace, made.ref, None, made.versions.holdout, options)
    rules = [finding.rule for finding in report.findings]
    assert rules == ["verify.load-latency", "verify.reference-missing"]
    assert "skipped" in report.facts["equivalence"]


@pytest.mark.slow
def test_damaged_reference_is_an_error_not_a_verdict() -> None:
    """A reference that cannot be read is named; the package is not blamed for it."""
    made = training.trained()
    other = content.put_bytes(made.workspace.objects, b"no program")
    with pytest.raises(InputError, match="reference model"):
        verify(made.workspace, made.ref, other, made.versions.holdout, OPTIONS)


def test_missing_bundle_is_an_error() -> None:
    """Without rows nothing can be asked."""
    made = training.trained()
    with pytest.raises(ObjectMissing):
        verify(made.workspace, made.ref, None, "20130101-000000000000", OPTIONS)


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"arrivals_per_s": 0.0}, {"load_s": -1.0}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    """Counts and rates are positive."""
    with pytest.raises(InputError):
        replace(OPTIONS, **wrong)
