"""Machines one of whose classes has very few rows."""

import contextlib
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.certificates import certify
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


@pytest.mark.parametrize("intercept", [Intercept.FREE, Intercept.PENALIZED])
def test_both_bounds_are_those_of_all_rows(intercept: Intercept) -> None:
    X, y = _ten_of_many(5000)
    problem = Problem.linear(X, losses.hinge(np.where(y > 0, 1.0, -1.0), np.ones(5000)), intercept)
    optimum = run_solver(problem, Newton(), tol=1e-9).point
    best = certify(problem, optimum).primal
    rounds = 0
    for iterate in RareClass().iterates(problem, Point()):
        assert iterate.dual <= best * (1 + 1e-8)
        assert iterate.primal >= best * (1 - 1e-8)
        found = certify(problem, Point(iterate.w, iterate.b, iterate.beta), keep_intercept=True)
        assert found.primal == pytest.approx(iterate.primal, rel=1e-9)
        rounds += iterate.finished
        if iterate.converged:
            break
    assert rounds <= 20


def _interrupt(progress: Any) -> None:
    raise KeyboardInterrupt


_LIMITS: list[dict[str, Any]] = [
    {"max_time": 1e-9},
    {"max_iter": 1},
    {"max_iter": 3},
    {"callback": _interrupt},
]
_MACHINES = [
    mm.LinearSVC(),
    mm.LinearSVC(loss="squared_hinge"),
    mm.LinearSVC(penalty="l1"),
    mm.LinearSVC(solver="dual_cd", intercept="none"),
    mm.LinearSVC(multi_class="crammer_singer"),
    mm.SVC(kernel="linear"),
    mm.LinearSVR(),
    mm.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.0),
    mm.QuantileSVR(quantile=0.9, kernel="linear"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("machine", _MACHINES, ids=str)
def test_whatever_stops_a_fit_it_is_no_worse_than_a_constant(machine: Any) -> None:
    given = imbalanced(3, 1000)
    X = 30 * (given.X if isinstance(given.X, np.ndarray) else given.X.toarray())
    constants = np.concatenate([[0.0], np.linspace(-1, 1, 201)])
    if getattr(machine, "intercept", "free") == "none":
        constants = constants[:1]
    for limits in _LIMITS:
        model = clone(machine).set_params(**limits)
        with contextlib.suppress(KeyboardInterrupt):
            model.fit(X, given.y)
        solved = model.solution(X, given.y)
        for each in solved:
            loss = getattr(each.problem, "loss", None)
            if loss is None:  # all classes together: scores of 0 and 2 make the rare rows pay 2
                costs = [2.0 * given.y.sum()]
            else:
                costs = [losses.values(loss, np.full(len(X), b)).sum() for b in constants]
            assert model.certificate_.primal <= min(costs) * (1 + 1e-9)
