"""Scikit-learn's contract, for every public estimator."""

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from tests.support.estimators import ESTIMATORS, SEARCHES, TRANSFORMERS, expected_failures

EVERY = ESTIMATORS + SEARCHES + TRANSFORMERS


@pytest.mark.all_cases
@parametrize_with_checks(EVERY, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.filterwarnings("ignore:X holds .* entries at repeated positions")
def test_common_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_public_estimator_is_listed() -> None:
    public = {
        name
        for name in mm.__all__
        if inspect.isclass(getattr(mm, name)) and issubclass(getattr(mm, name), BaseEstimator)
    }
    assert public == {type(estimator).__name__ for estimator in EVERY}


def test_weight_equivalence_cannot_hold_for_order_dependent_learners() -> None:
    """Two orders of the same three rows give two different perceptrons.

    So does any two-fold repetition of them, in one order or the other: weight 2 would have to
    equal both.
    """
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 1])
    for learner in (mm.Perceptron, mm.AveragedPerceptron, mm.VotedPerceptron):
        one = learner(shuffle=False, stop="one_pass").fit(X, y)
        two = learner(shuffle=False, stop="one_pass").fit(X[::-1], y[::-1])
        assert not np.array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)
def test_clone_pickle_and_documented_parameters(estimator: Any) -> None:
    X, y = mm.datasets.separable(60, margin=0.2, random_state=0)  # for hard margins too
    fitted = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    method = "predict" if hasattr(fitted, "predict") else "transform"
    assert_array_equal(getattr(again, method)(X), getattr(fitted, method)(X))
    if is_classifier(fitted):
        assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    documentation = inspect.getdoc(type(estimator)) or ""
    for name in estimator.get_params(deep=False):
        assert f"\n{name} : " in documentation, name
    for name in vars(fitted):
        if name.endswith("_") and not name.startswith(("_", "n_features", "feature_names")):
            assert name in documentation, name
