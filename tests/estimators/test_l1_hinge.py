"""LinearSVC with the hinge loss and ℓ1 or elastic-net penalties: linear and quadratic programs.

The solver is tested in test_sparse_penalties.py, the certificates in exact arithmetic in
tests/certificates/test_exact_proofs.py. Weights need not be unique with penalty="l1": objectives
are compared.
"""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.problem import Status
from tests.support.sparse_hinge import primal_optimum

INTERCEPTS = ["free", "penalized", "none"]
both_penalties = pytest.mark.parametrize("penalty", ["l1", "elasticnet"])


def drawn(seed: int, n: int = 120, d: int = 10, classes: int = 2) -> tuple[Floats, Any]:
    """Return rows of which two columns matter, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.2
    score = X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.standard_normal(n)
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.searchsorted(edges, score)


def objective(model: Any, X: Any, y: Any, weight: Any, k: int = 0) -> float:
    """Return the objective of a plane of the model; y = ±1."""
    w, b, ratio = model.coef_[k], model.intercept_[k], 1.0
    if model.penalty == "elasticnet":
        ratio = model.l1_ratio
    if model.intercept == "penalized":
        w = np.append(w, b / model.intercept_scaling)
    slack = np.maximum(0, 1 - y * (X @ model.coef_[k] + b))
    penalty = ratio * np.abs(w).sum() + (1 - ratio) / 2 * w @ w
    return float(penalty + model.C * weight @ slack)


# ------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-6, 0.02, 1.0, 1e4])
def test_the_objective_is_that_of_a_linear_program(intercept: str, C: float) -> None:
    for seed in range(3):
        X, y = drawn(seed)
        weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(y))
        signs = np.where(y == 1, 1.0, -1.0)
        options: dict[str, Any] = {"intercept": intercept, "intercept_scaling": 3.0}
        model = mm.LinearSVC(penalty="l1", C=C, tol=1e-9, **options).fit(X, y, weight)
        best = primal_optimum(X, signs, C * weight, intercept, 3.0)
        ours = objective(model, X, signs, weight)
        assert_allclose(ours, best, rtol=1e-8)
        assert_allclose(model.certificate_.primal, ours, rtol=1e-10)
        assert_allclose(model.certificate_.dual, best, rtol=1e-8)


def test_one_against_the_rest_and_one_against_one() -> None:
    X, y = drawn(3, classes=3)
    rest = mm.LinearSVC(penalty="l1", tol=1e-9).fit(X, y)
    pairs = mm.LinearSVC(penalty="l1", tol=1e-9, multi_class="ovo").fit(X, y)
    for k in range(3):
        best = primal_optimum(X, np.where(y == k, 1.0, -1.0), np.ones(len(y)))
        assert_allclose(rest.certificate_.parts[k].primal, best, rtol=1e-8)
    for k, (i, j) in enumerate(combinations(range(3), 2)):
        some = (y == i) | (y == j)
        best = primal_optimum(X[some], np.where(y[some] == i, 1.0, -1.0), np.ones(some.sum()))
        assert_allclose(pairs.certificate_.parts[k].primal, best, rtol=1e-8)
    for model in (rest, pairs):
        assert model.score(X, y) > 0.6
        assert mm.certify(model, X, y).holds(1e-8)  # type: ignore[union-attr]


def test_two_points_are_known_in_closed_form() -> None:
    """min |w| + 2C·max(0, 1 − w): all or nothing at C = 1/2."""
    X, y = [[-1.0], [1.0]], [0, 1]
    wide, none = (mm.LinearSVC(penalty="l1", C=C, tol=1e-12).fit(X, y) for C in (0.6, 0.4))
    assert_allclose(wide.coef_, [[1.0]], rtol=1e-10)
    assert_allclose(wide.certificate_.primal, 1.0, rtol=1e-12)
    assert not none.coef_.any()
    assert_allclose(none.certificate_.primal, 0.8, rtol=1e-12)


def test_separable_rows_have_a_largest_margin_by_columns() -> None:
    """With a large C no row has slack, and ‖w‖₁ is least: 1/‖w‖₁ is the margin by max|x|."""
    X, y = drawn(5, 60)
    X[:, 2] += 4.0 * np.where(y == 1, 1.0, -1.0)
    signs = np.where(y == 1, 1.0, -1.0)
    for C in (1e2, 1e6):
        model = mm.LinearSVC(penalty="l1", C=C, tol=1e-7).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        assert (signs * model.decision_function(X) > 1 - 1e-6).all()
        assert_allclose(
            np.abs(model.coef_).sum(), primal_optimum(X, signs, np.full(60, C)), rtol=1e-6
        )


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_the_ends_of_the_elastic_net(ratio: float) -> None:
    X, y = drawn(6)
    net = mm.LinearSVC(penalty="elasticnet", l1_ratio=ratio, tol=1e-10).fit(X, y)
    end = mm.LinearSVC(penalty="l1" if ratio else "l2", tol=1e-10).fit(X, y)
    assert_allclose(net.certificate_.primal, end.certificate_.primal, rtol=1e-9)
    tiny = mm.LinearSVC(penalty="elasticnet", l1_ratio=1e-6, tol=1e-10).fit(X, y)
    if ratio == 0:
        assert_allclose(tiny.coef_, end.coef_, atol=1e-3)


# ------------------------------------------------------------------- the same answer


@both_penalties
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_weight_is_a_number_of_repetitions(penalty: str, intercept: str, loss: str) -> None:
    X, y = drawn(7)
    times = np.random.default_rng(7).integers(0, 4, len(y))
    model = mm.LinearSVC(penalty, loss, C=0.3, intercept=intercept, tol=1e-10)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-9)
    assert not weighted.alpha_[times == 0].any()
    balanced = clone(model).set_params(class_weight={0: 2.0}).fit(X, y)
    by_hand = clone(model).fit(X, y, sample_weight=np.where(y == 0, 2.0, 1.0))
    assert_array_equal(balanced.coef_, by_hand.coef_)


@both_penalties
def test_columns_of_zeros_and_copies_of_columns(penalty: str) -> None:
    X, y = drawn(9)
    model = mm.LinearSVC(penalty=penalty, C=0.5, tol=1e-9)
    plain = clone(model).fit(X, y)
    zeros = clone(model).fit(np.hstack([np.zeros((len(y), 2)), X]), y)
    assert not zeros.coef_[:, :2].any()
    assert_allclose(zeros.certificate_.primal, plain.certificate_.primal, rtol=1e-8)
    copied = clone(model).fit(np.hstack([X, X]), y)
    if penalty == "l1":  # a copy is of no use; with ½‖w‖² two columns share what one had
        assert_allclose(copied.certificate_.primal, plain.certificate_.primal, rtol=1e-8)
    else:
        assert copied.certificate_.primal < plain.certificate_.primal


@both_penalties
def test_a_warm_start_is_soon_there(penalty: str) -> None:
    X, y = drawn(10)
    model = mm.LinearSVC(penalty=penalty, warm_start=True, tol=1e-6).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= max(2, first // 2)
    model.set_params(C=2.0).fit(X, y)
    fresh = mm.LinearSVC(penalty=penalty, C=2.0, tol=1e-6).fit(X, y)
    assert_allclose(model.certificate_.primal, fresh.certificate_.primal, rtol=1e-5)


# ------------------------------------------------------------------- what is claimed


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_duals_are_feasible_as_they_are_stored(intercept: str, C: float) -> None:
    """0 ≤ α ≤ C and |Σβx| ≤ 1 (of a constant feature too) hold exactly, not up to rounding."""
    X, y = drawn(11, 60, 5)
    model = mm.LinearSVC(penalty="l1", C=C, intercept=intercept, intercept_scaling=3.0).fit(X, y)
    assert ((model.alpha_ >= 0) & (model.alpha_ <= C)).all()
    beta = [Fraction(value) for value in (np.where(y == 1, 1, -1) * model.alpha_).tolist()]
    columns = [[Fraction(value) for value in column] for column in X.T.tolist()]
    if intercept == "penalized":
        columns.append([Fraction(3)] * len(y))
    for column in columns:
        total = sum((b * x for b, x in zip(beta, column, strict=True)), Fraction(0))
        assert abs(total) <= 1
    if intercept == "free":
        assert abs(float(sum(beta, Fraction(0)))) <= 1e-12 * model.alpha_.sum()
    assert_allclose(float(sum(map(abs, beta), Fraction(0))), model.certificate_.dual, rtol=1e-9)


@both_penalties
def test_searches_and_paths_take_it(penalty: str) -> None:
    X, y = drawn(14)
    search = mm.SVCSearchCV(mm.LinearSVC(penalty=penalty), {"C": [0.01, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.6
    path = mm.regularization_path(X, y, mm.LinearSVC(penalty=penalty), Cs=[0.01, 0.1, 1.0])
    for C, certificate in zip([0.01, 0.1, 1.0], path.certificates, strict=True):
        fresh = mm.LinearSVC(penalty=penalty, C=C).fit(X, y)
        assert certificate.holds(1e-4)
        assert_allclose(certificate.primal, fresh.certificate_.primal, rtol=2e-4)


# ------------------------------------------------------------------- size


@pytest.mark.full
@both_penalties
def test_twenty_thousand_rows_of_two_hundred_columns(penalty: str) -> None:
    rng = np.random.default_rng(15)
    X = rng.standard_normal((20_000, 200))
    y = X[:, :20] @ rng.standard_normal(20) + 1.5 * rng.standard_normal(20_000) > 0
    for C in (0.01, 1.0, 100.0):
        model = mm.LinearSVC(penalty=penalty, C=C, tol=1e-6).fit(X, y)
        assert model.status_ is Status.OPTIMAL
