"""SVM beside Gaussian process: one kernel, two ways to its parameters."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.metrics import accuracy_score, r2_score

import maxmargin as mm
from maxmargin.kernels import (
    RBF,
    Columns,
    Constant,
    FromSklearn,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    to_sklearn,
)
from maxmargin.model_selection import compare_gp
from maxmargin.model_selection.compare_gp import covariance, with_theta

NAMES = ["GP", "SVM, the GP's kernel", "SVM, kernel by CV"]
KERNELS = [
    RBF(0.5),
    Laplacian(0.4),
    2.0 * RBF(0.5) + Linear(),
    RBF(0.1) * Columns(RBF(2.0), [0]),
    Polynomial(2, 0.5, 1.0) + 3.0,
    (RBF(0.3) + Constant(0.5)) ** 2,
    FromSklearn(Matern(length_scale=2.0, nu=1.5)),
    Intersection(),
    Linear(),
]


def two_classes(n: int = 64) -> tuple[Any, Any]:
    X, y = mm.datasets.circles(n, random_state=0)
    return X + np.random.default_rng(0).normal(scale=0.2, size=X.shape), y


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_parameters_go_to_and_fro(kernel: Any) -> None:
    X = np.random.default_rng(1).uniform(size=(6, 3))
    stated = covariance(kernel)
    back = with_theta(kernel, stated.theta)
    assert type(back) is type(kernel)
    assert_allclose(back.gram(X), kernel.gram(X))
    moved = stated.clone_with_theta(stated.theta + 0.3) if stated.n_dims else stated
    there = with_theta(kernel, stated.theta + 0.3)
    assert_allclose(there.gram(X), moved(X), rtol=1e-10)
    assert_allclose(there.gram(X), to_sklearn(there)(X), rtol=1e-10)


def test_two_classes_are_those_of_scikit_learn() -> None:
    X, y = two_classes()
    found = compare_gp(X[:45], y[:45], RBF(1.0), X_test=X[45:], y_test=y[45:], cv=2)
    process = GaussianProcessClassifier(to_sklearn(RBF(1.0))).fit(X[:45], y[:45])
    assert (found.predictions["GP"] == process.predict(X[45:])).all()
    likelihood = process.log_marginal_likelihood_value_
    assert_allclose(found.log_marginal_likelihood["GP"], likelihood, rtol=1e-6)
    assert found.log_marginal_likelihood["CV"] <= likelihood + 1e-6
    assert isinstance(found.kernel_gp, RBF)
    assert isinstance(found.kernel_cv, RBF)
    for name, model in list(found.models.items())[1:]:
        assert model.certificate_.holds(1e-4)
        assert found.support_count[name] == len(model.support_) <= 45
    assert found.models["SVM, the GP's kernel"].kernel_ == found.kernel_gp
    assert found.models["SVM, kernel by CV"].kernel_ == found.kernel_cv
    same = found.predictions["GP"] == found.predictions["SVM, kernel by CV"]
    assert found.agreement == same.mean()
    for name in NAMES:
        assert found.scores[name] == accuracy_score(y[45:], found.predictions[name])


def test_several_classes_share_one_kernel_at_a_stationary_point() -> None:
    X, y = load_iris(return_X_y=True)
    found = compare_gp(X[::2], y[::2], RBF(0.2), X_test=X[1::2], y_test=y[1::2], cv=2)
    assert found.n_classes == 3
    assert found.scores["SVM, kernel by CV"] > 0.9
    process = found.models["GP"]
    best = np.log(1 / np.sqrt(2 * found.kernel_gp.gamma))  # type: ignore[attr-defined]
    around = [process.log_marginal_likelihood(np.array([best + s])) for s in (-0.2, 0.0, 0.2)]
    assert max(around) == around[1]
    assert_allclose(found.log_marginal_likelihood["GP"], around[1])


def test_regression_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-4, 4, size=(60, 1))
    y = 5 + 3 * np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)
    found = compare_gp(X[:45], y[:45], RBF(1.0), X_test=X[45:], y_test=y[45:], cv=2)
    process = GaussianProcessRegressor(to_sklearn(RBF(1.0)) + WhiteKernel(), normalize_y=True)
    process.fit(X[:45], y[:45])
    assert_allclose(found.predictions["GP"], process.predict(X[45:]), rtol=1e-4)
    assert found.n_classes == 0
    for name in NAMES:
        assert_allclose(found.scores[name], r2_score(y[45:], found.predictions[name]))
        assert found.scores[name] > 0.9
    assert 0.9 < found.agreement <= 1
    whole = compare_gp(X, np.round(10 * y), RBF(1.0), task="regression", cv=2)
    assert whole.n_classes == 0


def test_a_kernel_without_parameters_says_so() -> None:
    X, y = two_classes()
    found = compare_gp(abs(X), y, Intersection(), cv=2)
    assert found.kernel_gp == found.kernel_cv == Intersection()
    assert "nothing but C" in repr(found)


def test_many_rows_are_sampled_and_said_so() -> None:
    X, y = two_classes(200)
    found = compare_gp(X, y, "rbf", max_rows=24, cv=2, random_state=3)
    assert found.n_rows == 24
    assert "sample of 24" in str(found)
    again = compare_gp(X, y, "rbf", max_rows=24, cv=2, random_state=3)
    assert again.kernel_cv == found.kernel_cv
    assert (again.predictions["GP"] == found.predictions["GP"]).all()


def test_labels_of_any_kind_and_what_is_shown() -> None:
    X, y = two_classes()
    names = np.where(y == y[0], "<b>in</b>", "out")
    found = compare_gp(X, names, RBF(), cv=2)
    for name in NAMES:
        assert name in repr(found)
    shown = found._repr_html_()
    assert "SVM, the GP&#x27;s kernel" in shown
    assert shown.count("<tr>") == 4
    told = json.loads(json.dumps(found.to_dict()))
    assert told["scores"] == found.scores
    assert told["kernel_cv"] == repr(found.kernel_cv)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": Precomputed()}, "two rows"),
        ({"kernel": Sigmoid()}, "positive semidefinite"),
        ({"task": "ranking"}, "task='ranking'"),
        ({"test_size": 2.0}, "test_size"),
        ({"cv": 1}, "cv=1"),
        ({"max_rows": 3}, "max_rows=3"),
        ({"X_test": [[0.0, 0.0]]}, "go together"),
        ({"X_test": [[0.0]], "y_test": [1]}, "columns"),
        ({"y": np.ones(30)}, "only one class"),
        ({"y": np.append(np.zeros(29), 1)}, "1 rows"),
        ({"y": np.ones(29)}, "inconsistent"),
        ({"X": np.full((30, 2), np.nan)}, "NaN"),
        ({"X": np.empty((0, 2)), "y": []}, "0 sample"),
        ({"y": None}, "None"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    X, y = two_classes(30)
    with pytest.raises(ValueError, match=words):
        compare_gp(**{"X": X, "y": y, "kernel": RBF(), **change})


def test_sparse_rows_are_refused_with_the_way_out() -> None:
    X, y = two_classes(30)
    with pytest.raises(TypeError, match="toarray"):
        compare_gp(sp.csr_matrix(X), y, RBF())


def test_a_function_that_is_no_covariance_is_refused() -> None:
    X, y = two_classes(30)
    kernel = mm.kernels.FromFunction(lambda a, b: -(a @ b.T))
    with pytest.raises(ValueError, match="check_kernel"):
        compare_gp(X, y - 0.5, kernel, task="regression", cv=2)


def test_of_equal_scores_not_the_smallest_cost_is_taken() -> None:
    """With the smallest one every row of clouds far apart is a support vector."""
    X, y = mm.datasets.separable(60, margin=2.0, random_state=0)
    found = mm.compare_gp(X, y, mm.kernels.RBF(gamma=0.1), cv=3)
    for name, model in found.models.items():
        if name != "GP":
            assert model.C >= 1.0
            assert found.support_count[name] < found.n_rows


def test_the_svms_count_the_search_of_the_process_they_rest_on() -> None:
    X, y = mm.datasets.circles(60, random_state=0)
    seconds = mm.compare_gp(X, y, mm.kernels.RBF(gamma=1.0), cv=3).seconds
    process, *machines = seconds.values()
    assert all(each >= process for each in machines)
