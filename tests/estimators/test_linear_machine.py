"""LinearSVC and LinearSVR: the certificate holds, and every attribute means what it says."""

import os
import re
import signal
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.problem import Progress, Status
from tests.support.linear_reference import (
    CLASSIFIERS,
    INTERCEPTS,
    LOSSES,
    REGRESSORS,
    asked,
    duals,
    estimator,
    plane,
)

SOLVERS = {"newton": 1e-6, "dual_cd": 1e-6, "subgradient": 3e-2}


def rows(n: int = 60, d: int = 4, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    """Return X, overlapping classes, targets, and weights that are whole numbers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    scores = (X - X.mean(axis=0)) @ rng.standard_normal(d)
    y = np.where(scores + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    target = scores + 0.5 * rng.standard_normal(n) + 3
    return X, y, target, rng.integers(1, 4, n).astype(float)


def answers(loss: str, y: Floats, target: Floats) -> Floats:
    return y if loss in CLASSIFIERS else target


def quietly(model: Any, *data: Any, **weights: Any) -> Any:
    """Fit, and let it say that it did not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **weights)


def own_gap(model: Any, X: Any, y: Any, weight: Any = None) -> float:
    """Return the gap of a model computed here, from its public attributes."""
    machine = asked(model, X, y, weight)
    return machine.relative_gap(*plane(model), duals(model, len(machine.y)))


# ------------------------------------------------------------------- the certificate


def forms(X: Floats, folder: Path) -> dict[str, Any]:
    """Return the same rows (but for rounding to float32) in every form they may come in."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    mapped = np.memmap(folder / "rows", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    names = [f"column {j}" for j in range(X.shape[1])]
    return {
        "dense": X,
        "fortran": np.asfortranarray(X),
        "csr": sp.csr_matrix(X),
        "csc": sp.csc_array(X),
        "float32": X.astype(np.float32),
        "csr float32": sp.csr_array(X.astype(np.float32)),
        "int64 indices": wide,
        "read-only": frozen,
        "memmap": np.memmap(folder / "rows", dtype=np.float64, mode="r", shape=X.shape),
        "pandas": pandas.DataFrame(X, columns=names),
        "polars": polars.DataFrame(X, schema=names),
        "list": X.tolist(),
    }


FORMS = (
    "dense", "fortran", "csr", "csc", "float32", "csr float32", "int64 indices", "read-only",
    "memmap", "pandas", "polars", "list",
)  # fmt: skip


COMPILED_APART = ("dense", "csr", "float32", "csr float32", "int64 indices")


@pytest.mark.parametrize(
    ("solver", "form"),
    [
        (solver, form)
        for solver in SOLVERS
        for form in (COMPILED_APART if solver == "subgradient" else FORMS)
    ],
)
def test_closes_the_gap(solver: str, form: str, tmp_path: Path) -> None:
    X, y, target, weight = rows(n=40)
    X[np.abs(X) < 0.3] = 0.0
    given, tol = forms(X, tmp_path)[form], SOLVERS[solver]
    for loss in LOSSES:
        t = answers(loss, y, target)
        for k, intercept in enumerate(INTERCEPTS):
            w = weight if (LOSSES.index(loss) + FORMS.index(form) + k) % 2 else None
            model = estimator(loss, solver=solver, tol=tol, intercept=intercept)
            model.fit(given, t, sample_weight=w)  # warnings are errors here
            assert model.status_ is Status.OPTIMAL
            assert model.solver_.startswith(solver)
            assert model.certificate_.holds(tol)
            proof = mm.certify(model, given, t, w)
            assert isinstance(proof, mm.Certificate)
            assert proof.holds(tol)
            assert own_gap(model, given, t, w) <= tol * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_the_form_of_rows_does_not_matter(loss: str, tmp_path: Path) -> None:
    X, y, target, weight = rows()
    X = np.round(8 * X) / 8  # exact in float32
    t = answers(loss, y, target)
    fits = {
        form: estimator(loss, tol=1e-12).fit(given, t, sample_weight=weight)
        for form, given in forms(X, tmp_path).items()
    }
    for form, model in fits.items():
        assert_allclose(model.coef_, fits["dense"].coef_, rtol=1e-9, atol=1e-12, err_msg=form)
        assert_allclose(model.intercept_, fits["dense"].intercept_, rtol=1e-9, err_msg=form)
    assert list(fits["pandas"].feature_names_in_) == [f"column {j}" for j in range(4)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimal_is_said_exactly_if_the_certificate_holds(loss: str, solver: str) -> None:
    """However early a fit is ended; and whoever ends without, warns, with the gap in the words."""
    X, y, target, _ = rows(seed=1)
    t, tol = answers(loss, y, target), 0.2 if solver == "subgradient" else 1e-3
    seen = set()
    for max_iter in (1, 2, 3, 4, 5, 7, 10, 14, 20, 300):
        model = estimator(loss, solver=solver, tol=tol, max_iter=max_iter)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, t)
        proof = mm.certify(model, X, t)
        assert isinstance(proof, mm.Certificate)
        assert proof.holds(tol) == (model.status_ is Status.OPTIMAL)
        assert proof.holds(tol) == (own_gap(model, X, t) <= tol)
        assert [w.category for w in caught] == [ConvergenceWarning] * (not proof.holds(tol))
        for warning in caught:
            stated = re.search(r"relative duality gap is ([^,]*),", str(warning.message))
            assert stated
            assert_allclose(float(stated[1]), proof.relative_gap, rtol=1e-2)
            assert str(warning.message) == model.stop_reason_
            assert "max_iter" in model.stop_reason_
        assert model.n_iter_ <= max_iter
        seen.add(model.status_)
    assert seen == {Status.OPTIMAL, Status.MAX_ITER}


@pytest.mark.parametrize("loss", LOSSES)
def test_subgradient_steps_stay_what_they_are(loss: str) -> None:
    """However little they gain, no other method takes over, and the end is told as it was."""
    X, y, target, _ = rows(seed=1)
    model = estimator(loss, solver="subgradient", tol=1e-9, max_iter=250)
    with pytest.warns(
        ConvergenceWarning, match=r"After 250 iterations \(subgradient\): .* max_iter"
    ):
        model.fit(X, answers(loss, y, target))
    assert model.solver_ == "subgradient"
    assert 1e-9 < model.certificate_.relative_gap < 0.5
    assert model.status_ is Status.MAX_ITER


def test_what_is_optimal_on_sparse_rows_far_from_0_is_certified_too() -> None:
    """Few zeros, a large mean: differences of scores are small beside the scores."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 5)) + 1e3
    y = np.where(X[:, 0] + rng.standard_normal(80) > 1e3, 1.0, -1.0)
    model = mm.LinearSVC(tol=1e-6).fit(sp.csr_array(X), y)
    assert own_gap(model, X, y) <= 1e-5


# ------------------------------------------------------------------- the optimality conditions


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_kkt_conditions_of_the_hinge(C: float, intercept: str) -> None:
    for seed in range(5):
        X, y, _, weight = rows(seed=seed)
        model = mm.LinearSVC(C=C, intercept=intercept).fit(X, y, sample_weight=weight)
        alpha, xi, cost = model.alpha_, model.slack_, C * weight
        f = model.decision_function(X)
        assert (alpha >= 0).all()
        assert (alpha <= cost * (1 + 1e-12)).all()
        rounding = 1e-11 * alpha @ np.abs(X).max(axis=1)
        assert_allclose((alpha * y) @ X, model.coef_[0], rtol=1e-9, atol=rounding)
        if intercept == "free":
            assert abs(alpha @ y) <= 1e-9 * alpha.sum()
        elif intercept == "penalized":
            assert_allclose(alpha @ y, model.intercept_[0], atol=1e-9 * (1 + alpha.sum()))
        else:
            assert model.intercept_[0] == 0
        assert_allclose(xi, np.maximum(0, 1 - y * f), atol=1e-12)
        assert_allclose(alpha * (1 - xi - y * f), 0, atol=1e-8 * C)
        assert_allclose((cost - alpha) * xi, 0, atol=1e-8 * C)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_kkt_conditions_of_the_squared_hinge(intercept: str) -> None:
    for seed in range(5):
        X, y, _, weight = rows(seed=seed)
        model = mm.LinearSVC(loss="squared_hinge", C=3.0, intercept=intercept, tol=1e-12)
        model.fit(X, y, sample_weight=weight)
        assert_allclose(model.alpha_, 2 * 3.0 * weight * model.slack_, atol=1e-8)
        assert_allclose((model.alpha_ * y) @ X, model.coef_[0], atol=1e-9)
        if intercept == "free":
            assert abs(model.alpha_ @ y) <= 1e-9 * model.alpha_.sum()


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_kkt_conditions_of_regression(epsilon: float, intercept: str) -> None:
    for seed in range(5):
        X, _, target, weight = rows(seed=seed)
        model = mm.LinearSVR(C=2.0, epsilon=epsilon, intercept=intercept, tol=1e-12)
        model.fit(X, target, sample_weight=weight)
        beta, residual = duals(model, len(X)), target - model.predict(X)
        cost = 2.0 * weight
        assert_allclose(np.abs(beta), model.alpha_)
        assert (model.alpha_ <= cost * (1 + 1e-12)).all()
        assert_allclose(model.slack_, np.maximum(0, np.abs(residual) - epsilon), atol=1e-12)
        assert_allclose(beta @ X, model.coef_, rtol=1e-9, atol=1e-9)
        outside, free = model.slack_ > 1e-7, (beta != 0) & (model.alpha_ < cost * (1 - 1e-9))
        assert_allclose(beta[outside], (cost * np.sign(residual))[outside], rtol=1e-9)
        assert_allclose((np.abs(residual) - epsilon)[free], 0, atol=1e-7)
        assert_array_equal(model.support_kind_ == "outside", (model.slack_ > 1e-5)[model.support_])
        if intercept == "free":
            assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()


def test_three_kinds_of_support_vectors() -> None:
    found = set()
    for seed in range(5):
        X, y, _, weight = rows(seed=seed)
        model = mm.LinearSVC().fit(X, y, sample_weight=weight)
        assert_array_equal(model.support_, np.flatnonzero(model.alpha_))
        xi, alpha, cost = (a[model.support_] for a in (model.slack_, model.alpha_, weight))
        kinds = {"margin": xi <= 1e-5, "inside": (xi > 1e-5) & (xi <= 1), "wrong side": xi > 1}
        for kind, member in kinds.items():
            assert_array_equal(model.support_kind_ == kind, member)
        assert_allclose(alpha[~kinds["margin"]], cost[~kinds["margin"]], rtol=1e-12)
        assert_array_equal(
            (model.predict(X) != y)[model.support_][np.abs(xi - 1) > 1e-9],
            kinds["wrong side"][np.abs(xi - 1) > 1e-9],
        )
        assert_array_equal(model.n_support_, [(y[model.support_] == k).sum() for k in (-1, 1)])
        found |= set(model.support_kind_)
    assert found == {"margin", "inside", "wrong side"}


def test_margin_distance_and_hyperplane() -> None:
    X, y, target, _ = rows()
    model = mm.LinearSVC(tol=1e-12).fit(X, y)
    w, b = plane(model)
    f = X @ w + b
    assert_allclose(model.decision_function(X), f, rtol=1e-12)
    assert_allclose(model.margin_, 1 / np.linalg.norm(w), rtol=1e-15)
    assert_allclose(model.distance(X), f / np.linalg.norm(w), rtol=1e-12)
    # The distance is that to the projection on the plane, whatever the scale of (w, b).
    foot = X - np.outer(model.distance(X), w / np.linalg.norm(w))
    assert_allclose(model.decision_function(foot), 0, atol=1e-12)
    free = model.support_[(model.alpha_ < 1)[model.support_]]
    assert_allclose(np.abs(model.distance(X[free])), model.margin_, rtol=1e-8)
    found = model.hyperplane_
    assert_array_equal(found.predict(X), model.predict(X))
    assert_allclose(found.signed_distance(X), model.distance(X), rtol=1e-12)
    assert_allclose(found.scaled(7.0).signed_distance(X), model.distance(X), rtol=1e-12)
    assert_allclose(mm.geometry.hyperplane(model).decision_function(X), f, rtol=1e-12)
    regression = mm.LinearSVR().fit(X, target)
    assert_allclose(
        regression.distance(X), regression.predict(X) / np.linalg.norm(regression.coef_)
    )


def allowed_intercepts(model: Any, X: Floats, y: Floats, cost: Floats) -> tuple[float, float]:
    """Return the interval of THEORY §4: all b that are optimal with these weights and duals."""
    at = y - X @ model.coef_[0]
    near = 1e-9 * cost
    below, above = model.alpha_ < cost - near, model.alpha_ > near
    lower = ((y > 0) & below) | ((y < 0) & above)
    upper = ((y < 0) & below) | ((y > 0) & above)
    return float(at[lower].max()), float(at[upper].min())


@pytest.mark.parametrize("solver", ["newton", "dual_cd"])
def test_the_middle_one_of_several_intercepts(solver: str) -> None:
    """Two points held apart by w = C(x₊ − x₋) = 0.2: any b in [−1.2, 0.4] is as good."""
    X, y = np.array([[3.0], [1.0]]), np.array([1, -1])
    model = mm.LinearSVC(C=0.1, solver=solver).fit(X, y)
    assert_allclose(model.coef_, [[0.2]], rtol=1e-9)
    assert_allclose(model.intercept_, [-0.4], rtol=1e-9)
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    model = mm.LinearSVC(C=0.1, solver=solver).fit(square, [1, 1, -1, -1])
    assert_allclose(model.intercept_, [0.0], atol=1e-12)
    assert_allclose(model.coef_, [[0.4, 0.0]], atol=1e-12)


@pytest.mark.parametrize("solver", ["newton", "dual_cd"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
def test_the_intercept_is_in_the_middle_of_what_is_allowed(C: float, solver: str) -> None:
    several = 0
    for seed in range(10):
        X, _, _, weight = rows(n=20, seed=seed)
        y = np.where(np.arange(20) % 2, 1.0, -1.0)
        weight[1::2] = weight[::2]  # balanced: then a small C leaves no free support vector
        model = mm.LinearSVC(C=C, solver=solver, tol=1e-12).fit(X, y, sample_weight=weight)
        low, high = allowed_intercepts(model, X, y, C * weight)
        assert low <= high + 1e-8
        assert_allclose(model.intercept_[0], 0.5 * (low + high), atol=1e-8)
        several += high - low > 1e-6
    if C == 1e-4:
        assert several == 10


def test_weights_of_0_are_no_weights() -> None:
    """With no column that tells the classes apart, w = 0 and the majority wins."""
    X = np.zeros((5, 3))
    model = mm.LinearSVC().fit(X, [0, 0, 0, 1, 1])
    assert_array_equal(model.coef_, np.zeros((1, 3)))
    assert model.margin_ == np.inf
    assert_array_equal(model.predict(X), np.zeros(5))
    assert_array_equal(model.distance(X), model.decision_function(X))
    regression = mm.LinearSVR().fit(X, [1.0, 2.0, 3.0, 4.0, 50.0])
    assert_allclose(regression.predict(X), 3.0)
    assert regression.status_ is Status.OPTIMAL


# ------------------------------------------------------------------- several classes


def blobs(K: int = 4, n: int = 80, seed: int = 0) -> tuple[Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    labels[:K] = np.arange(K)
    return rng.standard_normal((n, 3)) + 1.5 * rng.standard_normal((K, 3))[labels], labels


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_shapes_and_prediction(scheme: str, K: int) -> None:
    X, labels = blobs(K)
    new = np.random.default_rng(1).uniform(-5, 5, (300, 3))
    model = mm.LinearSVC(multi_class=scheme).fit(X, labels)
    problems = 1 if K == 2 else K if scheme == "ovr" else K * (K - 1) // 2
    assert model.coef_.shape == (problems, 3)
    assert model.intercept_.shape == (problems,)
    assert model.dual_coef_.shape == (problems, len(model.support_))
    assert model.alpha_.shape == model.slack_.shape == ((80,) if K == 2 else (problems, 80))
    scores = model.decision_function(new)
    assert scores.shape == ((300,) if K == 2 else (300, K))
    assert model.pairwise_scores(new).shape == (300, problems)
    best = (scores > 0).astype(int) if K == 2 else scores.argmax(axis=1)
    assert_array_equal(model.predict(new), model.classes_[best])
    assert len(model.certificate_.parts) == (0 if K == 2 else problems)
    if K > 2:
        assert_allclose(model.certificate_.primal, sum(p.primal for p in model.certificate_.parts))
        assert model.margin_.shape == (problems,)
        assert_allclose(model.margin_, 1 / np.linalg.norm(model.coef_, axis=1))
        with pytest.raises(AttributeError, match="planes"):
            _ = model.hyperplane_
    assert model.distance(new).shape == ((300,) if problems == 1 else (300, problems))
    rebuilt = model.dual_coef_ @ model.support_vectors_
    assert_allclose(rebuilt, model.coef_, rtol=1e-7, atol=1e-8)


def test_one_against_the_rest_is_the_binary_fit() -> None:
    X, labels = blobs(4)
    model = mm.LinearSVC(tol=1e-12).fit(X, labels)
    for k in range(4):
        binary = mm.LinearSVC(tol=1e-12).fit(X, labels == k)
        assert_allclose(model.coef_[k], binary.coef_[0], rtol=1e-8)
        assert_allclose(model.decision_function(X)[:, k], binary.decision_function(X), atol=1e-7)
        assert_allclose(model.slack_[k], binary.slack_, atol=1e-7)


def test_one_against_one_is_the_binary_fit_on_two_classes() -> None:
    X, labels = blobs(4)
    model = mm.LinearSVC(multi_class="ovo", tol=1e-12).fit(X, labels)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    wins = np.zeros((len(X), 4))
    for k, (i, j) in enumerate(pairs):
        taking_part = (labels == i) | (labels == j)
        binary = mm.LinearSVC(tol=1e-12).fit(X[taking_part], labels[taking_part] == i)
        assert_allclose(model.coef_[k], binary.coef_[0], rtol=1e-8)
        assert_allclose(model.intercept_[k], binary.intercept_[0], rtol=1e-8, atol=1e-10)
        assert_allclose(model.slack_[k][taking_part], binary.slack_, atol=1e-7)
        assert not model.alpha_[k][~taking_part].any()
        assert not model.slack_[k][~taking_part].any()
        wins[:, i] += model.pairwise_scores(X)[:, k] > 0
        wins[:, j] += model.pairwise_scores(X)[:, k] <= 0
    # The decision function counts wins; what it adds for ties is less than half a win.
    assert_array_equal(np.round(model.decision_function(X)), wins)


def test_exact_ties() -> None:
    """Of two classes the positive one needs f > 0; of equal scores the first class wins."""
    X, labels = blobs(3)
    at = np.zeros((1, 3))

    def predicted(model: Any, *scores: float) -> Any:
        model.coef_[:], model.intercept_[:] = 0.0, scores
        best = int(model.decision_function(at)[0].argmax())
        assert model.predict(at)[0] == model.classes_[best]
        return model.predict(at)[0]

    rest, pairs = (mm.LinearSVC(multi_class=scheme).fit(X, labels) for scheme in ("ovr", "ovo"))
    assert predicted(rest, 0.0, 0.0, 0.0) == 0
    assert predicted(rest, -1.0, 2.0, 2.0) == 1
    # Pairs are (0, 1), (0, 2), (1, 2), the first of each positive.
    assert predicted(pairs, 0.0, 0.0, 0.0) == 2
    assert predicted(pairs, 1.0, -2.0, 0.5) == 2  # one win each: the sums are −1, −½, 1½
    assert predicted(pairs, 1.0, -1.0, 1.0) == 0  # and here all 0
    binary = mm.LinearSVC().fit([[-1.0], [1.0]], ["a", "b"])
    binary.intercept_[:] = 0.0
    assert binary.predict([[0.0]])[0] == "a"


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("K", [3, 4])
def test_a_class_without_weight_is_kept_and_never_predicted(K: int, scheme: str) -> None:
    X, labels = blobs(K)
    new = np.random.default_rng(1).uniform(-9, 9, (500, 3))
    model = mm.LinearSVC(multi_class=scheme, tol=1e-12)
    model.fit(X, labels, sample_weight=(labels != 2).astype(float))
    assert list(model.classes_) == list(range(K))
    assert model.decision_function(new).shape == (500, K)
    assert np.isfinite(model.decision_function(new)).all()
    assert 2 not in model.predict(new)
    without = clone(model).fit(X[labels != 2], labels[labels != 2])
    assert_array_equal(model.predict(new), without.predict(new))
    assert_array_equal(model.alpha_[:, labels == 2], 0)
    by_class = clone(model).set_params(class_weight={2: 0.0}).fit(X, labels)
    assert_array_equal(by_class.predict(new), model.predict(new))


def test_class_weight_is_a_factor_of_sample_weight() -> None:
    X, labels = blobs(3)
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    for scheme in ("ovr", "ovo"):
        one = mm.LinearSVC(multi_class=scheme, tol=1e-12, class_weight=factors).fit(X, labels)
        two = mm.LinearSVC(multi_class=scheme, tol=1e-12)
        two.fit(X, labels, sample_weight=np.array([2.0, 1.0, 0.5])[labels])
        assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    counts = np.bincount(labels)
    balanced = mm.LinearSVC(class_weight="balanced", tol=1e-12).fit(X, labels)
    by_hand = mm.LinearSVC(tol=1e-12)
    by_hand.fit(X, labels, sample_weight=(len(labels) / (3 * counts))[labels])
    assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-9)


# ------------------------------------------------------------------- stopping and going on


def large(n: int = 100_000, d: int = 20) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("solver", ["newton", "dual_cd"])
@pytest.mark.parametrize("sparse", [False, True])
def test_max_time_ends_soon_and_a_warm_start_goes_on(solver: str, sparse: bool) -> None:
    X, y = large(30_000)
    X = sp.csr_array(X) if sparse else X
    model = mm.LinearSVC(solver=solver, tol=1e-8, max_time=0.02, warm_start=True)
    mm.LinearSVC(solver=solver, max_iter=500).fit(X[:50], y[:50])  # compiled before the clock runs
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert time.perf_counter() - begin < 2.0
    assert model.status_ is Status.MAX_TIME
    proof = mm.certify(model, X, y)
    assert isinstance(proof, mm.Certificate)
    assert np.isfinite(proof.relative_gap)
    assert not proof.holds(1e-8)
    model.set_params(max_time=None).fit(X, y)
    whole = mm.LinearSVC(solver=solver, tol=1e-8).fit(X, y)
    assert_allclose(model.certificate_.primal, whole.certificate_.primal, rtol=2e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_max_time_of_stochastic_steps(loss: str) -> None:
    X, y = large(20_000)
    model = estimator(loss, solver="subgradient", tol=1e-9, max_time=0.3)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert time.perf_counter() - begin < 3.0
    assert model.status_ is Status.MAX_TIME
    assert np.isfinite(model.certificate_.relative_gap)


@pytest.mark.parametrize("solver", ["newton", "dual_cd", "subgradient"])
def test_a_callback_sees_the_gap_shrink_and_may_stop(solver: str) -> None:
    X, y, _, _ = rows()
    seen: list[Progress] = []
    mm.LinearSVC(solver=solver, tol=SOLVERS[solver], callback=seen.append).fit(X, y)
    assert [progress.iteration for progress in seen] == list(range(1, len(seen) + 1))
    gaps = np.array([progress.iterate.relative_gap for progress in seen])
    bounds = np.array([(progress.iterate.primal, progress.iterate.dual) for progress in seen])
    slack = 1e-12 * bounds[0, 0]
    assert (np.diff(bounds[:, 0]) <= slack).all()
    assert (np.diff(bounds[:, 1]) >= -slack).all()
    assert gaps[-1] <= SOLVERS[solver]
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)

    calls: list[int] = []

    def enough(progress: Progress) -> bool:
        calls.append(progress.iteration)
        return progress.iteration == 2

    model = mm.LinearSVC(solver=solver, tol=1e-12, callback=enough).fit(X, y)  # and no warning
    assert calls == [1, 2]
    assert model.status_ is Status.CALLBACK
    assert "callback" in model.stop_reason_
    assert model.predict(X).shape == (60,)
    assert own_gap(model, X, y) > 1e-12


def test_a_callback_ends_all_of_several_problems() -> None:
    X, labels = blobs(4)
    calls: list[int] = []

    def enough(progress: Progress) -> bool:
        calls.append(progress.iteration)
        return len(calls) == 3

    model = mm.LinearSVC(tol=1e-12, callback=enough).fit(X, labels)
    assert model.status_ is Status.CALLBACK
    assert model.coef_.shape == (4, 3)
    assert len(model.certificate_.parts) == 4
    assert len(calls) <= 6  # the others are looked at once


def interrupt(progress: Progress) -> None:
    if progress.iteration == 3:
        raise KeyboardInterrupt


def raise_signal(progress: Progress) -> None:
    if progress.iteration == 3:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("act", [interrupt, raise_signal])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_ctrl_c_keeps_what_was_reached(loss: str, solver: str, act: Any) -> None:
    X, y, target, _ = rows()
    t = answers(loss, y, target)
    model = estimator(loss, solver=solver, tol=1e-10, callback=act, warm_start=True)
    with pytest.raises(KeyboardInterrupt, match="interrupted from the keyboard"):
        model.fit(X, t)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ <= 3
    assert np.isfinite(own_gap(model, X, t))
    assert model.predict(X).shape == (60,)
    assert model.alpha_.shape == model.slack_.shape == (60,)
    model.set_params(callback=None, solver="auto").fit(X, t)
    whole = estimator(loss, tol=1e-10).fit(X, t)
    assert_allclose(model.certificate_.primal, whole.certificate_.primal, rtol=1e-9)


def test_ctrl_c_ends_all_of_several_problems() -> None:
    X, labels = blobs(4)
    model = mm.LinearSVC(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, labels)
    assert model.status_ is Status.INTERRUPTED
    assert model.coef_.shape == (4, 3)
    assert model.predict(X).shape == labels.shape


@pytest.mark.parametrize("solver", ["newton", "dual_cd", "subgradient"])
def test_ctrl_c_before_the_first_iterate(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass over many rows takes a while, and is interrupted like any other."""
    from maxmargin.solvers.row_sums import Passes

    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    X, y, _, _ = rows()
    monkeypatch.setattr(Passes, "scores", pressed)
    with pytest.raises(KeyboardInterrupt):
        mm.LinearSVC(solver=solver).fit(X, y)


def test_an_error_in_a_callback_leaves_it_unfitted() -> None:
    X, y, _, _ = rows()

    def fail(_: Any) -> None:
        raise RuntimeError("from the callback")

    model = mm.LinearSVC().fit(X, y)
    with pytest.raises(RuntimeError, match="from the callback"):
        model.set_params(callback=fail).fit(X, y)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("loss", "C"),
    [(loss, C) for loss in LOSSES for C in (1e-4, 1.0, 100.0)],
)
def test_a_warm_start_at_the_solution_ends_at_once(loss: str, C: float) -> None:
    X, y, target, weight = rows()
    t = answers(loss, y, target)
    model = estimator(loss, C=C, warm_start=True).fit(X, t, sample_weight=weight)
    before = model.certificate_.primal
    model.fit(X, t, sample_weight=weight)
    assert model.n_iter_ <= 2
    assert_allclose(model.certificate_.primal, before, rtol=1e-9)


def test_a_warm_start_survives_other_rows_and_columns() -> None:
    X, y, target, weight = rows()
    for loss in LOSSES:
        t = answers(loss, y, target)
        model = estimator(loss, warm_start=True).fit(X, t)
        for data in ((X[:30], t[:30]), (X, t), (X[:, :2], t), (X, t, weight), (X, t, weight > 1)):
            model.fit(data[0], data[1], sample_weight=data[2] if len(data) > 2 else None)
            cold = estimator(loss).fit(
                data[0], data[1], sample_weight=data[2] if len(data) > 2 else None
            )
            assert model.status_ is Status.OPTIMAL
            assert_allclose(model.certificate_.primal, cold.certificate_.primal, rtol=1e-4)
    for scheme in ("ovr", "ovo"):
        several = mm.LinearSVC(warm_start=True, multi_class=scheme)
        for K in (3, 4, 2, 3):
            several.fit(*blobs(K))
            assert several.status_ is Status.OPTIMAL


def test_a_trace_holds_seconds_and_gaps() -> None:
    X, y, _, _ = rows()
    model = mm.LinearSVC(trace=True, tol=1e-8).fit(X, y)
    seconds, gaps = np.array(model.trace_).T
    assert len(seconds) == model.n_iter_
    assert (np.diff(seconds) >= 0).all()
    assert gaps[-1] <= 1e-8
    several = mm.LinearSVC(trace=True).fit(*blobs(3))
    assert len(several.trace_) == 3


def test_verbose_writes_a_line_an_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    X, y, _, _ = rows()
    model = mm.LinearSVC(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert "relative gap" in lines[-1]
    mm.LinearSVC().fit(X, y)
    assert capsys.readouterr().out == ""


class Recorder:
    """A callback of scikit-learn's kind that notes what it sees, and may ask to stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.began: list[str] = []
        self.ended: list[str] = []
        self.calls: list[str] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.began.append(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.ended.append(context.task_name)
        return self.stop_after is not None and self.ended.count("iteration") >= self.stop_after


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_callbacks_of_scikit_learn(loss: str) -> None:
    pytest.importorskip("sklearn.callback")
    X, y, target, _ = rows()
    t = answers(loss, y, target)
    recorder = Recorder()
    model = estimator(loss).set_callbacks(recorder).fit(X, t)
    assert recorder.calls == ["setup", "teardown"]
    assert recorder.ended.count("iteration") == model.n_iter_
    assert sorted(recorder.began) == sorted(recorder.ended)
    stopper = Recorder(stop_after=2)
    stopped = estimator(loss, tol=1e-12).set_callbacks(stopper).fit(X, t)
    assert stopped.status_ is Status.CALLBACK
    assert stopped.n_iter_ == 2
    assert stopper.calls == ["setup", "teardown"]
    own: list[Progress] = []
    both = Recorder()
    model = estimator(loss, callback=own.append).set_callbacks(both).fit(X, t)
    assert len(own) == both.ended.count("iteration") == model.n_iter_
    model.set_callbacks().set_params(callback=None).fit(X, t)
    assert len(own) == both.ended.count("iteration")


# ------------------------------------------------------------------- threads, memory


def same_bits(one: Any, two: Any) -> None:
    for name in ("coef_", "intercept_", "alpha_", "slack_", "dual_coef_", "support_"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.certificate_ == two.certificate_
    assert one.n_iter_ == two.n_iter_


def shapes(kind: str) -> tuple[Any, Floats]:
    if kind == "tall":
        return large(60_000)
    if kind == "broad":
        return large(8_000, 140)
    rng = np.random.default_rng(3)
    X = sp.random_array((30_000, 2_500), density=0.015, rng=rng, format="csr")
    return X, np.where(X @ rng.standard_normal(2_500) + 0.3 > 0, 1.0, -1.0)


@pytest.mark.parametrize("kind", ["tall", "broad", "sparse"])
def test_threads_do_not_change_a_bit(kind: str) -> None:
    X, y = shapes(kind)
    assert (X.nnz if sp.issparse(X) else X.size) > 1e6
    one, two, usual = (
        quietly(mm.LinearSVC(C=0.01, n_jobs=jobs, max_iter=8), X, y) for jobs in (1, 2, None)
    )
    same_bits(one, two)
    same_bits(one, usual)


def test_fits_at_once_are_fits_one_after_the_other() -> None:
    X, y, target, _ = rows(n=400, d=30)
    tall = large(20_000)

    def fit(k: int) -> Any:
        if k % 4 == 0:
            return mm.LinearSVC().fit(*tall)
        if k % 4 == 1:
            return mm.LinearSVR(C=0.1 + k).fit(X, target)
        solver = "newton" if k % 4 == 2 else "dual_cd"
        return mm.LinearSVC(C=0.1 + k, solver=solver).fit(X, y)

    serial = [fit(k) for k in range(8)]
    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(fit, range(8)))
    for one, two in zip(serial, at_once, strict=True):
        same_bits(one, two)


# ------------------------------------------------------------------- columns of any scale


def certified_or_explained(model: Any, X: Any, y: Any) -> None:
    """Fit; either the gap is proved, or the warning names columns. Nothing else may be warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    proof = mm.certify(model, X, y)
    assert isinstance(proof, mm.Certificate)
    if model.status_ is Status.OPTIMAL:
        assert proof.holds(model.tol)
        assert not caught
    else:
        assert caught
        assert re.search(r"[Cc]olumn \d", model.stop_reason_), model.stop_reason_


SCALES: dict[str, Callable[[Floats], Floats]] = {
    "1e-8 … 1e8": lambda X: X * 10.0 ** np.array([-8, -4, 0, 4, 8]),
    "1e-4 … 1e4": lambda X: X * 10.0 ** np.array([-4, -2, 0, 2, 4]),
    "one huge": lambda X: X * np.array([1, 1, 1, 1, 1e8]),
    "one tiny": lambda X: X * np.array([1, 1, 1, 1, 1e-8]),
    "constant": lambda X: np.where(np.arange(5) == 2, 7.0, X),
    "constant and huge": lambda X: np.where(np.arange(5) == 2, 1e8, X),
    "all zero": lambda X: X * np.array([1, 0, 1, 0, 1]),
    "offset": lambda X: X + np.array([0, 0, 1e6, 0, 0]),
    "all offset": lambda X: X + 1e6,
    "duplicated": lambda X: np.hstack([X, X, X[:, :2]]),
    "all huge": lambda X: X * 1e8,
    "all tiny": lambda X: X * 1e-8,
}


@pytest.mark.parametrize("solver", ["newton", "dual_cd"])
@pytest.mark.parametrize(
    "scale",
    list(SCALES),
)
def test_columns_of_any_scale(scale: str, solver: str) -> None:
    X, y, target, _ = rows(n=40, d=5, seed=5)
    X = SCALES[scale](X)
    for loss in LOSSES:
        for k, intercept in enumerate(INTERCEPTS):
            given = (X, sp.csr_array(X), X.astype(np.float32))[(LOSSES.index(loss) + k) % 3]
            model = estimator(loss, intercept=intercept, solver=solver)
            certified_or_explained(model, given, answers(loss, y, target))


@pytest.mark.parametrize(
    ("loss", "exponent"),
    [(loss, exponent) for loss in LOSSES for exponent in (0, 3, 8)],
)
def test_more_columns_than_rows(loss: str, exponent: int) -> None:
    """Whatever their unit: certified, or an end with a status, but no error."""
    for n, d in ((2, 4), (10, 30), (40, 100)):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n, d)), np.where(np.arange(n) % 2, 1.0, -1.0)
        model = quietly(estimator(loss), X * 10.0**exponent, y)
        assert model.status_ is Status.OPTIMAL or exponent == 8


def test_a_gap_below_0_proves_nothing() -> None:
    """No dual value is above any primal one: where it is, it is by rounding that exceeds tol."""
    X, _, target, _ = rows()
    model = quietly(mm.LinearSVR(loss="squared_epsilon_insensitive"), X, target + 1e12)
    assert model.status_ is not Status.OPTIMAL or abs(model.certificate_.relative_gap) <= 1e-4


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_near_the_end_of_numbers_are_refused_or_solved_in_silence(loss: str) -> None:
    X, y, _, _ = rows()
    refusal = "Column 0 of X reaches"
    try:
        quietly(estimator(loss), X * 1e140, y)
    except ValueError as error:
        refusal = str(error)
    assert re.match(r"Column \d+ of X reaches", refusal)


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "wine", "iris", "diabetes"])
def test_raw_data_sets_need_no_scaling(name: str) -> None:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    model: Any = mm.LinearSVR() if name == "diabetes" else mm.LinearSVC()
    model.fit(X, y)  # a ConvergenceWarning would be an error
    assert model.certificate_.holds(1e-4)


def test_the_sentence_names_columns_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = rows(d=2)
    frame = pandas.DataFrame(X * [1e-6, 1e6], columns=["small", "large"])
    with pytest.warns(ConvergenceWarning, match=r"Column 1 \('large'\) .* column 0 \('small'\)"):
        mm.LinearSVC(max_iter=1).fit(frame, y)


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize("kind", [mm.LinearSVC, mm.LinearSVR])
def test_bad_parameters_are_named_with_what_is_allowed(kind: Any) -> None:
    X, y, _, _ = rows()
    refused: list[tuple[str, Any, type[Exception], str]] = [
        ("C", 0, ValueError, "> 0"),
        ("C", -1.0, ValueError, "> 0"),
        ("C", float("nan"), ValueError, "> 0"),
        ("C", float("inf"), ValueError, "> 0"),
        ("C", np.float64(np.inf), ValueError, "> 0"),
        ("C", "1", TypeError, "number"),
        ("C", None, TypeError, "number"),
        ("C", True, TypeError, "number"),
        ("C", [1.0], TypeError, "number"),
        ("tol", -1e-3, ValueError, ">= 0"),
        ("tol", float("nan"), ValueError, ">= 0"),
        ("tol", "small", TypeError, "number"),
        ("loss", "logistic", ValueError, "choose one of"),
        ("loss", None, ValueError, "choose one of"),
        ("intercept", True, ValueError, "'free', 'penalized', 'none'"),
        ("intercept", "yes", ValueError, "'free', 'penalized', 'none'"),
        ("intercept_scaling", 0.0, ValueError, "> 0"),
        ("solver", "liblinear", ValueError, "'newton'"),
        ("max_iter", 0, ValueError, ">= 1"),
        ("max_iter", 1.5, TypeError, "integer"),
        ("max_time", 0, ValueError, "> 0"),
        ("max_time", "1 s", TypeError, "number"),
        ("warm_start", None, TypeError, "True or False"),
        ("trace", "all", TypeError, "True or False"),
        ("callback", 3, TypeError, "callable"),
        ("verbose", "yes", TypeError, "integer"),
        ("n_jobs", 1.5, TypeError, "integer"),
        ("n_jobs", -2, ValueError, "n_jobs"),
        ("n_jobs", 0, ValueError, "n_jobs"),
        ("random_state", -1, ValueError, "integer >= 0"),
    ]
    if kind is mm.LinearSVC:
        refused += [
            ("C", float("inf"), ValueError, "HardMarginSVC"),
            ("penalty", "l3", ValueError, "'l1'"),
            ("multi_class", "all", ValueError, "'ovo'"),
            ("class_weight", "heavy", ValueError, "'balanced'"),
        ]
    else:
        refused += [
            ("epsilon", -0.1, ValueError, ">= 0"),
            ("epsilon", "0", TypeError, "number"),
            ("epsilon", float("inf"), ValueError, ">= 0"),
        ]
    for name, value, error, words in refused:
        with pytest.raises(error, match=re.escape(words)) as caught:
            kind(**{name: value}).fit(X, y)
        assert f"{name}=" in str(caught.value), (name, value)


def test_regression_is_not_sent_to_a_classifier() -> None:
    X, _, target, _ = rows()
    with pytest.raises(ValueError, match="C=inf") as caught:
        mm.LinearSVR(C=np.inf).fit(X, target)
    assert "HardMarginSVC" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"penalty": "l1", "dual": True},
        {"penalty": "elasticnet", "dual": False},
        {"multi_class": "crammer_singer", "penalty": "l1"},
        {"multi_class": "crammer_singer", "loss": "squared_hinge"},
        {"multi_class": "crammer_singer", "loss": "squared_hinge", "penalty": "l1"},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_told_with_what_does(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"do not go together|is not supported") as caught:
        mm.LinearSVC(**parameters).fit(*blobs(3))
    for name, value in parameters.items():
        if name != "loss":
            assert name in str(caught.value)
            assert repr(value) in str(caught.value)


def test_an_l1_ratio_is_checked_where_it_counts() -> None:
    X, y, _, _ = rows()
    model = mm.LinearSVC(penalty="elasticnet", loss="squared_hinge", l1_ratio=1.5)
    with pytest.raises(ValueError, match=r"l1_ratio=1.5 .* >= 0 and <= 1"):
        model.fit(X, y)


def test_targets_must_be_numbers() -> None:
    X, _, target, _ = rows()
    model = mm.LinearSVR()
    with pytest.raises(ValueError, match="y must hold numbers"):
        model.fit(X, np.array(["a"] * 60))
    with pytest.raises(ValueError, match=r"NaN or infinity \(row 3\)"):
        model.fit(X, np.where(np.arange(60) == 3, np.inf, target))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, target[:-1])
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(X, target * 1j)
    with pytest.raises(ValueError, match="target y is None"):
        model.fit(X, None)
    one = model.fit(X[:1], target[:1])
    assert_allclose(one.predict(X[:1]), target[:1])


@pytest.mark.parametrize("loss", REGRESSORS)
def test_regression_of_constants(loss: str) -> None:
    X, _, _, _ = rows()
    for value in (0.0, 5.0, -1e6):
        model = estimator(loss).fit(X, np.full(60, value))
        assert_allclose(model.predict(X), value, rtol=1e-9)
        assert model.status_ is Status.OPTIMAL
