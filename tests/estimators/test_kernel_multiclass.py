"""Kernels with one against the rest, or all classes together; and the multipliers of ξ ≥ 0."""

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.budget import Budget
from maxmargin.certificates import certify as certify_problem
from maxmargin.kernels import RBF, Laplacian, Polynomial
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, MulticlassProblem, Point, Status
from maxmargin.solve import Settings, solve
from tests.estimators.test_crammer_singer import reference as optimum

FOLDER = os.environ.get("MAXMARGIN_DATA", "")
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    """Every second row of the iris data, with names as labels."""
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0))[::2], NAMES[y[::2]]


def rest(**parameters: Any) -> Any:
    model: Any = mm.SVC(multi_class="ovr", gamma=0.5, C=2.0, tol=1e-8)
    return model.set_params(**parameters)


def certify(*given: Any, **more: Any) -> Any:
    return mm.certify(*given, **more)


# ------------------------------------------------------------------- one against the rest


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_each_plane_is_the_machine_of_its_class(
    kernel: str, fit_intercept: bool, iris: Any
) -> None:
    X, y = iris
    rows = X @ X.T if kernel == "precomputed" else X
    weight = np.tile([1.0, 2.0, 0.5], len(y) // 3)
    model = rest(kernel=kernel, fit_intercept=fit_intercept).fit(rows, y, sample_weight=weight)
    n_support = len(model.support_)
    assert model.dual_coef_.shape == model.support_kind_.shape == (3, n_support)
    assert model.alpha_.shape == model.slack_.shape == model.bound_multiplier_.shape == (3, len(y))
    scores = model.pairwise_scores(rows)
    assert_array_equal(model.decision_function(rows), scores)
    assert_array_equal(model.predict(rows), NAMES[scores.argmax(axis=1)])
    assert len(model.certificate_.parts) == len(model.n_iter_) == 3
    for k, name in enumerate(NAMES):
        binary = clone(model).set_params(multi_class="ovo").fit(rows, y == name, weight)
        assert_allclose(binary.decision_function(rows), scores[:, k], atol=1e-6)
        assert_allclose(binary.certificate_.primal, model.certificate_.parts[k].primal, rtol=1e-8)
        assert_allclose(binary.margin_, model.margin_[k], rtol=1e-6)
        assert_allclose(binary.distance(rows), model.distance(rows)[:, k], atol=1e-6)
        for which in ("alpha_", "slack_", "bound_multiplier_"):
            assert_allclose(getattr(binary, which), getattr(model, which)[k], atol=1e-5)
    assert certify(model, rows, y, sample_weight=weight).holds(1e-8)


def test_the_linear_kernel_is_the_linear_machine(iris: Any) -> None:
    model, linear = rest(kernel="linear").fit(*iris), mm.LinearSVC(C=2.0, tol=1e-8).fit(*iris)
    assert_allclose(model.coef_, linear.coef_, rtol=1e-6)
    assert_allclose(model.intercept_, linear.intercept_, rtol=1e-6)
    assert_allclose(model.bound_multiplier_, linear.bound_multiplier_, atol=1e-6)
    assert_allclose(model.decision_function(iris[0]), linear.decision_function(iris[0]), atol=1e-6)


def test_two_classes_have_one_plane_in_any_scheme(iris: Any) -> None:
    X, y = iris[0][25:], iris[1][25:]
    one, other = (rest(multi_class=scheme).fit(X, y) for scheme in ("ovo", "ovr"))
    assert one.dual_coef_.shape == (1, len(one.support_))
    assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_class_without_weight_is_absent(iris: Any) -> None:
    X, y = iris
    weight = (y != "bee").astype(float)
    model = rest().fit(X, y, sample_weight=weight)
    assert set(model.predict(X)) == {"ant", "cat"}
    assert (model.decision_function(X).argmin(axis=1) == 1).all()
    assert not model.alpha_[1].any()
    assert not model.bound_multiplier_[1].any()
    assert not model.bound_multiplier_[:, weight == 0].any()
    two = rest().fit(X[weight > 0], y[weight > 0])
    assert_allclose(model.pairwise_scores(X)[:, 2], two.decision_function(X), atol=1e-6)
    assert certify(model, X, y, sample_weight=weight).holds(1e-8)
    left_out = mm.model_selection.leave_one_out(model, X, y, sample_weight=weight)
    expected = mm.model_selection.leave_one_out(two, X[weight > 0], y[weight > 0])
    assert left_out.errors == expected.errors


def test_weights_are_repetitions_and_order_does_not_matter(iris: Any) -> None:
    X, y = iris
    rng = np.random.default_rng(0)
    times = rng.integers(0, 3, len(y))
    rows = rng.permutation(np.repeat(np.arange(len(y)), times))
    weighted, repeated = rest().fit(X, y, sample_weight=times), rest().fit(X[rows], y[rows])
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    # Other names, in another order of the alphabet: the same machine.
    renamed = rest().fit(X, np.select([y == "ant", y == "bee"], ["z", "m"], "a"), times)
    assert_allclose(renamed.decision_function(X), weighted.decision_function(X)[:, ::-1], atol=1e-6)


@pytest.mark.parametrize("model", [mm.SVC(kernel="linear"), mm.LinearSVC()], ids=str)
def test_a_scheme_that_was_not_fitted_is_refused_and_starts_anew(model: Any, iris: Any) -> None:
    X, y = iris
    schemes = ("ovo", "ovr", "crammer_singer")
    cold = {scheme: clone(model).set_params(multi_class=scheme).fit(X, y) for scheme in schemes}
    for before in schemes:
        for after in set(schemes) - {before}:
            warm = clone(model).set_params(multi_class=before, warm_start=True).fit(X, y)
            warm.set_params(multi_class=after)
            with pytest.raises(ValueError, match=f"fitted with multi_class='{before}'"):
                mm.certify(warm, X, y)
            reached = warm.fit(X, y).certificate_.primal
            assert_allclose(reached, cold[after].certificate_.primal, rtol=1e-3)
    for scheme in schemes:  # other classes
        warm = clone(model).set_params(multi_class=scheme, warm_start=True).fit(X, y == y[0])
        reached = warm.fit(X, y).certificate_.primal
        assert_allclose(reached, cold[scheme].certificate_.primal, rtol=1e-3)


def test_a_warm_start_needs_few_iterations_and_the_same_scheme(iris: Any) -> None:
    model = rest(warm_start=True).fit(*iris)
    cold, reached = model.n_iter_.sum(), model.certificate_.primal
    assert model.fit(*iris).n_iter_.sum() < cold
    pairs = model.set_params(multi_class="ovo").fit(*iris)
    assert_allclose(
        pairs.certificate_.primal, rest(multi_class="ovo").fit(*iris).certificate_.primal
    )
    assert_allclose(model.set_params(multi_class="ovr").fit(*iris).certificate_.primal, reached)


def test_a_corrupted_model_is_not_certified(iris: Any) -> None:
    model = rest().fit(*iris)
    whole = certify(model, *iris)
    model.intercept_[1] += 0.1
    assert certify(model, *iris).gap > whole.gap + 1e-3
    model.intercept_[1] -= 0.1
    model.dual_coef_ = 1.5 * model.dual_coef_
    assert not certify(model, *iris).holds(1e-3)


def test_pairs_of_classes_are_refused_where_there_are_none(iris: Any) -> None:
    with pytest.raises(ValueError, match="decision_function_shape='ovo' with multi_class='ovr'"):
        rest(decision_function_shape="ovo").fit(*iris)
    with pytest.raises(ValueError, match="multi_class='all'"):
        rest(multi_class="all").fit(*iris)
    X, y = iris[0][:, :2], iris[1]
    flat = rest().fit(X, y)
    with pytest.raises(ValueError, match="multi_class='ovo'"):
        mm.plots.MarginDisplay.from_estimator(flat, X, y, pair=("ant", "bee"))


def test_a_search_shares_the_gram_matrix(iris: Any) -> None:
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    fast = mm.SVCSearchCV(rest(), grid, cv=3).fit(*iris)
    slow = GridSearchCV(rest(), grid, cv=3).fit(*iris)
    assert_array_equal(fast.cv_results_["mean_test_score"], slow.cv_results_["mean_test_score"])


def test_leave_one_out_agrees_with_refits(iris: Any) -> None:
    X, y = iris[0][::2], iris[1][::2]
    model = rest().fit(X, y)
    right = cross_val_score(model, X, y, cv=LeaveOneOut())
    assert mm.model_selection.leave_one_out(model, X, y).errors == (right == 0).sum()


def test_a_path_and_a_report_take_it(iris: Any, tmp_path: Any) -> None:
    path = mm.regularization_path(*iris, rest(tol=1e-6), Cs=[0.1, 2.0])
    model = rest().fit(*iris)
    assert path.certified
    assert_allclose(path.margins[1], model.margin_, rtol=1e-3)
    assert_allclose(path.certificates[1].primal, model.certificate_.primal, rtol=1e-6)
    ends = mm.regularization_path(*iris, rest(tol=1e-4), Cs=2)
    assert ends.certified
    assert ends.hard_C is not None
    assert mm.report(model, iris[0], iris[1], tmp_path / "page.html").exists()


# ------------------------------------------------------------------- all classes together
#
# min ½Σ‖wₖ‖² + Σ C·ξ, where a row's own class is to lead all others by 1 − ξ.


def joint(**parameters: Any) -> Any:
    return rest(multi_class="crammer_singer", **parameters)


def reference(K: Floats, labels: Any, cost: Floats, free: bool) -> float:
    """Return the optimum as Clarabel finds it: variables (W, b, ξ) on a factor of K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    X = vectors[:, kept] * np.sqrt(values[kept])
    n_classes = int(labels.max()) + 1
    intercept = Intercept.FREE if free else Intercept.NONE
    return optimum(MulticlassProblem.linear(X, labels, n_classes, cost, intercept))


def drawn(seed: int) -> tuple[Floats, Any, Floats]:
    """Return rows of overlapping classes, labels and weights."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(12, 45)), int(rng.integers(3, 6))
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.standard_normal((n, 3)) + 1.2 * rng.standard_normal((n_classes, 3))[y]
    return X, y, rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_joint_optimum_is_that_of_an_interior_point_method(
    seed: int, fit_intercept: bool
) -> None:
    X, y, weight = drawn(seed)
    kernel: Any = [RBF(0.5), Polynomial(2, 0.5, 1.0), Laplacian(0.3)][seed % 3]
    C = [0.1, 1.0, 30.0][seed // 3]
    model = joint(kernel=kernel, gamma="scale", C=C, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weight)
    K = kernel.gram(X)
    expected = reference(K, y, C * weight, fit_intercept)
    assert_allclose(model.certificate_.primal, expected, rtol=1e-7)
    assert_allclose(model.certificate_.dual, expected, rtol=1e-7)
    # The objective by its definition, from public attributes.
    scores = model.decision_function(X)
    support, beta = model.support_, model.dual_coef_
    assert_allclose(scores, K[:, support] @ beta.T + model.intercept_, atol=1e-9)
    own = scores[np.arange(len(y)), y]
    xi = (scores + 1 - np.eye(scores.shape[1])[y]).max(axis=1) - own
    penalty = 0.5 * ((beta @ K[np.ix_(support, support)]) * beta).sum()
    assert_allclose(penalty + C * weight @ xi, expected, rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_joint_duals_obey_their_constraints(fit_intercept: bool, iris: Any) -> None:
    X, y = iris
    weight = np.tile([1.0, 2.0, 0.0], len(y) // 3)
    model = joint(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    beta, labels = model.dual_coef_, np.searchsorted(NAMES, y[model.support_])
    assert beta.shape == (3, len(model.support_))
    assert_allclose(beta.sum(axis=0), 0.0, atol=1e-12)
    others = np.arange(3)[:, np.newaxis] != labels
    assert (beta[others] <= 0).all()
    assert (beta[~others] >= 0).all()
    alpha = np.zeros(len(y))
    alpha[model.support_] = beta.max(axis=0)
    assert (alpha <= 2.0 * weight).all()
    assert_allclose(model.bound_multiplier_, 2.0 * weight - alpha)
    if fit_intercept:
        assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12)
        assert_allclose(model.intercept_.sum(), 0.0, atol=1e-12)
    else:
        assert not model.intercept_.any()
    assert model.alpha_.shape == (3, len(y))
    assert model.slack_.shape == model.bound_multiplier_.shape == (len(y),)
    assert model.support_kind_.shape == (len(model.support_),)
    # A class that holds some of a row's mass makes the highest claim on it.
    claims = model.pairwise_scores(X) + (np.arange(3) != np.searchsorted(NAMES, y)[:, np.newaxis])
    costs = 2.0 * weight[:, np.newaxis] * (y[:, np.newaxis] == NAMES)
    full = np.zeros((len(y), 3))
    full[model.support_] = beta.T
    holds = costs - full > 1e-6
    assert (claims.max(axis=1, keepdims=True) - claims)[holds].max() < 1e-6


@pytest.mark.parametrize("kernel", ["linear", "precomputed", "function"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_joint_machine_of_the_linear_kernel_is_linear_svc(
    kernel: str, fit_intercept: bool, iris: Any
) -> None:
    X, y = iris
    kind: Any = (lambda A, B: A @ B.T) if kernel == "function" else kernel
    rows = X @ X.T if kernel == "precomputed" else X
    model = joint(kernel=kind, gamma="scale", fit_intercept=fit_intercept).fit(rows, y)
    linear = mm.LinearSVC(
        C=2.0, tol=1e-8, multi_class="crammer_singer", fit_intercept=fit_intercept
    ).fit(X, y)
    assert_allclose(model.certificate_.primal, linear.certificate_.primal, rtol=1e-8)
    assert_allclose(model.decision_function(rows), linear.decision_function(X), atol=1e-6)
    assert_allclose(model.intercept_, linear.intercept_, atol=1e-6)
    assert_allclose(model.margin_, linear.margin_, rtol=1e-6)
    assert_allclose(model.slack_[model.support_], linear.slack_[model.support_], atol=1e-6)
    assert_array_equal(model.predict(rows), linear.predict(X))
    if kernel == "linear":
        assert_allclose(model.coef_, linear.coef_, atol=1e-6)


def test_two_classes_together_are_the_binary_machine_with_twice_the_cost(iris: Any) -> None:
    X, y = iris[0][25:], iris[1][25:]
    model, binary = joint(C=2.0).fit(X, y), rest(C=4.0).fit(X, y)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert_allclose(model.decision_function(X), binary.decision_function(X), atol=1e-7)
    assert_allclose(model.bound_multiplier_, binary.bound_multiplier_, atol=1e-5)
    # And the joint problem itself has half of its objective.
    labels = np.searchsorted(["bee", "cat"], y).astype(np.int64)
    features = KernelFeatures(Gram(RBF(0.5), X), np.arange(len(y)))
    problem = MulticlassProblem(features, labels, 2, np.full(len(y), 2.0))
    found = solve(problem, Settings(tol=1e-8), Budget(None), Point())
    assert_allclose(2 * found.certificate.primal, binary.certificate_.primal, rtol=1e-7)


def test_joint_weights_are_repetitions_and_order_does_not_matter(iris: Any) -> None:
    X, y = iris
    rng = np.random.default_rng(0)
    times = rng.integers(0, 3, len(y))
    rows = rng.permutation(np.repeat(np.arange(len(y)), times))
    weighted, repeated = joint().fit(X, y, sample_weight=times), joint().fit(X[rows], y[rows])
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)
    renamed = joint().fit(X, np.select([y == "ant", y == "bee"], ["z", "m"], "a"), times)
    assert_allclose(renamed.decision_function(X), weighted.decision_function(X)[:, ::-1], atol=1e-5)


@pytest.mark.parametrize("make", [joint, "linear"], ids=["SVC", "LinearSVC"])
def test_a_class_without_weight_is_absent_from_a_joint_problem(make: Any, iris: Any) -> None:
    X, y = iris
    model = make() if callable(make) else mm.LinearSVC(multi_class="crammer_singer", tol=1e-8)
    four, with_fourth = np.append(y, ["bat"] * 3), np.vstack([X, X[:3] + 0.1])
    weight = np.append(np.ones(len(y)), np.zeros(3))
    three = clone(model).fit(X, y)
    model.fit(with_fourth, four, sample_weight=weight)
    assert list(model.classes_) == ["ant", "bat", "bee", "cat"]
    scores = model.decision_function(X)
    assert_allclose(np.delete(scores, 1, axis=1), three.decision_function(X), atol=1e-6)
    assert (scores.argmin(axis=1) == 1).all()
    assert_array_equal(model.predict(X), three.predict(X))
    assert_allclose(model.margin_, three.margin_, rtol=1e-6)
    assert not model.bound_multiplier_[-3:].any()
    assert certify(model, with_fourth, four, sample_weight=weight).holds(1e-8)


def test_a_corrupted_joint_model_is_not_certified(iris: Any) -> None:
    model = joint().fit(*iris)
    whole = certify(model, *iris)
    assert whole.holds(1e-8)
    for name, factor, more in (
        ("dual_coef_", 1.5, 0.0),
        ("_duals", 0.5, 0.0),
        ("intercept_", 1.0, np.array([0.2, 0.0, -0.2])),
    ):
        forged = copy.deepcopy(model)
        setattr(forged, name, factor * getattr(model, name) + more)
        found = certify(forged, *iris)
        assert not found.holds(1e-3), name
        assert found.primal >= whole.primal - 1e-9
        assert found.dual <= whole.primal * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_duals_prove_more_than_the_optimum(seed: int) -> None:
    """Whatever weights and duals: the bounds lie on either side of the optimum."""
    X, y, weight = drawn(seed)
    features = KernelFeatures(Gram(RBF(0.5), X), np.arange(len(y)))
    K = int(y.max()) + 1
    problem = MulticlassProblem(features, y.astype(np.int64), K, weight, seed % 2 == 0)
    expected = reference(np.asarray(RBF(0.5).gram(X), dtype=np.float64), y, weight, seed % 2 == 0)
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.1, 1.0, 100.0):
        W, beta = size * rng.standard_normal((2, len(y), K))
        wild = certify_problem(problem, Point(W, rng.standard_normal(K), beta))
        assert wild.primal >= expected * (1 - 1e-9)
        assert wild.dual <= expected * (1 + 1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_indefinite_kernels_are_stationary_and_not_certified(
    fit_intercept: bool, iris: Any
) -> None:
    for kernel in ("sigmoid", lambda A, B: -((A[:, None] - B[None]) ** 2).sum(axis=2)):
        model = joint(kernel=kernel, coef0=-1.0, tol=1e-4, fit_intercept=fit_intercept)
        with pytest.warns(UserWarning, match="not certified"):
            model.fit(*iris)
        assert model.status_ is Status.STATIONARY
        assert model.certificate_.max_kkt_violation < 0.05
        assert certify(model, *iris).refuted


def test_a_joint_fit_starts_warm_from_the_rows_that_stayed(iris: Any) -> None:
    X, y = iris
    model = joint(warm_start=True, tol=1e-5).fit(X, y)
    cold = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] <= cold
    model.set_params(C=3.0).fit(X[5:], y[5:])
    expected = joint(C=3.0).fit(X[5:], y[5:])
    assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-4)


@pytest.mark.parametrize("memory", ["auto", 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_joint_fits_do_not_depend_on_memory_or_sparsity(
    dtype: Any, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory, kernel values are computed when they are needed, of many rows in float32."""
    monkeypatch.setattr("maxmargin.problems.gram.SMALL", 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(dtype)
    y = (X @ rng.standard_normal((4, 5)) + 0.3 * rng.standard_normal((300, 5))).argmax(axis=1)
    expected = joint(gamma=0.3).fit(X.astype(np.float64), y)
    for rows in (X, sp.csr_array(X)):
        model = joint(gamma=0.3, memory=memory, tol=1e-7).fit(rows, y)
        assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-6)


def test_the_same_seed_gives_the_same_joint_model(iris: Any) -> None:
    one, other = joint(random_state=3).fit(*iris), joint(random_state=3).fit(*iris)
    assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert_allclose(joint(random_state=4).fit(*iris).intercept_, one.intercept_, atol=1e-5)


def test_readers_take_a_joint_model_or_refuse_it_by_name(iris: Any, tmp_path: Any) -> None:
    X, y = iris
    model = joint().fit(X, y)
    for criterion in ("leave_one_out", "span_estimate", "xi_alpha_bound", "radius_margin"):
        with pytest.raises(ValueError, match="crammer_singer"):
            getattr(mm.model_selection, criterion)(model, X, y)
    grid = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}
    fast, slow = (
        search(joint(tol=1e-6), grid, cv=3).fit(X, y) for search in (mm.SVCSearchCV, GridSearchCV)
    )
    assert_array_equal(fast.cv_results_["mean_test_score"], slow.cv_results_["mean_test_score"])
    path = mm.regularization_path(X, y, joint(tol=1e-6), Cs=[0.1, 2.0])
    assert path.certified
    assert_allclose(path.margins[1], model.margin_, rtol=1e-3)
    assert_allclose(path.slack_sums[1], model.slack_.sum(), rtol=1e-3)
    assert_allclose(path.model(2.0).decision_function(X), model.decision_function(X), atol=1e-3)
    assert mm.report(model, X, y, tmp_path / "page.html").exists()
    flat = joint(tol=1e-4).fit(X[:, :2], y)
    mm.plots.MarginDisplay.from_estimator(flat, X[:, :2], y)
    with pytest.raises(ValueError, match="multi_class='ovo'"):
        mm.plots.MarginDisplay.from_estimator(flat, X[:, :2], y, pair=("ant", "bee"))
    with pytest.raises(ValueError, match="3 classes"):
        mm.geometry.hyperplane(model)


@pytest.mark.skipif(
    not Path(FOLDER, "pendigits.svm.xz").exists(),
    reason="MAXMARGIN_DATA names no folder of .svm.xz files",
)
@pytest.mark.parametrize("name", ["pendigits", pytest.param("usps", marks=pytest.mark.full)])
def test_ten_classes_of_two_thousand_rows_reach_the_default_tol(name: str) -> None:
    found = mm.data.read_labelled(Path(FOLDER, f"{name}.svm.xz"))
    rows = np.random.default_rng(0).permutation(len(found.y))[:2000]
    model = mm.SVC(C=10.0, multi_class="crammer_singer").fit(found.X[rows], found.y[rows])
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.holds(1e-4)
    assert model.score(found.X[-1000:], found.y[-1000:]) > 0.9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scheme", ["ovr", "crammer_singer"])
def test_scikit_learns_checks_hold(scheme: str) -> None:
    found = check_estimator(mm.SVC(multi_class=scheme), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert len(found) > 40


# ------------------------------------------------------------------- multipliers of ξ ≥ 0


HINGES = {
    "pairs": mm.SVC(C=2.0),
    "rest": mm.SVC(C=2.0, multi_class="ovr"),
    "linear kernel": mm.SVC(C=2.0, kernel="linear", class_weight="balanced"),
    "joint": mm.SVC(C=2.0, multi_class="crammer_singer"),
    "LinearSVC": mm.LinearSVC(C=2.0, class_weight={"bee": 3.0}),
    "LinearSVC, pairs": mm.LinearSVC(C=2.0, multi_class="ovo"),
    "LinearSVC, penalized": mm.LinearSVC(C=2.0, intercept="penalized"),
    "LinearSVC, joint": mm.LinearSVC(C=2.0, multi_class="crammer_singer"),
}


@pytest.mark.parametrize("tol", [1e-2, 1e-9])
@pytest.mark.parametrize("name", HINGES)
def test_multipliers_and_slacks_are_complementary(name: str, tol: float, iris: Any) -> None:
    """Σ(C − α)ξ ≤ P − D, as both are sums of terms ≥ 0 of which these are some."""
    X, y = iris
    weight = np.tile([1.0, 0.0, 2.5], len(y) // 3)
    model = clone(HINGES[name]).set_params(tol=tol).fit(X, y, sample_weight=weight)
    left, slack = model.bound_multiplier_, model.slack_
    assert left.shape == slack.shape
    assert (left >= 0).all()
    assert not left[..., weight == 0].any()
    proof = model.certificate_
    assert (left * slack).sum() <= proof.gap + 1e-12 * proof.primal
    # The bounds are the costs.
    factors = getattr(model, "class_weight_", np.array([1.0, 3.0 if name == "LinearSVC" else 1, 1]))
    cost = 2.0 * weight * factors[np.searchsorted(NAMES, y)]
    if slack.ndim == 2:
        takes_part = (model.alpha_ > 0) | (left > 0)
        assert_allclose((model.alpha_ + left)[takes_part], np.tile(cost, (3, 1))[takes_part])
        inside = slack > 1e-3
        assert_allclose(model.alpha_[inside], np.tile(cost, (3, 1))[inside], atol=proof.gap / 1e-3)


def test_rows_outside_a_pair_have_no_multiplier(iris: Any) -> None:
    X, y = iris
    for model in (mm.SVC().fit(X, y), mm.LinearSVC(multi_class="ovo").fit(X, y)):
        for k, pair in enumerate((["ant", "bee"], ["ant", "cat"], ["bee", "cat"])):
            outside = ~np.isin(y, pair)
            assert not model.bound_multiplier_[k, outside].any()
            assert_array_equal(
                model.bound_multiplier_[k, ~outside] + model.alpha_[k, ~outside], 1.0
            )


def test_only_the_hinge_has_multipliers(iris: Any) -> None:
    X, y = iris
    squared = mm.LinearSVC(loss="squared_hinge").fit(X, y)
    assert not hasattr(squared, "bound_multiplier_")
    with pytest.raises(AttributeError, match="hinge loss"):
        squared.bound_multiplier_  # noqa: B018
    hinge = mm.LinearSVC().fit(X, y)
    assert hasattr(hinge, "bound_multiplier_")
    assert not hasattr(hinge.set_params(loss="squared_hinge").fit(X, y), "bound_multiplier_")
    assert not hasattr(mm.LinearSVC().partial_fit(X, y, classes=NAMES), "bound_multiplier_")
    assert not hasattr(mm.NuSVC(nu=0.1).fit(X, y), "bound_multiplier_")
    assert not hasattr(mm.SVR().fit(X, X[:, 0]), "bound_multiplier_")
    with pytest.raises(NotFittedError):
        mm.SVC().bound_multiplier_  # noqa: B018
