"""ℓ1 and elastic-net machines: the gap closes, oracles agree, and forgeries are refused."""

from dataclasses import replace
from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from numpy.testing import assert_allclose
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.certificates import certify
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, LinearProblem, Point, Problem, Status
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solve import Attempt, run_solver
from maxmargin.solvers.proximal_newton import ProximalNewton

RATIOS = [0.1, 0.5, 1.0]
of_both_losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
INTERCEPTS = list(Intercept)


def rows(seed: int, n: int = 120, d: int = 15) -> tuple[Floats, Floats, Floats]:
    """Return rows that overlap a little, their signs, and uneven costs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 2.0, n)


def machine(
    X: Any, y: Floats, cost: Floats, ratio: float, intercept: Intercept, lift: float = 1.0,
    loss: str = "squared_hinge",
) -> LinearProblem:  # fmt: skip
    made = losses.CLASSIFYING[loss](y, cost)
    return Problem.linear(X, made, intercept, lift, l1_ratio=ratio)


def attempted(problem: LinearProblem, tol: float = 1e-9, **options: Any) -> Attempt:
    with one_blas_thread():  # as ``solve`` does
        return run_solver(problem, ProximalNewton(), tol=tol, **options)


def solved(problem: LinearProblem, tol: float = 1e-9, **options: Any) -> Point:
    found = attempted(problem, tol, **options)
    assert found.run.status is Status.OPTIMAL
    return found.point


def thinned(X: Floats, seed: int) -> sp.csr_matrix:
    return sp.csr_matrix(X * (np.random.default_rng(seed).random(X.shape) < 0.3))


@of_both_losses
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(150, 12), (60, 250), (1200, 5)])
def test_closes_the_gap(
    shape: tuple[int, int], C: float, intercept: Intercept, ratio: float, loss: str
) -> None:
    X, y, weight = rows(sum(shape), *shape)
    for data in (X, thinned(X, 1)):
        problem = machine(data, y, C * weight, ratio, intercept, lift=2.0, loss=loss)
        solution = solved(problem)
        rounding = 2e-8 if loss == "hinge" else 1e-8  # a hinge of cost 1e3 is steep
        assert certify(problem, solution).holds(rounding)


@of_both_losses
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_columns_of_any_scale_are_welcome(intercept: Intercept, ratio: float, loss: str) -> None:
    X, y, weight = rows(3, 200, 20)
    X *= 10.0 ** np.random.default_rng(3).uniform(-8, 8, 20)
    X[:, 3] = 0.0
    X[:, 4] = 3.0
    X[:, 5] = X[:, 6]
    problem = machine(X, y, weight, ratio, intercept, loss=loss)
    solution = solved(problem, 1e-8)
    assert certify(problem, solution).holds(1e-7)
    assert solution.w[3] == 0.0


@of_both_losses
@pytest.mark.parametrize("ratio", [0.5, 1.0])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(6, 40), (60, 20), (40, 100)])
def test_columns_may_be_far_from_0(
    shape: tuple[int, int], intercept: Intercept, ratio: float, loss: str
) -> None:
    X, y, weight = rows(9, *shape)
    y[:2] = 1.0, -1.0
    problem = machine(X + 3465, y, weight, ratio, intercept, loss=loss)
    solution = solved(problem, 1e-6, max_iter=300)
    assert certify(problem, solution).holds(1e-5)
    again = attempted(problem, 1e-6, start=solution, max_iter=300)
    assert again.run.status is Status.OPTIMAL


@of_both_losses
def test_nobody_is_warned_of_what_overflows(loss: str) -> None:
    X, y, weight = rows(9)
    for size in (1e154, 1e-154):
        problem = machine(size * X, y, 1e20 * weight, 0.5, Intercept.FREE, loss=loss)
        attempted(problem, max_iter=20)  # warnings are errors here


@of_both_losses
@pytest.mark.parametrize("seed", [4, 18, 32, 35])
def test_tol_is_reached_on_columns_of_any_scale(seed: int, loss: str) -> None:
    """Where |v| ≤ 1 holds but for rounding, no more than rounding of D may be given for it."""
    X, y, weight = rows(seed, 40, 6)
    rng = np.random.default_rng(seed)
    X *= 10.0 ** rng.uniform(-8, 8, 6)
    for free in (False, True):
        model = mm.LinearSVC(C=10 ** rng.uniform(-1, 2), penalty="l1", loss=loss, tol=1e-7)
        model.set_params(fit_intercept=free).fit(X, y, sample_weight=weight)
        assert model.status_ is Status.OPTIMAL


@of_both_losses
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_many_columns_are_searched_for_the_few_that_matter(intercept: Intercept, loss: str) -> None:
    X, y, weight = rows(4, 80, 3000)
    for data in (X, thinned(X, 4)):
        problem = machine(data, y, weight, 1.0, intercept, loss=loss)
        solution = solved(problem)
        assert certify(problem, solution).holds(1e-8)
        assert np.count_nonzero(solution.w) <= 80


@of_both_losses
@pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_matrix])
def test_float32_is_the_same_problem_as_its_float64_copy(make: Any, loss: str) -> None:
    X, y, weight = rows(6)
    X = X.astype(np.float32)
    for intercept in INTERCEPTS:
        narrow = machine(make(X), y, weight, 0.5, intercept, lift=0.1, loss=loss)
        wide = machine(make(X.astype(np.float64)), y, weight, 0.5, intercept, lift=0.1, loss=loss)
        solution = solved(narrow)
        assert certify(narrow, solution).holds(1e-8)
        assert certify(wide, solution).holds(1e-8)


def clarabel_optimum(problem: LinearProblem, X: Floats, y: Floats, cost: Floats) -> float:
    """Return the optimum by an interior-point solver: w = p − q with p, q ≥ 0, and slacks."""
    n, d = X.shape
    if problem.intercept is Intercept.PENALIZED:
        X, d = np.column_stack([X, np.full(n, problem.features.constant)]), d + 1
    free = problem.intercept is Intercept.FREE
    ratio = problem.l1_ratio
    ridge = (1 - ratio) * np.eye(d)
    squared = bool(problem.loss.quadratic.any())
    curve = np.diag(2 * cost) if squared else np.zeros((n, n))
    P = sp.block_diag(
        [np.block([[ridge, -ridge], [-ridge, ridge]]), np.zeros((1, 1)), curve], format="csc"
    )
    linear = np.concatenate([np.full(2 * d, ratio), [0.0], np.zeros(n) if squared else cost])
    signed = y[:, np.newaxis] * X
    margins = np.hstack([-signed, signed, -(y * free)[:, np.newaxis], -np.eye(n)])
    signs = np.hstack([-np.eye(2 * d), np.zeros((2 * d, 1 + n))])
    slack = np.hstack([np.zeros((n, 2 * d + 1)), -np.eye(n)])
    A = sp.csc_matrix(np.vstack([margins, signs, slack]))
    bounds = np.concatenate([np.full(n, -1.0), np.zeros(2 * d + n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    answer = clarabel.DefaultSolver(sp.triu(P, format="csc"), linear, A, bounds, cones, settings)
    return float(answer.solve().obj_val)


@of_both_losses
@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_an_interior_point_solver(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    X, y, weight = rows(seed, int(rng.integers(20, 90)), int(rng.integers(2, 60)))
    cost = weight * 10 ** rng.uniform(-2, 1)
    intercept = INTERCEPTS[seed % 3]
    problem = machine(
        X, y, cost, RATIOS[seed // 3 % 3], intercept, lift=rng.uniform(0.5, 3), loss=loss
    )
    certificate = certify(problem, solved(problem, 1e-10))
    optimum = clarabel_optimum(problem, X, y, cost)
    assert certificate.primal == pytest.approx(optimum, rel=1e-8)
    assert certificate.dual == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize("lift", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_agrees_with_liblinear(C: float, lift: float) -> None:
    X, y, _ = rows(8)
    problem = machine(X, y, np.full(len(y), C), 1.0, Intercept.PENALIZED, lift)
    solution = solved(problem)
    peer = LinearSVC(penalty="l1", dual=False, C=C, tol=1e-10, max_iter=100_000,
                     intercept_scaling=lift, random_state=0).fit(X, y)  # fmt: skip
    theirs = certify(problem, replace(solution, w=peer.coef_[0], b=float(peer.intercept_[0])))
    assert certify(problem, solution).primal == pytest.approx(theirs.primal, rel=1e-8)


@of_both_losses
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_forgeries_are_refused(intercept: Intercept, ratio: float, loss: str) -> None:
    X, y, weight = rows(9)
    problem = machine(X, y, weight, ratio, intercept, loss=loss)
    solution = solved(problem)
    honest = certify(problem, solution)
    forged = [
        replace(solution, w=1.1 * solution.w),
        replace(solution, w=-solution.w),
        replace(solution, beta=0.5 * solution.beta),
        replace(solution, beta=solution.beta + 0.5 * y),
        replace(solution, beta=-solution.beta),
        replace(solution, beta=np.full(len(y), np.nan)),
    ]
    for forgery in forged:
        certificate = certify(problem, forgery)
        assert not certificate.holds(1e-4)
        assert certificate.primal >= honest.dual - 1e-8 * honest.primal
        assert certificate.dual <= honest.primal * (1 + 1e-8)


@of_both_losses
def test_an_intercept_that_is_kept_has_its_price(loss: str) -> None:
    X, y, weight = rows(10)
    problem = machine(X, y, weight, 0.5, Intercept.FREE, loss=loss)
    solution = solved(problem)
    moved = replace(solution, b=solution.b + 1.0)
    assert certify(problem, moved).holds(1e-8)
    kept = certify(problem, moved, keep_intercept=True)
    assert not kept.holds(1e-4)
    assert kept.intercept_cost == pytest.approx(kept.gap, rel=1e-6)
    assert kept.intercept == pytest.approx(solution.b, abs=1e-6)


@of_both_losses
@pytest.mark.parametrize("ratio", RATIOS)
def test_what_the_certificate_says_of_the_weights(ratio: float, loss: str) -> None:
    X, y, weight = rows(11)
    problem = machine(X, y, weight, ratio, Intercept.FREE, loss=loss)
    exact, rough = solved(problem, 1e-12), solved(problem, 1e-2)
    assert certify(problem, exact).drift < 1e-5
    bound = certify(problem, rough).distance_bound
    assert float(np.linalg.norm(exact.w - rough.w)) <= bound + 1e-9
    assert np.isfinite(bound) == (ratio < 1)


@of_both_losses
def test_nothing_to_learn_from(loss: str) -> None:
    X, y, weight = rows(14)
    for intercept in INTERCEPTS:
        one_class = machine(X, np.ones(len(y)), weight, 0.5, intercept, loss=loss)
        assert certify(one_class, solved(one_class)).holds(1e-8)
        empty = machine(
            np.zeros((4, 3)), np.array([1.0, 1, -1, 1]), np.ones(4), 1.0, intercept, loss=loss
        )
        assert certify(empty, solved(empty)).holds(1e-8)


@of_both_losses
def test_steps_are_short_enough_to_be_interrupted(loss: str) -> None:
    X, y, weight = rows(17, 60, 250)
    problem = machine(X, y, 1e3 * weight, 1.0, Intercept.FREE, loss=loss)
    seen = list(ProximalNewton().iterates(problem, Point()))
    assert any(not bracket.finished for bracket in seen)
    assert seen[-1].converged
    primals, duals = zip(*((bracket.primal, bracket.dual) for bracket in seen), strict=True)
    assert (np.diff(primals) <= 0).all()
    assert (np.diff(duals) >= 0).all()


@of_both_losses
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_l1_min_c_is_where_weights_begin(intercept: str, loss: str) -> None:
    given: Any = {"loss": loss, "intercept": intercept, "intercept_scaling": 2.0}
    for seed in range(4):
        X, y, _ = rows(seed, 30, 5)
        X = 10.0 ** (seed - 1) * (X + seed)
        labels = np.where(X[:, 0] > np.quantile(X[:, 0], 0.8), 2.0, y) if seed % 2 else y
        C = mm.l1_min_c(sp.csr_array(X) if seed == 2 else X, labels, **given)
        model = mm.LinearSVC(penalty="l1", tol=1e-9, **given)
        for factor in (0.99, 1.01):
            model.set_params(C=factor * C).fit(X, labels)
            weights = np.abs(model.coef_).max() * np.abs(X).max()
            if intercept == "penalized":
                weights = max(weights, np.abs(model.intercept_).max())
            assert (weights > 1e-9) == (factor > 1)
        if loss == "squared_hinge" and intercept != "free":
            fits = intercept == "penalized"
            theirs = sklearn.svm.l1_min_c(X, labels, fit_intercept=fits, intercept_scaling=2.0)
            assert_allclose(C, theirs)


def test_l1_min_c_where_no_weight_ever_helps() -> None:
    """A row in the midst of many of the other class costs the hinge the same by any plane."""
    X, y = np.array([[-1.0], [0.0], [1.0]]), [0, 1, 0]
    with pytest.raises(ValueError, match="No C gives a weight"):
        mm.l1_min_c(X, y)
    assert not mm.LinearSVC(penalty="l1", C=1e4).fit(X, y).coef_.any()
    with pytest.raises(ValueError, match="loss='log' is not valid"):
        mm.l1_min_c(X, y, loss="log")
