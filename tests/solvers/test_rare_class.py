"""Machines one of whose classes has very few rows."""

from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Point, Problem, Status
from maxmargin.solve import run_solver
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.rare_class import RareClass
from tests.support.rare_class import Imbalanced, imbalanced

_TOL = 1e-4


def _fits(given: Imbalanced) -> None:
    """Fit both machines: they are optimal, and no worse than the best constant."""
    bounds = []
    for model in (mm.LinearSVC(**given.params), mm.SVC(kernel="linear", **given.params)):
        model.fit(given.X, given.y)
        found = model.certificate_
        assert model.status_ is Status.OPTIMAL
        assert found.primal <= given.best_constant * (1 + _TOL)
        bounds.append((found.primal, found.dual))
    (one, lower), (other, bound) = bounds
    assert max(lower, bound) <= min(one, other) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_all_are_solved(seed: int) -> None:
    _fits(imbalanced(seed, 6000))


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_a_thousand_are_solved(first: int) -> None:
    for seed in range(first, first + 50):
        _fits(imbalanced(seed))


def _ten_of_many(n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    X, y = random.normal(size=(n, 8)), np.zeros(n, int)
    X[:10] += 1
    y[:10] = 1
    return X, y


@pytest.mark.parametrize("solver", ["auto", "newton", "dual_cd"])
def test_ten_rows_of_thirty_thousand(solver: str) -> None:
    X, y = _ten_of_many(30_000)
    model = mm.LinearSVC(solver=solver).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.primal <= 20 * (1 + _TOL)


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_newtons_method_takes_few_steps(loss: str, intercept: Intercept) -> None:
    X, y = _ten_of_many(20_000)
    signs = np.where(y > 0, 1.0, -1.0)
    problem = Problem.linear(X, losses.CLASSIFYING[loss](signs, np.ones(len(y))), intercept)
    attempt = run_solver(problem, Newton(), tol=_TOL, max_iter=100)
    assert attempt.run.status is Status.OPTIMAL


def test_both_bounds_are_those_of_all_rows() -> None:
    given = imbalanced(4, 6000)
    signs = np.where(given.y > 0, 1.0, -1.0)
    problem = Problem.linear(given.X, losses.hinge(signs, np.full(len(signs), given.C)))
    optimum = run_solver(problem, Newton(), tol=1e-9).point
    best = (
        0.5 * optimum.w @ optimum.w
        + losses.values(problem.loss, given.X @ optimum.w + optimum.b).sum()
    )
    for iterate, _ in zip(RareClass().iterates(problem, Point()), range(5), strict=False):
        assert iterate.dual <= best * (1 + 1e-8)
        assert iterate.primal >= best * (1 - 1e-8)
        scores = given.X @ iterate.w + iterate.b
        primal = 0.5 * iterate.w @ iterate.w + losses.values(problem.loss, scores).sum()
        assert primal == pytest.approx(iterate.primal, rel=1e-9)
