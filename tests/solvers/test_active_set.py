"""Active sets from a known solution: where they end is the optimum, by an independent reference."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, LinearProblem, Point, Problem
from maxmargin.solve import run_solver
from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.newton import Newton
from tests.support.linear_reference import Machine, reference


def overlapping(n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d) + rng.uniform(-2, 2, d)
    return X, np.where(X @ rng.standard_normal(d) + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)


def solved(problem: LinearProblem) -> Point:
    return run_solver(problem, Newton(1), tol=1e-10, polish=100).point


def descended(problem: LinearProblem, start: Point) -> list[Any]:
    solver = ActiveSet(1)
    assert solver.suits(problem, start)
    return list(solver.iterates(problem, start))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("ratio", [0.2, 1.5, 30.0])
def test_the_next_cost_is_solved_exactly(ratio: float, intercept: Intercept, sparse: bool) -> None:
    for seed in range(3):
        X, y = overlapping(120, 7, seed)
        rows = sp.csr_array(X) if sparse else X
        problem = Problem.linear(rows, losses.hinge(y, np.full(len(y), 0.3)), intercept, 0.5)
        last = solved(problem)
        problem = problem.scaled(ratio)
        found = descended(problem, problem.grown(last, ratio))[-1]
        machine = Machine(X, y, np.full(len(y), 0.3 * ratio), intercept=intercept.value, lift=0.5)
        best = reference(machine).primal
        assert found.relative_gap <= 1e-9
        assert machine.objective(found.w, found.b) == pytest.approx(best, rel=1e-7)
        assert machine.lower_bound(found.beta) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_tubes_and_quantiles_have_two_kinks_or_one(quantile: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(150)
    cost = rng.uniform(0.5, 2.0, 150)
    loss = losses.epsilon_insensitive(y, cost, 0.2)
    loss = loss._replace(low=2 * (1 - quantile) * loss.low, high=2 * quantile * loss.high)
    problem = Problem.linear(X, loss)
    last = solved(problem)
    problem = problem.scaled(2.0)
    found = descended(problem, problem.grown(last, 2.0))[-1]
    other = run_solver(problem, Newton(1), tol=1e-10, polish=100).point
    value = [
        0.5 * float(w @ w) + float(losses.values(problem.loss, X @ w + b).sum())
        for w, b in ((found.w, found.b), (other.w, other.b))
    ]
    assert found.relative_gap <= 1e-9
    assert value[0] == pytest.approx(value[1], rel=1e-8)


def test_equal_rows_and_equal_columns_do_no_harm() -> None:
    X, y = overlapping(60, 4, 5)
    X = np.vstack([X, X, X[:20]])
    y = np.concatenate([y, y, -y[:20]])
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    problem = Problem.linear(X, losses.hinge(y, np.ones(len(y))))
    last = solved(problem)
    problem = problem.scaled(3.0)
    best = reference(Machine(X, y, np.full(len(y), 3.0))).primal
    reached = run_solver(problem, Newton(1), tol=1e-8, start=problem.grown(last, 3.0)).point
    value = Machine(X, y, np.full(len(y), 3.0)).objective(reached.w, float(reached.b))
    assert value == pytest.approx(best, rel=1e-6)


def test_the_objective_never_rises_and_a_far_start_is_no_trap() -> None:
    X, y = overlapping(400, 6, 1)
    problem = Problem.linear(X, losses.hinge(y, np.ones(400)))
    start = Point(np.full(6, 3.0), -5.0, np.zeros(400))
    primal = [iterate.primal for iterate in descended(problem, start)]
    assert all(b <= a + 1e-9 * abs(a) for a, b in pairwise(primal))
    reached = run_solver(problem, Newton(1), tol=1e-8, start=start)
    assert reached.point.w == pytest.approx(solved(problem).w, rel=1e-3, abs=1e-3)


def test_what_it_cannot_do_it_does_not_suit() -> None:
    X, y = overlapping(50, 3, 0)
    hinge = Problem.linear(X, losses.hinge(y, np.ones(50)))
    start = Point(np.zeros(3), 0.0, np.zeros(50))
    squared = Problem.linear(X, losses.squared_hinge(y, np.ones(50)))
    absolute = Problem.linear(X, losses.epsilon_insensitive(y, np.ones(50), 0.0))
    small = replace(ActiveSet(), most_numbers=100)
    assert ActiveSet().suits(hinge, start)
    assert not ActiveSet().suits(hinge, Point(np.zeros(3)))
    assert not ActiveSet().suits(squared, start)
    assert not ActiveSet().suits(absolute, start)
    assert not small.suits(hinge, start)


def test_a_path_is_the_same_as_its_fits() -> None:
    X, y = overlapping(600, 8, 4)
    Cs = np.geomspace(1e-3, 1e2, 12)
    path = mm.regularization_path(X, y, Cs=Cs, exact=False, tol=1e-8)
    assert path.certified
    for k, C in enumerate(Cs):
        fit = mm.LinearSVC(C=C, tol=1e-8).fit(X, y)
        assert path.certificates[k].primal == pytest.approx(fit.certificate_.primal, rel=3e-8)
