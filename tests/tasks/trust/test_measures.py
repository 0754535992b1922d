"""Importance, leakage, sensitivity and alarms on functions whose answers are known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tasks.sample import Sample
from tasks.trust import alarms, importance, leakage, scores, sensitivity
from tasks.trust.leakage import LeakageLimits

ROWS = 1200


def _sample(seed: int = 1, leak: float = 0.0) -> Sample:
    """Rows whose label follows ``strong`` and ``weak``, and ``leak`` times knows the answer."""
    draw = np.random.default_rng(seed)
    strong, weak, idle = (draw.normal(size=ROWS).astype(np.float32) for _ in range(3))
    group = draw.choice(["a", "b", "c"], ROWS).astype(object)
    label = (2 * strong + weak + draw.normal(0, 2, ROWS) > 0).astype(np.float32)
    leaking = (leak * label + draw.normal(0, 0.3, ROWS)).astype(np.float32)
    inputs = {"strong": strong, "weak": weak, "idle": idle, "group": group, "leaking": leaking}
    return Sample(inputs, label)


def _model(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    return 1 / (1 + np.exp(-(2.0 * inputs["strong"] + inputs["weak"])))


def _hanging(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    return 1 / (1 + np.exp(-(6.0 * inputs["leaking"] + 0.2 * inputs["strong"])))


def _rank(model: importance.Predict, sample: Sample) -> importance.Ranking:
    return importance.rank(model, sample, repeats=2, bootstraps=100, seed=3)


def test_order_follows_the_model() -> None:
    """The input with the larger weight comes first; unused inputs matter nothing and are ties."""
    ranking = _rank(_model, _sample())
    assert [item.name for item in ranking.inputs[:2]] == ["strong", "weak"]
    assert all(item.reliance == 0 for item in ranking.inputs[2:])
    assert ranking.ties == (("group", "idle", "leaking"),)
    assert ranking.tau_median > 0.9


def test_interval_holds_the_estimate() -> None:
    """Each importance lies within its own interval."""
    for item in _rank(_model, _sample()).inputs:
        assert item.low <= item.reliance <= item.high
        assert item.auc_low - 0.02 <= item.auc_drop <= item.auc_high + 0.02


def test_importance_repeats() -> None:
    """The same seed gives the same report."""
    sample = _sample()
    assert _rank(_model, sample).to_dict() == _rank(_model, sample).to_dict()


def test_progress_counts_inputs() -> None:
    """Whoever watches hears of every input."""
    heard: list[tuple[int, int]] = []
    importance.rank(
        _model, _sample(), repeats=1, bootstraps=2, seed=1, progress=lambda *at: heard.append(at)
    )
    assert heard == [(number, 5) for number in range(1, 6)]


def test_leaked_label_is_found() -> None:
    """An input that knows the answer, and on which the model hangs, is named alone."""
    sample = _sample(leak=1.0)
    suspects = leakage.look(sample, _rank(_hanging, sample), LeakageLimits(), seed=3)
    assert [item.name for item in leakage.leaked(suspects)] == ["leaking"]


def test_honest_inputs_are_not_suspected() -> None:
    """A strong but honest input does not count as leaked."""
    sample = _sample()
    suspects = leakage.look(sample, _rank(_model, sample), LeakageLimits(), seed=3)
    assert leakage.leaked(suspects) == []


def test_perfect_input_is_a_leak_even_if_unused() -> None:
    """The label itself among the inputs is refused whatever the model does with it."""
    sample = _sample()
    inputs = {**sample.inputs, "group": np.where(sample.label > 0, "x", "y").astype(object)}
    told = Sample(inputs, sample.label)
    suspects = leakage.look(told, _rank(_model, told), LeakageLimits(), seed=3)
    assert [item.name for item in leakage.leaked(suspects)] == ["group"]


def test_any_shape_of_relation_counts() -> None:
    """A number that tells by its distance from zero is seen; a missing one says nothing."""
    sample = _sample()
    shaped = np.where(sample.label > 0, 3.0, 0.1) * np.sign(sample.inputs["idle"])
    assert leakage.alone(shaped.astype(np.float32), sample.label, 1) > 0.95
    nothing = np.full(ROWS, np.nan, dtype=np.float32)
    assert leakage.alone(nothing, sample.label, 1) == pytest.approx(0.5)


def test_noise_ranks_nothing() -> None:
    """A text with as many values as rows gets no credit for being unique."""
    names = np.array([str(number) for number in range(ROWS)], dtype=object)
    assert leakage.alone(names, _sample().label, 1) == pytest.approx(0.5, abs=0.05)


def test_sensitivity_grows_with_the_slope() -> None:
    """A steep model moves more than a flat one, and by its own slope."""
    sample = _sample()
    flat = sensitivity.measure(_model, sample, radius=0.02, draws=5, seed=1)
    steep = sensitivity.measure(
        lambda inputs: (inputs["strong"] > 0) * 1.0, sample, radius=0.02, draws=5, seed=1
    )
    assert flat.relative < 0.02 < steep.relative
    assert flat.slopes["strong"] > flat.slopes["weak"] > flat.slopes["idle"] == 0


def test_constant_input_has_no_slope() -> None:
    """A number without spread cannot be moved by a part of it."""
    sample = _sample()
    inputs = {**sample.inputs, "idle": np.zeros(ROWS, dtype=np.float32)}
    found = sensitivity.measure(_model, Sample(inputs, sample.label), radius=0.1, draws=1, seed=1)
    assert found.slopes["idle"] == 0


def test_detector_is_quiet_and_sees() -> None:
    """Halves without drift stay within the allowed alarms; a shift is seen in every number."""
    found = alarms.watch(_sample(), splits=20, seed=5)
    assert found.calibrated
    assert found.missed == ()
    assert found.level == pytest.approx(alarms.LEVEL / 4)


def test_missing_numbers_count_as_the_median() -> None:
    """Missing values neither break the detector nor look like drift; all missing is left out."""
    sample = _sample()
    holes = sample.inputs["idle"].copy()
    holes[::3] = np.nan
    empty = np.full(ROWS, np.nan, dtype=np.float32)
    inputs = {"idle": holes, "empty": empty, "group": sample.inputs["group"]}
    found = alarms.watch(Sample(inputs, sample.label), splits=5, seed=5)
    assert found.inputs == ("idle",)
    assert found.calibrated


@given(seed=st.integers(0, 500), shift=st.floats(0, 0.3))
def test_p_value_is_that_of_scipy(seed: int, shift: float) -> None:
    """Our limit law agrees with scipy's within what its small-sample term changes."""
    draw = np.random.default_rng(seed)
    one, other = draw.normal(size=400), draw.normal(shift, 1, 500)
    wanted = scipy.stats.ks_2samp(one, other, method="asymp").pvalue
    assert alarms.p_value(one, other) == pytest.approx(wanted, abs=0.03)


def test_p_value_is_never_zero() -> None:
    """However far apart samples are, chance is never quite excluded."""
    assert 0 < alarms.p_value(np.zeros(1000), np.ones(1000)) < 1e-100
    assert alarms.p_value(np.arange(5.0), np.arange(5.0)) == 1.0


@pytest.mark.parametrize(("trials", "chance"), [(20, 0.05), (200, 0.05), (1, 0.5)])
def test_bound_is_the_binomial_quantile(trials: int, chance: float) -> None:
    """The allowed number of alarms is the 99 % quantile of chance."""
    assert alarms.binomial_bound(trials, chance) == scipy.stats.binom.ppf(0.99, trials, chance)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.integers(0, 1000))
def test_tau_is_that_of_scipy(values: list[int], seed: int) -> None:
    """Our rank agreement is Kendall's tau-b."""
    one = np.array(values, dtype=float)
    other = np.random.default_rng(seed).permutation(one)
    if len(set(values)) > 1:
        wanted = scipy.stats.kendalltau(one, other).statistic
        assert scores.kendall_tau(one, other) == pytest.approx(wanted)
    assert scores.kendall_tau(one[:1], other[:1]) == 1.0


def test_auc_counts_ties_half_and_needs_both_kinds() -> None:
    """Ties are worth half a pair; one kind alone says nothing."""
    label = np.array([0, 0, 1, 1])
    assert scores.roc_auc(label, np.array([0.1, 0.5, 0.5, 0.9])) == 0.875
    assert scores.roc_auc(np.ones(3), np.arange(3.0)) == 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # shap's own imports warn
def test_order_is_that_of_shap() -> None:
    """The independent library ranks the numbers of a smooth model in the same order."""
    import shap

    sample = _sample()
    names = ["strong", "weak", "idle"]
    matrix = np.stack([sample.inputs[name] for name in names], axis=1).astype(float)

    def predict(rows: np.ndarray) -> np.ndarray:
        return _model({name: rows[:, index] for index, name in enumerate(names)})

    explainer = shap.PermutationExplainer(predict, matrix[:100], seed=1)
    found = np.abs(explainer(matrix[:64], silent=True).values).mean(axis=0)
    ours = [item.name for item in _rank(_model, sample).inputs if item.name in names]
    assert [names[index] for index in np.argsort(-found)] == ours
