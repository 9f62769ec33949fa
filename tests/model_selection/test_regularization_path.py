"""Paths along C: what theory says of them, fresh solves between grid points, and refusals."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.model_selection import RegularizationPath
from maxmargin.model_selection.path.exact import exact_path
from maxmargin.problems.problem import Status

LINEAR = [mm.LinearSVC(intercept=kind) for kind in ("free", "none", "penalized")]


def rows(seed: int, n: int = 40, noise: float = 0.7, share: float = 0.0) -> tuple[Floats, Any]:
    """Return rows with labels ±1 that overlap; ``share`` shifts how many are positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + noise * rng.standard_normal(n) > share, 1, -1)
    y[:2] = 1, -1
    return X, y


def gram(X: Floats, gamma: float | None) -> Floats:
    if gamma is None:
        return np.asarray(X @ X.T)
    return np.asarray(np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)))


class Plain:
    """The machine as the textbook has it."""

    def __init__(self, K: Floats, y: Any, c: Floats, C: float, free: bool) -> None:
        self.K, self.y, self.cost, self.free = K, np.asarray(y, float), C * c, free

    def gap(self, alpha: Floats, b: float) -> float:
        """Return the relative duality gap; infinite if the duals are not feasible."""
        top = self.cost.sum()
        off = max((-alpha).max(), (alpha - self.cost).max())
        off = max(off, abs(float(alpha @ self.y))) if self.free else off
        if off > 1e-9 * top:
            return np.inf
        f = self.K @ (alpha * self.y)
        norm = float((alpha * self.y) @ f)
        primal = 0.5 * norm + float(self.cost @ np.maximum(0, 1 - self.y * (f + b)))
        dual = float(alpha.sum()) - 0.5 * norm
        return (primal - dual) / primal


# ------------------------------------------------------------ the exact path


def middles(breakpoints: Floats) -> Floats:
    """Return a C between every two breakpoints, one below the first and one above the last."""
    between = np.sqrt(breakpoints[1:] * breakpoints[:-1])
    return np.concatenate([[0.3 * breakpoints[0]], between, [3 * breakpoints[-1]]])


CASES = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in [
        ("plain", None), ("plain", 0.5), ("even", None), ("even", 2.0), ("unbalanced", None),
        ("unbalanced", 0.5), ("weights", None), ("weights", 0.5), ("duplicates", None),
        ("duplicates", 0.5), ("grid", None), ("grid", 1.0), ("conflicts", None), ("conflicts", 1.0),
        ("separable", None), ("constant", None),
    ]
]  # fmt: skip


def case(kind: str, seed: int) -> tuple[Floats, Any, Floats]:
    X, y = rows(seed, share=1.0 if kind == "unbalanced" else 0.0)
    c = np.ones(len(y))
    if kind == "even":
        y = np.where(np.arange(len(y)) % 2, 1, -1)
    if kind == "weights":
        c = np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
    if kind == "duplicates":
        X, y, c = np.vstack([X, X[:20]]), np.append(y, y[:20]), np.ones(60)
    if kind == "grid":
        X = np.round(2 * X)
    if kind == "conflicts":
        X, y, c = np.vstack([X, X[:10]]), np.append(y, -y[:10]), np.ones(50)
    if kind == "separable":
        y = np.where(X[:, 0] > 0.2, 1, -1)
    if kind == "constant":
        X = np.zeros((7, 2))
        y, c = np.array([1, 1, -1, -1, -1, 1, -1]), np.ones(7)
    return X, y, c


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize(("kind", "gamma"), CASES)
def test_every_segment_of_the_exact_path_is_optimal(
    kind: str, gamma: float | None, free: bool
) -> None:
    for seed in range(2):
        X, y, c = case(kind, seed)
        assert check_segments(gram(X, gamma), y.astype(float), c, free) == np.inf


def check_segments(K: Floats, y: Floats, c: Floats, free: bool, gap: float = 1e-8) -> float:
    """Assert that all segments are optimal, weights grow and slack falls; return the end."""
    path = exact_path(K, y, c, free, np.inf)
    Cs = middles(path.breakpoints) if len(path.breakpoints) else np.array([0.1, 1.0, 10.0])
    norms, slacks = [], []
    for C in Cs[path.end >= Cs]:
        alpha, b = path.at(C)
        assert Plain(K, y, c, C, free).gap(alpha, b) < gap
        f = K @ (alpha * y)
        norms.append(float((alpha * y) @ f))
        slacks.append(float(c @ np.maximum(0, 1 - y * (f + b))))
    assert (np.diff(norms) >= -1e-7 * (1 + np.array(norms[1:]))).all()
    assert (np.diff(slacks) <= 1e-7 * (1 + np.array(slacks[1:]))).all()
    return path.end


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_duals_are_linear_between_breakpoints(gamma: float | None) -> None:
    X, y = rows(5)
    path = exact_path(gram(X, gamma), y.astype(float), np.ones(40), True, np.inf)
    for low, high in zip(path.breakpoints[:-1], path.breakpoints[1:], strict=True):
        ends = path.at(low)[0], path.at(high * (1 - 1e-15))[0]
        assert_allclose(path.at(0.5 * (low + high))[0], 0.5 * (ends[0] + ends[1]), atol=1e-8 * high)


def test_the_small_end_is_where_solutions_stop_being_proportional() -> None:
    for seed in range(2):
        X, y = rows(seed, share=0.4)
        for model in (*LINEAR, mm.SVC(gamma=0.5), mm.SVC(fit_intercept=False)):
            exact = mm.regularization_path(X, y, model)
            found = mm.regularization_path(X, y, model, exact=False, tol=1e-8, Cs=3)
            assert exact.small_C is not None
            assert found.small_C == pytest.approx(exact.small_C, rel=1e-3)
            f = [exact.model(t * exact.small_C).decision_function(X) for t in (0.25, 0.5, 1.0, 2.0)]
            change = np.diff([scores - scores[0] for scores in f], axis=0)
            # Up to an intercept f is proportional to C, and no longer beyond the end.
            assert_allclose(change[1], 2 * change[0], atol=1e-7)
            assert np.abs(change[2] - 2 * change[1]).max() > 1e-4


@pytest.mark.parametrize("model", [*LINEAR, mm.SVC(gamma=1.0)], ids=repr)
def test_from_the_hard_end_on_soft_is_hard(model: Any) -> None:
    X, y = mm.datasets.separable(60, margin=0.2, random_state=0)
    exact = mm.regularization_path(X, y, model)
    found = mm.regularization_path(X, y, model, exact=False)
    assert exact.hard_C is not None
    assert found.hard_C is not None
    assert exact.hard_C <= found.hard_C * (1 + 1e-6)
    at, beyond = exact.model(exact.hard_C), exact.model(100 * exact.hard_C)
    assert_allclose(at.decision_function(X), beyond.decision_function(X), atol=1e-6)
    assert at.slack_.max() < 1e-6
    assert exact.model(0.8 * exact.hard_C).slack_.max() > 1e-6
    if not (hasattr(model, "intercept") and model.intercept == "penalized"):
        kernel = mm.kernels.RBF(1.0) if isinstance(model, mm.SVC) else "linear"
        intercept = getattr(model, "intercept", "free")
        hard = mm.HardMarginSVC(kernel=kernel, intercept=intercept).fit(X, y)
        assert at.margin_ == pytest.approx(hard.margin_, rel=1e-6)


def test_an_exact_path_that_cannot_go_on_says_so_and_the_rest_is_solved() -> None:
    X = np.random.default_rng(0).standard_normal((60, 1))
    y = np.where(np.sin(3 * X[:, 0]) > 0, 1, -1)  # a Gram matrix of small rank, and no overlap
    path = mm.regularization_path(X, y, mm.SVC(gamma=0.05), Cs=[1.0, 1e3, 1e9], tol=1e-3)
    assert path.certified
    assert path.exact_reason
    assert path.exact_until > 1


# ------------------------------------------------------------ paths on a grid


MODELS = [
    mm.LinearSVC(), mm.LinearSVC(intercept="penalized"), mm.LinearSVC(loss="squared_hinge"),
    mm.LinearSVC(loss="squared_hinge", penalty="l1"), mm.LinearSVC(penalty="elasticnet"),
    mm.SVC(), mm.SVC(kernel="linear"),
    mm.SVC(fit_intercept=False, class_weight="balanced"), mm.LinearSVC(class_weight={1: 3.0}),
]  # fmt: skip


@pytest.mark.parametrize("exact", ["auto", False])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_path_is_that_of_fresh_fits(model: Any, exact: Any) -> None:
    X, y = rows(1, 90, share=0.3)
    weight = np.random.default_rng(2).integers(0, 4, 90).astype(float)
    Cs = np.geomspace(0.01, 100, 6)
    path = mm.regularization_path(X, y, model, Cs=Cs, sample_weight=weight, exact=exact, tol=1e-7)
    assert path.certified
    assert path.statuses == (Status.OPTIMAL,) * 6
    for k, C in enumerate(Cs):
        fresh = model.__class__(**{**model.get_params(), "C": C, "tol": 1e-8})
        fresh.fit(X, y, sample_weight=weight)
        best = fresh.certificate_
        assert path.certificates[k].primal >= best.dual * (1 - 1e-9)
        assert path.certificates[k].dual <= best.primal * (1 + 1e-9)
        same = path.model(C)
        assert_allclose(same.decision_function(X), fresh.decision_function(X), atol=5e-3)
        assert path.margins[k] == pytest.approx(fresh.margin_, rel=1e-3)
        assert_allclose(path.alphas[k], same.alpha_, atol=1e-12)
        assert not path.alphas[k][weight == 0].any()
        assert path.intercepts[k] == pytest.approx(same.intercept_[0], abs=1e-12)
        if path.coefs is not None:
            assert_allclose(path.coefs[k], same.coef_[0], atol=1e-12)
        recomputed = mm.certify(same, X, y, sample_weight=weight)
        assert isinstance(recomputed, mm.Certificate)
        assert recomputed.holds(1e-6)
        kinds = same.support_kind_
        assert {name: n[k] for name, n in path.support_counts.items()} == {
            name: (kinds == name).sum() for name in ("margin", "inside", "wrong side")
        }


def test_a_model_between_the_costs_is_solved_when_it_is_asked_for() -> None:
    X, y = rows(6, 400)
    for model in (mm.LinearSVC(), mm.SVC()):
        path = mm.regularization_path(X, y, model, Cs=[0.1, 10.0])
        assert path.breakpoints is None
        between = path.model(1.0)
        assert between.C == 1.0
        assert type(between) is type(model)
        assert between.certificate_.holds(1e-4)
        assert "_solve" not in vars(between)


@pytest.mark.parametrize("model", [mm.LinearSVC(), mm.SVC(), mm.SVC(kernel="poly", degree=2)])
def test_a_time_limit_that_suffices_changes_nothing(model: Any) -> None:
    X, y = rows(7, 400)
    Cs = np.geomspace(0.01, 100, 6)
    free = mm.regularization_path(X, y, model, Cs=Cs, tol=1e-6)
    limited = mm.regularization_path(X, y, model.set_params(max_time=600.0), Cs=Cs, tol=1e-6)
    assert limited.certified
    assert_allclose(limited.margins, free.margins, rtol=1e-3)  # √tol is what a gap of tol allows
    solvers = [path.model(1.0).solver_ for path in (free, limited)]
    assert solvers[0] == solvers[1]


@pytest.mark.parametrize("model", [
    mm.LinearSVC(), mm.LinearSVC(multi_class="ovo"), mm.LinearSVC(multi_class="crammer_singer"),
    mm.SVC(), mm.SVC(kernel="poly", degree=2),
], ids=repr)  # fmt: skip
def test_several_classes_have_an_axis_of_problems(model: Any) -> None:
    X, y = load_iris(return_X_y=True)
    path = mm.regularization_path(X, y, model, Cs=[0.1, 1.0, 10.0])
    assert path.certified
    assert path.intercepts.shape == (3, 3)
    assert path.alphas.shape == (3, 3, 150)
    for k, C in enumerate(path.Cs):
        fresh = model.__class__(**{**model.get_params(), "C": C}).fit(X, y)
        assert path.certificates[k].primal == pytest.approx(fresh.certificate_.primal, rel=3e-4)
        assert (path.model(C).predict(X) == fresh.predict(X)).mean() > 0.97


@pytest.mark.parametrize("model", [mm.SVR(), mm.LinearSVR(epsilon=0.1), mm.SVR(kernel="linear")])
def test_regressions_have_paths_too(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(80)
    path = mm.regularization_path(X, y, model, Cs=[0.1, 1.0, 10.0])
    assert path.certified
    assert set(path.support_counts) == {"on the tube", "outside"}
    fresh = model.__class__(**{**model.get_params(), "C": 1.0}).fit(X, y)
    assert_allclose(path.model(1.0).predict(X), fresh.predict(X), atol=0.05)


@pytest.mark.parametrize("model", [mm.LinearSVC(), mm.SVC()])
def test_kinds_of_input_agree(model: Any) -> None:
    X, y = rows(8, 60)
    X[np.abs(X) < 0.3] = 0
    names = np.array(["no", "yes"])[(y > 0).astype(int)]
    plain = mm.regularization_path(X, y, model, Cs=[0.1, 1.0])
    frame = mm.regularization_path(pd.DataFrame(X, columns=list("abc")), pd.Series(names), model,
                                   Cs=[1.0, 0.1])  # fmt: skip
    sparse = mm.regularization_path(sp.csr_array(X), y, model, Cs=[0.1, 1.0])
    single = mm.regularization_path(X.astype(np.float32), y, model, Cs=[0.1, 1.0])
    for other in (frame, sparse, single):
        assert_allclose(other.margins, plain.margins, rtol=1e-4)
        assert_allclose(other.intercepts, plain.intercepts, atol=1e-3)
    assert frame.model(0.3).feature_names_in_.tolist() == ["a", "b", "c"]
    assert set(frame.model(0.3).classes_) == {"no", "yes"}


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_the_ends_move_with_the_scale_of_rows(scale: float) -> None:
    X, y = mm.datasets.separable(40, margin=0.2, random_state=0)
    for exact in ("auto", False):
        one = mm.regularization_path(X, y, Cs=3, exact=exact)
        other = mm.regularization_path(scale * X, y, Cs=3, exact=exact)
        assert one.small_C is not None
        assert one.hard_C is not None
        assert other.small_C == pytest.approx(one.small_C / scale**2, rel=1e-2)
        assert other.hard_C == pytest.approx(one.hard_C / scale**2, rel=1e-3)


def test_a_class_without_weight_takes_no_part() -> None:
    X, y = load_iris(return_X_y=True)
    for model in (mm.SVC(), mm.LinearSVC(multi_class="ovo")):
        path = mm.regularization_path(X, y, model, Cs=[0.1, 1.0], sample_weight=(y > 0) * 1.0)
        rest = mm.regularization_path(X[50:], y[50:], model, Cs=[0.1, 1.0])
        assert_allclose(np.ravel(path.margins), rest.margins, rtol=1e-6)
        assert path.certified


@pytest.mark.parametrize("exact", ["auto", False])
@pytest.mark.parametrize("model", [mm.LinearSVC(), mm.SVC(gamma=1.0)])
def test_rows_that_are_all_the_same(model: Any, exact: Any) -> None:
    for n in (7, 8):
        y = np.arange(n) % 2
        path = mm.regularization_path(np.ones((n, 2)), y, model, exact=exact)
        assert path.certified
        assert (path.margins > 1e9).all()
        assert path.hard_C is None


def test_precomputed_kernels() -> None:
    X, y = rows(9, 50)
    K = gram(X, 0.7)
    given = mm.regularization_path(K, y, mm.SVC(kernel="precomputed"), Cs=4)
    own = mm.regularization_path(X, y, mm.SVC(gamma=0.7), Cs=given.Cs)
    assert_allclose(given.margins, own.margins, rtol=1e-6)
    assert given.hard_C == pytest.approx(own.hard_C)


# ------------------------------------------------------------ what it says


def test_it_reads_well_and_becomes_plain_values() -> None:
    X, y = rows(1)
    path = mm.regularization_path(X, y)
    assert "all certified" in repr(path)
    assert "breakpoints" in repr(path)
    plain = path.to_dict()
    assert plain["Cs"] == path.Cs.tolist()
    assert isinstance(plain["certificates"][0]["primal"], float)
    again = pickle.loads(pickle.dumps(path))
    assert isinstance(again, RegularizationPath)
    assert_allclose(again.model(1.0).coef_, path.model(1.0).coef_)
    with pytest.raises(AttributeError):
        path.Cs = np.ones(3)


def test_what_is_not_certified_says_why() -> None:
    X, y = rows(1, 500)
    with pytest.warns(ConvergenceWarning, match="not certified"):
        path = mm.regularization_path(X, y, mm.SVC(kernel="sigmoid", gamma=1.0), Cs=[0.1, 1.0])
    assert path.statuses == (Status.STATIONARY,) * 2
    assert not path.certified
    with pytest.warns(ConvergenceWarning, match="2 of 2"):
        path = mm.regularization_path(X, y, mm.SVC(max_iter=1), Cs=[10.0, 100.0], tol=1e-9)
    assert set(path.statuses) == {Status.MAX_ITER}
    with pytest.warns(ConvergenceWarning, match="not certified"):
        path = mm.regularization_path(X, y, mm.SVC(max_time=1e-9), Cs=[10.0, 100.0], tol=1e-9)
    assert set(path.statuses) == {Status.MAX_TIME}


@pytest.mark.parametrize(("wrong", "error", "words"), [
    ({"Cs": [1.0, -1.0]}, ValueError, "Cs="), ({"Cs": []}, ValueError, "Cs="),
    ({"Cs": [1.0, np.nan]}, ValueError, "Cs="), ({"Cs": 1}, ValueError, "Cs=1"),
    ({"Cs": "many"}, TypeError, "Cs='many'"), ({"Cs": [[1.0]]}, ValueError, "Cs="),
    ({"exact": "yes"}, ValueError, "exact='yes'"), ({"ends": 3}, ValueError, "ends=3"),
    ({"tol": -1.0}, ValueError, "tol="), ({"estimator": mm.NuSVC()}, TypeError, "NuSVC"),
    ({"estimator": "svc"}, TypeError, "estimator='svc'"),
    ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
    ({"estimator": mm.LinearSVC(loss="squared_hinge"), "exact": True}, ValueError, "hinge"),
    ({"y": np.ones(40)}, ValueError, "class"), ({"y": np.ones(3)}, ValueError, "inconsistent"),
    ({"X": np.full((40, 3), np.nan)}, ValueError, "NaN"),
])  # fmt: skip
def test_bad_arguments_are_named(wrong: dict[str, Any], error: type[Exception], words: str) -> None:
    X, y = rows(0)
    with pytest.raises(error, match=words):
        mm.regularization_path(**{"X": X, "y": y, **wrong})


def test_a_cost_that_is_none_is_refused() -> None:
    path = mm.regularization_path(*rows(0), Cs=[1.0, 2.0])
    for C in (0.0, -1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="C="):
            path.model(C)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(200))
def test_exact_paths_of_many_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 60)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    if seed % 3 == 0:
        X = np.round(2 * X)
    y = np.where(X[:, 0] + rng.choice([0.0, 0.5, 2.0]) * rng.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1, -1
    c = rng.choice([1.0, 2.0, 0.5], n) if seed % 2 else np.ones(n)
    for gamma in (None, 0.3, 3.0):
        for free in (True, False):
            assert check_segments(gram(X, gamma), y, c, free, 1e-7) > 0
