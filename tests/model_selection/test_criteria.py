"""Criteria from one fit against what they are about: leave-one-out by brute force."""

from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import maxmargin as mm
from maxmargin.model_selection import leave_one_out, radius_margin, span_estimate, xi_alpha_bound

CRITERIA: tuple[Any, ...] = (xi_alpha_bound, span_estimate, radius_margin, leave_one_out)
TIGHT = 1e-9


def noisy(seed: int, n: int = 36, d: int = 2, shift: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    return X[: n - seed % 2], y[: n - seed % 2]


def ring(seed: int, n: int = 30) -> tuple[Any, Any]:
    """Return a disc inside a ring: separable by a Gaussian kernel, not by a plane."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y > 0, 1.0, 1.6) * rng.uniform(0.6, 1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def brute_force(model: Any, X: Any, y: Any) -> int:
    """Return the leave-one-out errors of fits from scratch."""
    errors = 0
    for t in range(len(y)):
        rest = np.delete(np.arange(len(y)), t)
        refit = clone(model).fit(X[rest], y[rest])
        errors += int(refit.predict(X[[t]])[0] != y[t])
    return errors


MODELS = {
    "hinge, free, linear": mm.SVC(kernel="linear", C=0.05, tol=TIGHT),
    "hinge, free, RBF": mm.SVC(gamma=0.7, C=0.3, tol=TIGHT),
    "hinge, free, by the linear machine": mm.LinearSVC(loss="hinge", C=0.02, tol=TIGHT),
    "hinge, no intercept, linear": mm.SVC(kernel="linear", fit_intercept=False, tol=TIGHT),
    "hinge, no intercept, RBF": mm.SVC(gamma=0.7, C=0.4, fit_intercept=False, tol=TIGHT),
    "hinge, no intercept, odd powers": mm.SVC(
        kernel="poly", gamma=0.3, coef0=0.0, C=0.1, fit_intercept=False, tol=TIGHT
    ),
    "hinge, penalized": mm.LinearSVC(loss="hinge", C=0.05, intercept="penalized", tol=TIGHT),
    "squared hinge, free": mm.LinearSVC(loss="squared_hinge", C=0.02, tol=TIGHT),
    "squared hinge, penalized": mm.LinearSVC(
        loss="squared_hinge", C=0.02, intercept="penalized", intercept_scaling=2.0, tol=TIGHT
    ),
    "squared hinge, none": mm.LinearSVC(loss="squared_hinge", C=0.02, intercept="none", tol=TIGHT),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_xi_alpha_bound_is_one(name: str) -> None:
    model = MODELS[name]
    useful = 0
    for seed in range(4):
        X, y = noisy(seed, n=24, shift=0.5 + 0.4 * (seed % 4))
        fitted = clone(model).fit(X, y)
        bound = xi_alpha_bound(fitted, X, y)
        found = leave_one_out(fitted, X, y)
        assert set(found.rows) <= set(bound.rows), seed
        assert bound.assumes == ""
        useful += bound.errors < len(y)
    assert useful


def test_the_xi_alpha_bound_holds_where_intercepts_are_not_unique() -> None:
    """Small costs put all duals at their bounds: there the formula alone is no bound."""
    broken = 0
    for seed in range(20):
        X, y = noisy(seed, n=14, shift=0.4 + 0.4 * (seed % 5))
        kernel = mm.kernels.RBF(0.5) if seed % 3 else mm.kernels.Linear()
        model = mm.SVC(kernel=kernel, C=10.0 ** (seed % 4 - 3), tol=TIGHT).fit(X, y)
        found, bound = leave_one_out(model, X, y), xi_alpha_bound(model, X, y)
        assert set(found.rows) <= set(bound.rows), seed
        assert set(bound.unsettled) <= set(bound.rows)
        broken += found.errors > bound.errors - len(bound.unsettled)
    assert broken  # so that it was worth proving


def test_unequal_weights_keep_to_the_bound() -> None:
    for seed in range(5):
        X, y = noisy(seed, n=18)
        weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=len(y))
        for kernel in (mm.kernels.Linear(), mm.kernels.RBF(0.5)):
            model = mm.SVC(kernel=kernel, C=0.1 * (1 + seed), tol=TIGHT).fit(X, y, weight)
            found = leave_one_out(model, X, y, weight)
            assert set(found.rows) <= set(xi_alpha_bound(model, X, y, weight).rows)


def test_beyond_many_rows_the_bound_says_what_it_assumes(monkeypatch: Any) -> None:
    monkeypatch.setattr("maxmargin.model_selection.criteria.bounds.MOST_ROWS", 10)
    X, y = noisy(0)
    bound = xi_alpha_bound(mm.SVC().fit(X, y), X, y)
    assert "0 < α < C" in bound.assumes
    assert bound.assumes in repr(bound)


@pytest.mark.parametrize("free", [True, False], ids=["free intercept", "no intercept"])
def test_a_loose_solution_gives_a_looser_bound_but_a_bound(free: bool) -> None:
    X, y = noisy(1, n=50, shift=1.2)
    machine = mm.SVC(gamma=0.3, C=0.3, fit_intercept=free, tol=TIGHT)
    exact = leave_one_out(machine, X, y)
    tight = xi_alpha_bound(clone(machine).fit(X, y), X, y)
    for shrink in (0.999, 0.99, 0.9):
        loose = clone(machine).fit(X, y)
        loose.dual_coef_ = shrink * loose.dual_coef_
        loose._duals = shrink * loose._duals
        bound = xi_alpha_bound(loose, X, y)
        assert set(exact.rows) <= set(bound.rows)
        assert bound.allowance > tight.allowance


def test_hard_margins_keep_to_their_bounds() -> None:
    for seed in range(2):
        X, y = ring(seed)
        model = mm.HardMarginSVC(kernel=mm.kernels.RBF(1.0)).fit(X, y)
        found = leave_one_out(model, X, y)
        assert found.errors == brute_force(model, X, y)
        assert set(found.rows) <= set(xi_alpha_bound(model, X, y).rows)
        ball = radius_margin(model, X, y)
        assert found.errors <= ball.bounds_errors_by * ball.value
        assert found.refits == len(model.support_)


def test_leave_one_out_is_what_libsvm_finds() -> None:
    choices: list[dict[str, Any]] = [
        {"gamma": 0.5},
        {"kernel": "linear", "C": 0.3},
        {"kernel": "poly", "gamma": 0.5},
    ]
    for seed, options in enumerate(choices):
        X, y = noisy(seed, n=50)
        reference = cross_val_predict(sklearn.svm.SVC(**options, tol=1e-10), X, y, cv=LeaveOneOut())
        found = leave_one_out(mm.SVC(**options, tol=TIGHT), X, y)
        assert (found.predictions == reference).all()
        assert found.errors == int((reference != y).sum()) == len(found.rows)
        assert found.rate == found.errors / len(y)
        assert found.refits < len(y)


def test_leave_one_out_fixes_the_kernel_to_the_fitted_one() -> None:
    X, y = noisy(3, n=30)
    model = mm.SVC(gamma="scale", tol=TIGHT).fit(X, y)
    scores = [
        mm.SVC(kernel=model.kernel_, tol=TIGHT)
        .fit(np.delete(X, t, axis=0), np.delete(y, t))
        .decision_function(X[[t]])[0]
        for t in range(len(y))
    ]
    assert_allclose(leave_one_out(model, X, y).scores[:, 0], scores, atol=1e-5)
    K = model.kernel_.gram(X)
    given = leave_one_out(mm.SVC(kernel="precomputed", tol=TIGHT), K, y)
    assert_allclose(given.scores[:, 0], scores, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(gamma=0.5, tol=TIGHT),
        mm.LinearSVC(loss="squared_hinge", tol=TIGHT),
        mm.LinearSVC(multi_class="ovo", tol=TIGHT),
        mm.HardMarginSVC(kernel=mm.kernels.RBF(50.0)),
    ],
    ids=str,
)
def test_leave_one_out_of_several_classes(model: Any) -> None:
    rng = np.random.default_rng(5)
    labels = np.array(["a", "b", "c"])[rng.integers(3, size=40)]
    X = rng.normal(size=(40, 2)) + np.column_stack([labels == "a", labels == "b"])
    found = leave_one_out(model, X, labels)
    assert found.errors == brute_force(model, X, labels)


def test_a_row_of_weight_zero_is_absent_and_weights_count() -> None:
    X, y = noisy(2, n=40)
    weight = np.tile([1.0, 2.0, 0.0, 1.0], 10)
    kept = np.flatnonzero(weight > 0)
    fits: dict[Any, tuple[Any, ...]] = {
        mm.SVC(gamma=0.4, tol=TIGHT): (xi_alpha_bound, span_estimate, leave_one_out),
        mm.LinearSVC(loss="squared_hinge", tol=TIGHT): CRITERIA,
    }
    for model, criteria in fits.items():
        with_zeros = clone(model).fit(X, y, weight)
        without = clone(model).fit(X[kept], y[kept], weight[kept])
        for criterion in criteria:
            found = criterion(with_zeros, X, y, weight)
            wanted = criterion(without, X[kept], y[kept], weight[kept])
            assert found.n_rows == wanted.n_rows == len(kept)
            if criterion is radius_margin:
                assert_allclose(found.bracket, wanted.bracket, rtol=1e-6)
            else:
                assert (found.rows == kept[wanted.rows]).all()


def test_class_weights_stay_as_all_rows_settled_them() -> None:
    X, y = noisy(4, n=40)
    y[::3] = 1
    model = mm.SVC(gamma=0.4, class_weight="balanced", tol=TIGHT).fit(X, y)
    factors = dict(zip(model.classes_, model.class_weight_, strict=True))
    fixed = mm.SVC(gamma=0.4, class_weight=factors, tol=TIGHT)
    assert leave_one_out(model, X, y).errors == brute_force(fixed, X, y)


def test_the_only_row_of_a_class_is_an_error() -> None:
    X = np.array([[0.0], [1.0], [5.0]])
    y = np.array([0, 0, 1])
    model = mm.SVC(kernel="linear", C=1.0).fit(X, y)
    for found in (leave_one_out(model, X, y), xi_alpha_bound(model, X, y)):
        assert 2 in found.rows
    assert np.isnan(leave_one_out(model, X, y).scores[2]).all()
    three = leave_one_out(mm.SVC(kernel="linear"), np.append(X, [[9.0]], axis=0), [0, 0, 1, 2])
    assert {2, 3} <= set(three.rows)


EXACT_SPANS: list[tuple[Any, Any]] = [
    (mm.SVC(gamma=0.5, tol=1e-12), [1e-7, 1 - 1e-7]),
    (mm.SVC(gamma=0.5, fit_intercept=False, tol=1e-12), [1e-7, 1 - 1e-7]),
    *(
        (mm.LinearSVC(loss="squared_hinge", C=0.1, intercept=kind, tol=1e-12), [1e-7])
        for kind in ("free", "none", "penalized")
    ),
]


@pytest.mark.parametrize(("model", "limits"), EXACT_SPANS, ids=lambda each: str(each)[:60])
def test_the_span_is_exact_where_the_sets_of_support_vectors_stay(model: Any, limits: Any) -> None:
    compared = 0
    for seed in range(4):
        X, y = noisy(seed, n=30)
        fitted = clone(model).fit(X, y)
        estimate, kinds = span_estimate(fitted, X, y), np.digitize(fitted.alpha_, limits)
        for t in fitted.support_:
            rest = np.delete(np.arange(len(y)), t)
            refit = clone(model).fit(X[rest], y[rest])
            if (np.digitize(refit.alpha_, limits) == kinds[rest]).all():
                exact = y[t] * refit.decision_function(X[[t]])[0]
                assert_allclose(estimate.margins[t], exact, atol=1e-6)
                compared += 1
    assert compared >= 5


def test_the_span_estimate_is_near_the_truth() -> None:
    apart = []
    for seed in range(6):
        X, y = noisy(seed, n=50)
        model = mm.SVC(gamma=0.5, tol=TIGHT).fit(X, y)
        apart.append(span_estimate(model, X, y).errors - leave_one_out(model, X, y).errors)
    assert np.abs(apart).mean() <= 3


def smallest_ball(K: Any) -> float:
    """Return the squared radius of the smallest ball, by an interior-point method."""
    n = len(K)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    P = sp.csc_matrix(np.triu(2 * K + 1e-13 * np.eye(n)))
    A = sp.csc_matrix(np.vstack([np.ones(n), -np.eye(n)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    solver = clarabel.DefaultSolver(
        P, -np.diag(K).copy(), A, np.append(1.0, np.zeros(n)), cones, settings
    )
    return -float(solver.solve().obj_val)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_radius_is_that_of_the_smallest_ball(C: float) -> None:
    X, y = noisy(7, n=50)
    model = mm.LinearSVC(loss="squared_hinge", C=C, tol=1e-8).fit(X, y)
    found = radius_margin(model, X, y)
    low, high = found.squared_radius
    assert low <= high <= low * (1 + 1e-6)
    assert_allclose(high, smallest_ball(X @ X.T + np.eye(len(y)) / (2 * C)), rtol=1e-5)
    length = model.coef_[0] @ model.coef_[0] + 2 * C * (model.slack_**2).sum()
    assert_allclose(found.squared_length, length, rtol=1e-6)
    assert leave_one_out(model, X, y).errors <= found.bounds_errors_by * found.value


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_the_radius_and_the_margin_bound_the_errors(intercept: str) -> None:
    for seed in range(4):
        X, y = noisy(seed, n=24, shift=2.0)
        model = mm.LinearSVC(loss="squared_hinge", C=0.01, intercept=intercept).fit(X, y)
        ball = radius_margin(model, X, y)
        assert leave_one_out(model, X, y).errors <= ball.bounds_errors_by * ball.value
        assert ball.bracket[0] <= ball.value


def test_the_radius_of_rows_on_a_circle() -> None:
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    X = np.column_stack([3 * np.cos(angle) + 7, 3 * np.sin(angle) - 2])
    y = np.where(X[:, 0] > 7.5, 1, -1)
    model = mm.HardMarginSVC().fit(X, y)
    found = radius_margin(model, X, y)
    assert_allclose(found.squared_radius, 9.0)
    assert_allclose(found.squared_length, 1 / model.margin_**2)
    through_zero = mm.HardMarginSVC(intercept="none").fit(X - 7, np.where(X[:, 0] > 7, 1, -1))
    around = radius_margin(through_zero, X - 7, np.where(X[:, 0] > 7, 1, -1))
    assert_allclose(around.squared_radius, ((X - 7) ** 2).sum(axis=1).max())


def test_sparse_rows_give_the_same() -> None:
    X, y = noisy(8, n=30)
    model = mm.LinearSVC(loss="squared_hinge", intercept="penalized", tol=TIGHT)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_matrix(X), y)
    for criterion in (xi_alpha_bound, span_estimate, leave_one_out):
        found = criterion(sparse, sp.csr_matrix(X), y)
        assert (found.rows == criterion(dense, X, y).rows).all()


@pytest.mark.parametrize("criterion", [xi_alpha_bound, span_estimate, leave_one_out])
def test_crammer_singer_of_two_classes_is_binary_with_twice_the_cost(criterion: Any) -> None:
    X, y = noisy(0)
    joint = mm.LinearSVC(multi_class="crammer_singer", loss="hinge", tol=1e-10).fit(X, y)
    binary = mm.LinearSVC(C=2.0, loss="hinge", tol=1e-10).fit(X, y)
    assert criterion(joint, X, y).rows.tolist() == criterion(binary, X, y).rows.tolist()


def test_they_say_what_they_are() -> None:
    X, y = noisy(0)
    model = mm.LinearSVC(loss="squared_hinge").fit(X, y)
    words = ("at most", "about", "R²‖w‖²", "refits")
    for criterion, word in zip(CRITERIA, words, strict=True):
        assert word in repr(criterion(model, X, y))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_they_refuse(criterion: Any) -> None:
    X, y = noisy(0)
    with pytest.raises(TypeError, match="NuSVC"):
        criterion(mm.NuSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="penalty='l1'"):
        criterion(mm.LinearSVC(penalty="l1").fit(X, y), X, y)
    model = mm.LinearSVC(loss="squared_hinge").fit(X, y)
    for wrong in (X[1:], np.full_like(X, np.nan)):
        with pytest.raises(ValueError, match=r"rows|NaN"):
            criterion(model, wrong, y[: len(wrong)])
    with pytest.raises(ValueError, match="inconsistent"):
        criterion(model, X, y[1:])


def test_what_only_some_refuse() -> None:
    X, y = noisy(0)
    for criterion in CRITERIA[:3]:
        with pytest.raises(NotFittedError):
            criterion(mm.SVC(), X, y)
        three = mm.SVC().fit(X, np.arange(len(y)) % 3)
        with pytest.raises(ValueError, match="two classes"):
            criterion(three, X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="use xi_alpha_bound"):
        radius_margin(mm.SVC().fit(X, y), X, y)
    with pytest.warns(match="indefinite"):
        sigmoid = mm.SVC(kernel="sigmoid", coef0=-3.0, gamma=2.0).fit(X, y)
    with pytest.raises(ValueError, match="no certificate"):
        xi_alpha_bound(sigmoid, X, y)
    found = leave_one_out(sigmoid, X, y)
    assert found.uncertified == found.refits > 0
    assert f"{found.refits} of them not certified" in repr(found)
    joint = mm.LinearSVC(multi_class="crammer_singer", loss="hinge")
    with pytest.raises(ValueError, match="crammer_singer"):
        leave_one_out(joint, X, np.arange(len(y)) % 3)
