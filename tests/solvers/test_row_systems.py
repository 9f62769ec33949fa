"""Newton systems with one unknown per active row, and raw word counts, which need them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import maxmargin as mm
from benchmarks.datasets import word_counts
from maxmargin._typing import Floats
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Point, Problem, Status
from maxmargin.solve import run_solver
from maxmargin.solvers.dual_cd import DualCD, DualCDThenNewton
from maxmargin.solvers.newton import Newton, RowSystem
from maxmargin.solvers.row_sums import Passes

RIDGES = {Intercept.FREE: 0.0, Intercept.PENALIZED: 4.0, Intercept.NONE: np.inf}
EXACT = Newton(many_rows=0, many_sparse_rows=0, cg_enough=1e-9, cg_steps=2000)


def counts(n: int, d: int, seed: int = 0) -> Floats:
    """Return rows with some frequent and many rare columns, of very different lengths."""
    rng = np.random.default_rng(seed)
    often = rng.lognormal(0.0, 1.0, (n, 1)) * 4.0 / (1 + np.arange(d)) ** 0.9
    return rng.poisson(often).astype(np.float64)


def system(X: Any, intercept: Intercept, settings: Newton, h: Floats) -> RowSystem:
    n = X.shape[0]
    loss = losses.hinge(np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n))
    passes = Passes(Problem.linear(X, loss, intercept, 0.5), 1, centred=False)
    found = RowSystem(settings, X, passes, RIDGES[intercept])
    found.activate(h)
    return found


def newton_step(X: Floats, h: Floats, ridge: float, gradient: Floats) -> Floats:
    """Return the step by the matrix written out, one unknown per column."""
    rows = np.column_stack([X, np.ones(len(X))])
    matrix = rows.T @ (h[:, np.newaxis] * rows) + np.eye(rows.shape[1])
    matrix[-1, -1] += ridge - 1.0
    if np.isinf(ridge):
        matrix[-1], matrix[:, -1], matrix[-1, -1] = 0.0, 0.0, 1.0
    return np.asarray(np.linalg.solve(matrix, -gradient))


@pytest.mark.parametrize("heavy", [1, 20, 90])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", list(RIDGES))
def test_steps_by_conjugate_gradients_solve_the_newton_system(
    intercept: Intercept, sparse: bool, heavy: int
) -> None:
    X, rng = counts(60, 90), np.random.default_rng(1)
    h = np.where(rng.random(60) < 0.7, 10 ** rng.uniform(-1, 3, 60), 0.0)
    gradient = rng.standard_normal(91)
    if intercept is Intercept.NONE:
        gradient[-1] = 0.0
    settings = replace(EXACT, least_heavy=heavy, most_heavy=heavy)
    given = sp.csr_array(X) if sparse else X
    found = system(given, intercept, settings, h).step(gradient)
    wanted = newton_step(X, h, RIDGES[intercept], gradient)
    assert_allclose(found, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("intercept", list(RIDGES))
def test_rough_steps_are_off_by_what_they_may(intercept: Intercept) -> None:
    X, rng = counts(200, 300), np.random.default_rng(2)
    h = np.where(rng.random(200) < 0.8, 50.0, 0.0)
    gradient = rng.standard_normal(301)
    gradient[-1] *= intercept is not Intercept.NONE
    settings = replace(EXACT, cg_enough=0.01, least_heavy=20, most_heavy=20)
    found = system(sp.csr_array(X), intercept, settings, h).step(gradient)
    wanted = newton_step(X, h, RIDGES[intercept], gradient)
    decrement = -float(gradient @ wanted)
    off = found - wanted
    scores = X @ off[:-1] + off[-1]
    ridge = RIDGES[intercept] if np.isfinite(RIDGES[intercept]) else 0.0
    size = float(off[:-1] @ off[:-1]) + ridge * off[-1] ** 2 + float(scores @ (h * scores))
    assert np.sqrt(size) <= 0.02 * np.sqrt(decrement)
    assert -float(gradient @ found) > 0.9 * decrement  # it still goes down


# ------------------------------------------------------------------- word counts


def small_counts() -> tuple[Any, Floats]:
    data = word_counts("word-counts", 2200, 2500)
    return data.X, data.y.astype(np.float64)


@pytest.mark.wide
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_word_counts_are_solved_to_1e_6_as_the_kernel_machine_solves_them(C: float) -> None:
    X, y = small_counts()
    model = mm.LinearSVC(C=C, tol=1e-6).fit(X, y)
    assert model.solver_ == "dual_cd"  # which hands over to Newton's method
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.holds(1e-6)
    other = mm.SVC(kernel="linear", C=C, tol=1e-2).fit(X, y).certificate_
    assert other.dual <= model.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.dual <= other.primal * (1 + 1e-9)


@pytest.mark.wide
def test_coordinate_descent_hands_over_after_so_many_visits() -> None:
    X, y = small_counts()
    problem = Problem.linear(X, losses.hinge(y, np.ones(len(y))), Intercept.PENALIZED)
    attempt = run_solver(problem, DualCD(visits=3), tol=1e-6)
    assert attempt.run.status is Status.STALLED
    points = [at for at, _ in DualCD(visits=3).steps(problem, Point())]
    assert_allclose(points[-1].w, X.T @ points[-1].beta, atol=1e-9)
    both = run_solver(problem, DualCDThenNewton(), tol=1e-6)
    assert both.run.status is Status.OPTIMAL
