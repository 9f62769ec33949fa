"""Kernel machines: those of scikit-learn are the same machines, and what is ours."""

import inspect
import pickle
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.certificates import certify
from maxmargin.problems.problem import Progress, Status
from maxmargin.runtime import clock
from maxmargin.solve import run_solver
from maxmargin.solvers.decomposition import Decomposition
from tests.estimators.test_linear_machine import forms

MACHINES: dict[str, dict[str, Any]] = {
    "SVC": {"C": 2.0},
    "NuSVC": {"nu": 0.3},
    "SVR": {"C": 2.0, "epsilon": 0.2},
    "NuSVR": {"C": 2.0, "nu": 0.4},
    "OneClassSVM": {"nu": 0.2},
    "QuantileSVR": {"C": 2.0, "quantile": 0.3},
}
NAMES = list(MACHINES)
PEERS = [name for name in NAMES if hasattr(sklearn.svm, name)]


def rows(n: int = 80, d: int = 3, classes: int = 2, seed: int = 0) -> tuple[Floats, Any, Floats]:
    """Return rows, labels of classes that overlap, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    target = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    edges = np.quantile(target, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.searchsorted(edges, target), target


def machine(name: str, library: Any = mm, **others: Any) -> Any:
    return getattr(library, name)(**{**MACHINES[name], **others})


def answers(name: str, y: Any, target: Any) -> Any:
    return y if name.endswith("SVC") else target


def certified(model: Any, *data: Any) -> mm.Certificate:
    found = mm.certify(model, *data)
    assert isinstance(found, mm.Certificate)
    return found


def scores(model: Any, X: Any) -> Floats:
    function = "predict" if "SVR" in type(model).__name__ else "decision_function"
    return np.asarray(getattr(model, function)(X))


# ------------------------------------------------------------------- the same machines


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("name", PEERS)
def test_agrees_with_scikit_learn(name: str, kernel: str, classes: int) -> None:
    X, y, target = rows(classes=classes)
    asked: dict[str, Any] = {"kernel": kernel, "gamma": 0.7, "coef0": 1.0}
    theirs = dict(asked)
    if kernel == "laplacian":
        theirs["kernel"] = mm.kernels.Laplacian(0.7).gram
    t = answers(name, y, target)
    model = machine(name, tol=1e-8, **asked).fit(X, t)
    peer = machine(name, sklearn.svm, tol=1e-8, max_iter=10**6, **theirs).fit(X, t)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.holds(1e-8)
    assert_allclose(scores(model, X), scores(peer, X), atol=2e-4 * np.abs(scores(peer, X)).max())


@pytest.mark.parametrize("name", NAMES)
def test_certificates_hold_and_certify_finds_them_again(name: str) -> None:
    X, y, target = rows(classes=3)
    t = answers(name, y, target)
    weight = np.random.default_rng(1).integers(0, 3, len(t)).astype(float)
    for tol in (1e-3, 1e-7):
        model = machine(name, tol=tol).fit(X, t, weight)
        assert model.certificate_.holds(tol)
        again = certified(model, X, t, weight)
        assert again.holds(1.01 * tol)
        assert_allclose(again.primal, model.certificate_.primal, rtol=1e-9)
        model.dual_coef_[0, 0] *= 0.5  # an altered model is found out
        assert certified(model, X, t, weight).gap > 10 * again.gap


@pytest.mark.parametrize("name", NAMES)
def test_certify_needs_the_training_rows(name: str) -> None:
    X, y, target = rows()
    t = answers(name, y, target)
    model = machine(name).fit(X, t)
    with pytest.raises(ValueError, match="needs the training rows, all of them"):
        certified(model, X[:-1], t[:-1])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_the_linear_kernel_is_the_linear_machine(name: str, fit_intercept: bool) -> None:
    X, y, target = rows(classes=3)
    t = answers(name, y, target)
    model = machine(name, kernel="linear", fit_intercept=fit_intercept, tol=1e-9).fit(X, t)
    by_gram = machine(name, kernel=1.0 * mm.kernels.Linear(), fit_intercept=fit_intercept)
    by_gram.set_params(tol=1e-9).fit(X, t)
    assert model.solver_ != by_gram.solver_ == "block_smo"
    assert_allclose(scores(model, X), scores(by_gram, X), atol=1e-4)
    intercept = "free" if fit_intercept else "none"
    if name == "SVR":
        linear = mm.LinearSVR(C=2.0, epsilon=0.2, intercept=intercept, tol=1e-9).fit(X, t)
        assert_allclose(model.coef_[0], linear.coef_, atol=1e-8)
    else:
        linear = mm.LinearSVC(C=2.0, multi_class="ovo", intercept=intercept, tol=1e-9).fit(X, t)
        assert_allclose(model.coef_, linear.coef_, atol=1e-8)
        assert_allclose(model.margin_, linear.margin_, rtol=1e-8)
    assert_allclose(model.intercept_, linear.intercept_, atol=1e-8)
    from_duals = model._coefficients().T @ model.support_vectors_
    assert_allclose(from_duals, model.coef_, atol=1e-6)
    assert fit_intercept or not model.intercept_.any()
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0


# ------------------------------------------------------------------- attributes


@pytest.mark.parametrize(("name", "kernel"), [("SVC", "rbf"), ("SVC", "linear"), ("NuSVC", "rbf")])
def test_attributes_are_laid_out_as_scikit_learns(name: str, kernel: str) -> None:
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no two rows the same
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], np.array(["a", "b", "c"])[y[order]]
    options = {"kernel": kernel, "decision_function_shape": "ovo"}
    model = machine(name, tol=1e-10, **options).fit(X, y)
    peer = machine(name, sklearn.svm, tol=1e-9, **options).fit(X, y)
    assert_array_equal(model.classes_, peer.classes_)
    assert_array_equal(model.class_weight_, peer.class_weight_)
    assert model.shape_fit_ == peer.shape_fit_
    assert model.fit_status_ == 0
    assert model.n_iter_.shape == peer.n_iter_.shape
    big = 1e-3 * np.abs(peer.dual_coef_).max()
    ours, theirs = np.zeros((2, 2, len(y)))
    ours[:, model.support_], theirs[:, peer.support_] = model.dual_coef_, peer.dual_coef_
    assert_allclose(ours, theirs, atol=big)
    labels = y[model.support_]
    assert_array_equal(labels, np.sort(labels))
    assert_array_equal(model.n_support_, [(labels == k).sum() for k in "abc"])
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)
    assert_allclose(scores(model, X), scores(peer, X), atol=1e-3)
    assert hasattr(model, "coef_") == (kernel == "linear")
    if kernel == "rbf":
        assert_allclose(model._gamma, peer._gamma)


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "OneClassSVM"])
def test_attributes_of_one_function(name: str) -> None:
    X, _, target = rows()
    model = machine(name, tol=1e-9).fit(X, target)
    peer = machine(name, sklearn.svm, tol=1e-9).fit(X, target)
    assert_array_equal(model.support_, peer.support_)
    assert_allclose(model.dual_coef_, peer.dual_coef_, atol=1e-4)
    assert_array_equal(model.n_support_, peer.n_support_)
    assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)
    assert type(model.n_iter_) is int
    assert_array_equal(np.flatnonzero(model.alpha_), np.sort(model.support_))


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_margins_slacks_and_kinds(name: str) -> None:
    X, y, _ = rows(classes=3)
    model = machine(name, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    f = model.decision_function(X)
    for k, (i, j) in enumerate(combinations(range(3), 2)):
        part = (y == i) | (y == j)
        sign = np.where(y == i, 1.0, -1.0)
        slack = np.where(part, np.maximum(0, 1 - sign * f[:, k]), 0.0)
        assert_allclose(model.slack_[k], slack, atol=1e-5)
        beta = sign * model.alpha_[k]
        norm = np.sqrt(beta @ model.kernel_.gram(X) @ beta)
        assert_allclose(model.margin_[k], 1 / norm, rtol=1e-6)
        kinds = model.support_kind_[k]
        xi, alpha = model.slack_[k, model.support_], model.alpha_[k, model.support_]
        assert_array_equal(kinds == "", alpha == 0)
        assert (xi[kinds == "margin"] <= 1e-5).all()
        assert (xi[kinds == "wrong side"] > 1).all()
    assert_allclose(model.distance(X), f * model.margin_, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_computed_on_demand_belongs_to_the_last_fit(name: str) -> None:
    X, y, target = rows()
    t = answers(name, y, target)
    model = machine(name, kernel="rbf", gamma=1.0).fit(X, t)
    before = model.margin_, model.slack_
    model.fit(2 * X, t)
    fresh = machine(name, kernel="rbf", gamma=1.0).fit(2 * X, t)
    assert before[0] != model.margin_ == fresh.margin_
    assert_array_equal(model.slack_, fresh.slack_)
    again = pickle.loads(pickle.dumps(model))
    assert again.margin_ == model.margin_


def test_an_outlier_detector_with_the_linear_kernel() -> None:
    X, _, _ = rows()
    model = mm.OneClassSVM(kernel="linear", nu=0.3).fit(X + 5.0)
    assert_allclose(model.score_samples(X), X @ model.coef_[0], rtol=1e-9, atol=1e-9)
    assert model.outlier_fraction_ - 1e-12 <= 0.3 <= model.support_fraction_ + 1e-12


# ------------------------------------------------------------------- weights


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_a_class_without_weight_is_kept_and_never_predicted(kernel: str) -> None:
    X, y, _ = rows(120, classes=4)
    X = np.asarray(mm.kernels.RBF().gram(X), float) if kernel == "precomputed" else X
    weight = np.where(y == 1, 0.0, 1.0)
    model = mm.SVC(kernel=kernel).fit(X, y, weight)
    assert_array_equal(model.classes_, [0, 1, 2, 3])
    assert model.n_support_[1] == 0
    assert model.decision_function(X).shape == (120, 4)
    assert 1 not in model.predict(X)
    present = y != 1
    K = X[np.ix_(present, present)] if kernel == "precomputed" else X[present]
    other = mm.SVC(kernel=kernel).fit(K, y[present])
    at = X[:, present] if kernel == "precomputed" else X
    assert_allclose(model.decision_function(X)[:, [0, 2, 3]], other.decision_function(at))
    assert certified(model, X, y, weight).holds(1e-4)
    with pytest.raises(ValueError, match="leaves only the class"):
        mm.SVC(kernel=kernel).fit(X, y, np.where(y == 2, 1.0, 0.0))


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_class_weights_are_weights(name: str) -> None:
    X, y, _ = rows(classes=3)
    factors = {0: 1.5, 1: 1.0, 2: 0.8}
    by_class = machine(name, class_weight=factors, tol=1e-9, gamma=0.5).fit(X, y)
    by_row = machine(name, tol=1e-9, gamma=0.5).fit(X, y, [factors[k] for k in y])
    assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-6)
    assert_array_equal(by_class.class_weight_, [1.5, 1.0, 0.8])


def test_gamma_is_scikit_learns_whatever_the_class_weights() -> None:
    X, y, _ = rows()
    model = mm.SVC(class_weight="balanced").fit(X, y)
    assert_allclose(model._gamma, 1 / (X.shape[1] * X.var()))


# ------------------------------------------------------------------- several classes


def test_predict_is_the_best_score_always() -> None:
    X, y, _ = rows(150, d=3, classes=5)
    for options in ({}, {"break_ties": True}, {"decision_function_shape": "ovo"}):
        model = mm.SVC(C=0.3, **options).fit(X, y)
        found = model.predict(X)
        if options.get("decision_function_shape") == "ovo":
            assert model.decision_function(X).shape == (150, 10)
            model.set_params(decision_function_shape="ovr")
        assert_array_equal(found, model.classes_[model.decision_function(X).argmax(axis=1)])


def test_exact_ties() -> None:
    """Three corners of a triangle: its centre scores the same for all, and the first is taken."""
    angles = 2 * np.pi * np.arange(3) / 3
    X = np.c_[np.cos(angles), np.sin(angles)]
    model = mm.SVC(kernel="rbf", gamma=1.0, tol=1e-12).fit(X, [0, 1, 2])
    model.intercept_[:] = 0.0
    model.dual_coef_[:] = 0.0
    f = model.decision_function([[0.0, 0.0]])
    assert_array_equal(model.predict([[0.0, 0.0]]), [model.classes_[f.argmax()]])
    two = mm.SVC().fit([[-1.0], [1.0]], [3, 7])
    two.dual_coef_[:] = 0.0
    two.intercept_[:] = 0.0
    assert_array_equal(two.predict([[0.5]]), [3])  # the second class needs f > 0


# ------------------------------------------------------------------- ν


def never(A: Any, B: Any) -> Any:
    raise AssertionError("no kernel value is needed")


def test_an_infeasible_nu_is_refused_before_any_kernel_work() -> None:
    X, _, _ = rows(40)
    y = np.repeat(["a", "b"], [10, 30])
    with pytest.raises(ValueError, match=r"specified nu is infeasible.*0 < nu <= 0\.5\b"):
        mm.NuSVC(nu=0.501, kernel=never).fit(X, y)
    mm.NuSVC(nu=0.5).fit(X, y)  # the end of the interval belongs to it
    weight = np.where(y == "a", 3.0, 1.0)
    assert mm.NuSVC(nu=1.0).fit(X, y, weight).certificate_.holds(1e-4)
    for model in (mm.NuSVC, mm.NuSVR, mm.OneClassSVM):
        for nu in (0.0, -0.1, 1.1, np.nan):
            with pytest.raises(ValueError, match="nu="):
                model(nu=nu, kernel=never).fit(X, y == "a")


def test_no_nu_is_feasible_with_extreme_class_weights() -> None:
    X, y, _ = rows(60)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        mm.NuSVC(nu=1e-5, class_weight={0: 1000, 1: 0.0001}).fit(X, y)


def overlapping(n: int, apart: float) -> tuple[Any, Any]:
    y = np.arange(n) % 2
    return np.random.default_rng(0).normal(size=(n, 2)) + apart * y[:, np.newaxis], y


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_reduced_hulls_that_meet_are_soon_certified(kernel: str, tmp_path: Path) -> None:
    X, y = overlapping(400, 0.5)
    with pytest.warns(ConvergenceWarning, match=r"convex hulls.*meet.*nu=0\.2.*Raise nu"):
        model = mm.NuSVC(nu=0.2, kernel=kernel).fit(X, y)
    found = model.certificate_
    assert model.status_ is Status.NO_MARGIN
    assert model.n_iter_[0] <= 15  # it was hundreds, with two solvers, where terms almost cancel
    assert -1e-11 * found.terms <= found.dual <= 0 < found.primal < 1e-6 * found.terms
    assert "w = 0 is as good" in str(found)
    assert not found.holds(1e-4)  # the relative gap stays what it says
    assert np.isfinite(model.decision_function(X)).all()
    mm.save(model, tmp_path / "model")
    assert mm.load(tmp_path / "model").certificate_ == found
    with pytest.warns(ConvergenceWarning, match="contains the origin"):
        one = mm.OneClassSVM(nu=0.2, kernel="linear").fit(X - X.mean(axis=0))
    assert one.status_ is Status.NO_MARGIN


def test_a_certificate_without_time_needs_no_more_kernel_values() -> None:
    X, y = overlapping(700, 3.0)
    model = mm.NuSVC(nu=0.2, kernel="laplacian").fit(X, y)
    [(problem, point, *_)] = model.solution(X, y)
    with clock.limited(0.0):
        found = certify(problem, point, keep_intercept=True)
    assert found.dual <= model.certificate_.primal <= found.primal


def test_what_is_far_from_the_origin_or_thin_has_a_margin() -> None:
    X, y = overlapping(60, 8.0)
    for shift in (0.0, 1e3, 1e5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rounding, at the last shift
            model = mm.NuSVC(nu=0.2, kernel="linear").fit(X + shift, y)
        assert model.status_ is not Status.NO_MARGIN
        assert model.certificate_.relative_gap < 1e-4
        assert_array_equal(model.predict(X + shift), y)
    thin = np.c_[1e-4 * (2 * y - 1), X[:, 1]]
    assert mm.NuSVC(nu=0.02, kernel="linear").fit(thin, y).certificate_.holds(1e-4)


def test_one_class_scores() -> None:
    X, _, _ = rows()
    model = mm.OneClassSVM(nu=0.2, tol=1e-9).fit(X)
    by_hand = model.kernel_.gram(X, model.support_vectors_) @ model.dual_coef_[0]
    assert_allclose(model.score_samples(X), by_hand)
    assert_allclose(model.decision_function(X), by_hand - model.offset_)
    assert_array_equal(model.fit_predict(X), np.where(model.decision_function(X) >= 0, 1, -1))


# ------------------------------------------------------------------- kernels and rows


class Counting:
    """A kernel that counts the pairs it was asked for."""

    def __init__(self) -> None:
        self.pairs = 0

    def __call__(self, A: Any, B: Any) -> Any:
        self.pairs += len(A) * len(B)
        return mm.kernels.RBF(0.5).gram(A, B)


@pytest.mark.parametrize("name", NAMES)
def test_prediction_asks_for_support_vectors_only(name: str) -> None:
    X, y, target = rows(classes=3)
    kernel = Counting()
    model = machine(name, kernel=kernel).fit(X, answers(name, y, target))
    kernel.pairs = 0
    model.predict(X[:17])
    assert kernel.pairs == 17 * len(model.support_)
    named = machine(name, kernel="rbf", gamma=0.5).fit(X, answers(name, y, target))
    assert_allclose(scores(model, X), scores(named, X), atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_a_precomputed_matrix_is_its_kernel(name: str) -> None:
    X, y, target = rows(classes=3)
    t = answers(name, y, target)
    kernel = mm.kernels.RBF(0.4)
    rowwise = machine(name, kernel=kernel, tol=1e-9).fit(X, t)
    given = machine(name, kernel="precomputed", tol=1e-9).fit(kernel.gram(X), t)
    new = np.random.default_rng(3).normal(size=(7, 3))
    K = kernel.gram(new, X)
    assert_allclose(scores(given, K), scores(rowwise, new), atol=1e-7)
    narrow = scores(given, K[:, given.support_])
    assert_allclose(narrow, scores(given, K), rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="features"):
        given.predict(K[:, :3])


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_gamma_of_zero_is_a_constant_kernel(kernel: str) -> None:
    X, y, _ = rows()
    model = mm.SVC(kernel=kernel, gamma=0.0, coef0=1.0).fit(X, y)
    peer = sklearn.svm.SVC(kernel=kernel, gamma=0.0, coef0=1.0).fit(X, y)
    assert len(set(model.predict(X))) == len(set(peer.predict(X))) == 1


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_every_form(name: str, tmp_path: Any) -> None:
    X, y, target = rows(60, classes=3)
    t = answers(name, y, target)
    expected = scores(machine(name, tol=1e-9).fit(X, t), X)
    for form, given in forms(X, tmp_path).items():
        model = machine(name, tol=1e-9).fit(given, t)
        single = "float32" in form
        assert_allclose(scores(model, given), expected, atol=1e-3 if single else 1e-6, err_msg=form)
        assert sp.issparse(model.support_vectors_) == sp.issparse(given)
        if single:
            assert model.support_vectors_.dtype == np.float32
    dense = machine(name, tol=1e-9).fit(X, t)
    assert_allclose(scores(dense, sp.csr_array(X)), expected, atol=1e-6)


# ------------------------------------------------------------------- going on


# With the linear kernel the origin is among the rows and the classes meet: no margin to find.
LINEAR = ["SVC", "SVR", "NuSVR", "QuantileSVR"]


@pytest.mark.parametrize(
    ("name", "kernel"),
    [(name, kernel) for name in NAMES for kernel in ("rbf", "precomputed")]
    + [(name, "linear") for name in LINEAR],
)
def test_warm_start_on_the_same_rows(name: str, kernel: str) -> None:
    X, y, target = rows(classes=3)
    X = np.asarray(mm.kernels.RBF().gram(X), float) if kernel == "precomputed" else X
    t = answers(name, y, target)
    model = machine(name, kernel=kernel, warm_start=True, tol=1e-6, trace=True).fit(X, t)
    first, expected = np.max(model.n_iter_), scores(model, X)
    model.fit(X, t)
    traces = model.trace_ if isinstance(model.trace_[0], list) else [model.trace_]
    assert all(trace[0][1] <= 1e-5 for trace in traces)  # it starts where it ended
    assert np.max(model.n_iter_) <= first
    assert_allclose(scores(model, X), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("name", "kernel"), [(name, "rbf") for name in NAMES] + [(name, "linear") for name in LINEAR]
)
def test_warm_start_after_rows_came_and_went(name: str, kernel: str) -> None:
    X, y, target = rows(120, classes=3)
    t = answers(name, y, target)
    model = machine(name, kernel=kernel, warm_start=True, tol=1e-8)
    for chosen in (slice(0, 90), slice(0, 120), slice(30, 120), slice(119, 20, -1)):
        model.fit(X[chosen], t[chosen])
        cold = clone(model).set_params(warm_start=False).fit(X[chosen], t[chosen])
        assert model.certificate_.holds(1e-8)
        assert_allclose(
            scores(model, X), scores(cold, X), atol=2e-3 * np.abs(scores(cold, X)).max()
        )


def test_warm_start_with_other_classes_or_costs() -> None:
    X, y, _ = rows(classes=3)
    model = mm.SVC(warm_start=True).fit(X, y)
    for C in (10.0, 0.1):
        assert model.set_params(C=C).fit(X, y).certificate_.holds(1e-4)
    assert model.fit(X, y > 0).certificate_.holds(1e-4)
    assert model.fit(X[:, :2], y > 0).certificate_.holds(1e-4)


def test_a_time_limit_keeps_the_best_answer() -> None:
    X, y, _ = rows(3000, d=5)
    model = mm.SVC(C=1e4, gamma=5.0, max_time=1e-6, tol=1e-9, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="stopped at max_time"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.fit_status_ == 1
    gap = model.certificate_.gap
    assert gap > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_time=0.5).fit(X, y)
    assert model.certificate_.gap < gap


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_keeps_a_model(name: str) -> None:
    X, y, target = rows(classes=3)

    def interrupt(progress: Progress) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    model = machine(name, callback=interrupt, tol=1e-12)
    t = answers(name, y, target)
    with pytest.raises(KeyboardInterrupt, match="interrupted from the keyboard"):
        model.fit(X, t)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(scores(model, X)).all()
    model.set_params(callback=None, warm_start=True, tol=1e-6).fit(X, t)
    assert model.certificate_.holds(1e-6)


def test_max_iter_counts_and_minus_one_is_the_default() -> None:
    X, y, _ = rows()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        model = mm.SVC(max_iter=1).fit(X, y)
    assert model.n_iter_[0] == 1
    assert model.predict(X).shape == (80,)
    assert mm.SVC(max_iter=-1).fit(X, y).status_ is Status.OPTIMAL


# ------------------------------------------------------------------- indefinite kernels


def test_a_stationary_point_is_called_so() -> None:
    X, y, _ = rows()
    with pytest.warns(UserWarning, match="stationary, not certified") as caught:
        model = mm.SVC(kernel="sigmoid", gamma=0.1).fit(X, y)
    assert not any(isinstance(w.message, ConvergenceWarning) for w in caught)
    assert model.status_ is Status.STATIONARY


# ------------------------------------------------------------------- parameters


@pytest.mark.parametrize("name", PEERS)
def test_the_signature_is_scikit_learns_and_more(name: str) -> None:
    ours = inspect.signature(getattr(mm, name)).parameters
    theirs = inspect.signature(getattr(sklearn.svm, name)).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert all(ours[key].kind is inspect.Parameter.KEYWORD_ONLY for key in ours)
    differing = {key for key in theirs if ours[key].default != theirs[key].default}
    assert differing <= {"tol", "max_iter", "cache_size", "probability"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("parameter", "value", "error"),
    [
        ("kernel", "rbff", ValueError),
        ("kernel", 3, TypeError),
        ("gamma", -1.0, ValueError),
        ("gamma", "large", TypeError),
        ("degree", 2.5, (TypeError, ValueError)),
        ("tol", -1.0, ValueError),
        ("max_iter", 0, ValueError),
        ("max_iter", -2, ValueError),
        ("max_iter", 1.5, TypeError),
        ("max_time", 0.0, ValueError),
        ("memory", "much", TypeError),
        ("memory", 0, ValueError),
        ("cache_size", -1, ValueError),
        ("shrinking", "yes", TypeError),
        ("warm_start", 1, TypeError),
        ("trace", None, TypeError),
        ("n_jobs", 0, ValueError),
        ("verbose", "yes", TypeError),
        ("callback", 3, TypeError),
        ("C", 0.0, ValueError),
        ("C", np.inf, ValueError),
        ("C", "1", TypeError),
        ("epsilon", -0.1, ValueError),
        ("fit_intercept", 1, TypeError),
        ("decision_function_shape", "ova", ValueError),
        ("break_ties", 1, TypeError),
        ("probability", "yes", ValueError),
    ],
)
def test_bad_parameters(name: str, parameter: str, value: Any, error: Any) -> None:
    X, y, target = rows(20)
    model = machine(name)
    if parameter not in model.get_params():
        return
    if parameter == "degree":
        model.set_params(kernel="poly")
    with pytest.raises(error, match=parameter):
        model.set_params(**{parameter: value}).fit(X, answers(name, y, target))


# ------------------------------------------------------------------- in company


def test_edits_count() -> None:
    X, y, _ = rows()
    for kernel in ("rbf", "linear"):
        model = mm.SVC(kernel=kernel).fit(X, y)
        f = model.decision_function(X)
        model.intercept_ = model.intercept_ + 1.0
        assert_allclose(model.decision_function(X), f + 1.0, atol=1e-12)
        model.dual_coef_ = 2 * model.dual_coef_
        doubled = 2 * (f - model.intercept_ + 1.0) + model.intercept_
        assert_allclose(model.decision_function(X), doubled, atol=1e-6)
        model.n_support_[0] = 10**6
        with pytest.raises(ValueError, match="internal representation of SVC was altered"):
            model.predict(X)


def test_tuning_stacking_and_one_against_the_rest() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    search = GridSearchCV(mm.SVC(), {"C": [0.1, 10.0], "gamma": ["scale", 0.05]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    K = mm.kernels.RBF(0.05).gram(X)
    by_gram = GridSearchCV(mm.SVC(kernel="precomputed"), {"C": [10.0]}, cv=2).fit(K, y)
    assert by_gram.best_score_ > 0.85
    assert OneVsRestClassifier(mm.SVC()).fit(X, y).score(X, y) > 0.9
    few = y < 3
    stack = StackingClassifier([("svc", mm.SVC()), ("nu", mm.NuSVC(nu=0.1))], cv=2)
    assert stack.fit(X[few], y[few]).score(X[few], y[few]) > 0.9


@pytest.mark.parametrize("kernel", ["poly", "rbf", "sigmoid", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_of_float32_rows_are_those_of_the_certified_function(
    kernel: str, sparse: bool
) -> None:
    # Large coefficients of many support vectors would multiply the rounding of float32.
    rng = np.random.default_rng(0)
    X = (3.0 * rng.normal(size=(300, 6))).astype(np.float32)
    y = np.sign(X[:, 0] * X[:, 1] + rng.normal(size=300))
    rows = sp.csr_array(X) if sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = mm.SVC(kernel=kernel, C=1000.0, max_iter=300).fit(rows, y)
    support = np.asarray(X[machine.support_], dtype=np.float64)
    K = machine.kernel_.gram(np.asarray(X, dtype=np.float64), support)
    exact = K @ machine.dual_coef_[0] + machine.intercept_[0]
    if kernel == "linear":
        exact = X.astype(np.float64) @ machine.coef_[0] + machine.intercept_[0]
    size = 1e-12 * (1 + float((np.abs(K) @ np.abs(machine.dual_coef_[0])).max()))
    np.testing.assert_allclose(machine.decision_function(rows), exact, rtol=0, atol=size)


@pytest.mark.filterwarnings("ignore:.*rounding in float64 keeps")
@pytest.mark.parametrize("tol", [1e-8, 1e-10, 1e-12])
def test_pairs_that_gain_nothing_more_leave_the_rest_to_an_active_set_step(tol: float) -> None:
    # Their gains drown in rounding while the gap is still the root of that.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 10))
    y = np.sign(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)))
    machine = mm.SVC(C=100.0, tol=tol).fit(X, y)
    assert machine.solver_ == "block_smo"
    assert machine.certificate_.relative_gap <= tol


@pytest.mark.parametrize("tol", [1e-4, 1e-10])
def test_in_float64_a_gap_counts_as_closed_only_by_sums_over_all_variables(tol: float) -> None:
    # Duals of up to 1e6: what rounding adds, change by change, is more than the gap.
    X, y = mm.datasets.spirals(4000, noise=0.5)
    machine = mm.SVC(C=1e6, gamma=5.0)
    problem = machine.formulate(X, y).problems[0]
    solution = run_solver(problem, Decomposition(tol, precise=True), tol=0.6 * tol, max_iter=40)
    certificate = certify(problem, solution.point)
    assert solution.run.status is Status.OPTIMAL or tol < 1e-4
    if solution.run.status is Status.OPTIMAL:
        assert certificate.relative_gap <= tol + 10 * certificate.rounding
