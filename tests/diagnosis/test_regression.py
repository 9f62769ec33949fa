"""Diagnoses of numbers: verdicts on data whose truth is known, and what is recommended."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.metrics import r2_score

import maxmargin as mm
from maxmargin.diagnosis.inputs import is_regression
from maxmargin.diagnosis.significance import compare_errors, explained

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
NOISE = RNG.normal(size=150)
PLANE = X @ np.array([1.0, 2.0, -1.0])
STEPS = 5.0 * ((X[:, 0] > 0.3) ^ (X[:, 1] > 0.1)) + 0.3 * NOISE


@pytest.mark.parametrize(
    ("y", "verdict"),
    [
        (PLANE + NOISE, "linear"),
        (np.sin(2 * X[:, 0]) * 3 + X[:, 1] * X[:, 2] + 0.3 * NOISE, "curved"),
        (STEPS, "not linear"),
        (NOISE, "no signal"),
        (np.exp(2 * NOISE), "no signal"),  # the median is nearer than the mean, which is no signal
        (PLANE + 1e6 * (np.arange(150) % 50 == 7), "linear"),  # squared errors see outliers only
    ],
    ids=["plane", "curve", "steps", "noise", "skewed noise", "outliers"],
)
def test_verdicts_are_true_and_models_fit(y: Any, verdict: str) -> None:
    found = mm.diagnose(X, y)
    assert found.verdict == verdict, str(found)
    model = found.recommend("ladder")
    assert is_regressor(model)
    assert np.isfinite(model.fit(X, y).predict(X)).all()
    assert {offer.rung for offer in found.alternatives} >= {"planes", "kernels"}
    assert "R²" in found._repr_html_()
    assert found.to_dict()["scoring"] == "neg_mean_absolute_error"


def test_the_scale_of_targets_changes_nothing_but_units() -> None:
    y = PLANE + NOISE
    small, large = mm.diagnose(X, y), mm.diagnose(X, 2.0**20 * y + 1e6)
    assert small.verdict == large.verdict
    for one, other in zip(small.alternatives, large.alternatives, strict=True):
        assert other.score == pytest.approx(one.score, abs=0.01)
    C, scaled = (found.recommend().get_params()["C"] for found in (small, large))
    assert scaled == pytest.approx(2.0**20 * C, rel=0.1)


def test_few_rows_are_no_proof_of_no_signal() -> None:
    assert mm.diagnose(X[:12], NOISE[:12]).verdict == "undecided"


def test_the_task_is_told_from_the_labels_or_given() -> None:
    assert [is_regression(None, y) for y in (NOISE, np.arange(150) % 40, list("ab"))] == [
        *(True, False, False)
    ]
    assert mm.diagnose(X[:20], np.arange(20) % 2, task="regression").classes == ()
    with pytest.raises(ValueError, match="hardly classes"):
        mm.diagnose(X, NOISE, task="classification")


def test_equal_rows_are_those_that_the_caller_knows() -> None:
    same, y = np.ones((40, 2)), np.arange(40) % 2
    assert mm.diagnose(same, y).evidence["conflicts"]["rows"] == 40
    assert mm.diagnose(same, y, groups=np.arange(40)).evidence["conflicts"]["rows"] == 0
    assert mm.diagnose(same, NOISE[:40]).verdict in ("no signal", "undecided")


def test_figures_agree_with_scikit_learn_and_chance() -> None:
    off = NOISE - 0.1
    r2, low, high = explained(off, PLANE - PLANE.mean())
    assert r2 == pytest.approx(r2_score(PLANE, PLANE - off))
    assert low < r2 < high < 1
    assert compare_errors(("a", np.ones(9)), ("b", np.ones(9))).p_value == 1.0
