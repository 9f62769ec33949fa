"""Decomposition beside quadratic programs: pairs, gaps, active-set steps, sources of values."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels import RBF
from maxmargin.loops.records import Loss, Variables
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Iterate, KernelProblem, Point, Problem
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solvers.decomposition import Decomposition, Equations, active_set_step, measure
from tests.support.kernel_reference import Machine, optimum, rbf, stated


def rows_of(n: int, name: str) -> tuple[Floats, Any]:
    """Return rows with labels ±1, or with targets."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    s = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 0.8 + 0.3 * rng.normal(size=n)
    return X, s if "SVR" in name else np.where(s > 0, 1.0, -1.0)


def variables_of(machine: Machine, x: Floats) -> Variables:
    """Return the variables of a machine at x."""
    K, target, low, high = (np.asarray(part, float) for part in machine[:4])
    a = np.bincount(machine.rows, x, minlength=len(K))
    shift = np.zeros(len(x))
    return Variables(target, low, high, shift, machine.groups, x, machine.rows, K @ a)


def feasible(machine: Machine, part: float = 0.5) -> Floats:
    """Return duals within their bounds with the right sums, not the best ones."""
    x = np.zeros(len(machine.rows))
    for g, total in enumerate(machine.totals):
        mine = machine.groups == g
        bound = np.asarray((machine.high if total >= 0 else -machine.low)[mine], float)
        if total:
            x[mine] = float(total) * bound / bound.sum()
    return x


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_pairs_solve_the_whole_problem_as_one_block(name: str) -> None:
    X, y = rows_of(40, name)
    machine = stated(name, rbf(0.5).gram(X), y)
    order = np.argsort(machine.groups, kind="stable")
    v = variables_of(machine, feasible(machine))
    sums = [v.x[machine.groups == g].sum() for g in range(len(machine.totals))]
    K = np.ascontiguousarray(np.asarray(machine.K, float)[np.ix_(v.at[order], v.at[order])])
    stops = np.searchsorted(machine.groups[order], np.arange(len(machine.totals)), side="right")
    x, low, high = v.x[order], v.low[order], v.high[order]
    r = v.target[order] - v.f[v.at[order]]
    loops.smo.pairs(K, K.diagonal().copy(), r, x, low, high, stops, 1e-10, 10**6)
    v.x[order] = x
    assert_allclose(r, v.target[order] - K @ x, atol=1e-9)
    below, above = optimum(machine)
    size = max(abs(above), 1e-3)
    assert machine.lower_bound(v.x) >= below - 1e-7 * size
    assert (v.x >= v.low).all()
    assert (v.x <= v.high).all()
    for g, total in enumerate(sums):
        assert v.x[machine.groups == g].sum() == pytest.approx(total, abs=1e-10)


def test_a_row_of_zeros_frees_the_sum() -> None:
    X, y = rows_of(30, "SVC")
    machine = stated("SVC", rbf(0.5).gram(X), y, fit_intercept=False)
    v, K = variables_of(machine, np.zeros(30)), np.zeros((31, 31))
    K[:30, :30] = np.asarray(machine.K, float)
    r, x = np.append(v.target, 0.0), np.zeros(31)
    low, high = np.append(v.low, -np.inf), np.append(v.high, np.inf)
    loops.smo.pairs(K, K.diagonal().copy(), r, x, low, high, np.array([31]), 1e-10, 10**6)
    v.x[:] = x[:30]
    below, above = optimum(machine)
    assert machine.lower_bound(v.x) >= below - 1e-7 * abs(above)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_the_gap_is_that_of_both_objectives(name: str) -> None:
    X, y = rows_of(30, name)
    machine = stated(name, rbf(0.5).gram(X), y)
    v = variables_of(machine, feasible(machine))
    gap, dual, b, violation = measure(v, len(machine.totals))
    a = np.bincount(machine.rows, v.x, minlength=len(X)).astype(float)
    primal = machine.objective(a, b)
    assert dual == pytest.approx(machine.lower_bound(v.x), rel=1e-10)
    assert gap == pytest.approx(primal - dual, rel=1e-8)
    best = machine.objective(a, machine.best_intercepts(a))
    assert -1e-9 <= primal - best <= 0.05 * gap + 1e-9
    assert violation > 0


def test_a_step_ends_at_the_bounds_that_a_quadratic_program_ends_at() -> None:
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(1)
    A = rng.normal(size=(15, 15)) + 5 * np.eye(15)
    K, r = A.T @ A, 10 * rng.normal(size=15)
    bound = np.full(15, 0.3)
    nothing = np.zeros((15, 0)), np.zeros(0)
    step = active_set_step(Equations(K, r, bound, bound, *nothing), exact=True)
    expected = lsq_linear(A, np.linalg.solve(A.T, r), (-0.3, 0.3), tol=1e-14)
    assert step is not None
    assert_allclose(step, expected.x, atol=1e-5)


def problem_of(n: int, epsilon: float, groups: int, **options: Any) -> KernelProblem:
    """Return a machine on n rows, with options of its Gram matrix."""
    X, y = rows_of(n, "SVR" if epsilon else "SVC")
    loss = Loss(y, np.minimum(y, 0.0) * 5, np.maximum(y, 0.0) * 5, np.zeros(n), 0.0)
    if epsilon:
        loss = Loss(y, np.full(n, -5.0), np.full(n, 5.0), np.zeros(n), epsilon)
    group = np.zeros(n, np.int64) if groups else np.full(n, -1)
    gram = Gram(options.pop("kernel", RBF(0.5)), X, **options)
    return Problem.kernel(gram, loss, np.arange(n), group, np.zeros(groups))


def iterates(method: Decomposition, n: int, epsilon: float, groups: int) -> list[Iterate]:
    """Return the first iterates of a machine on n rows."""
    return iterates_of(method, problem_of(n, epsilon, groups))


def iterates_of(method: Decomposition, problem: KernelProblem) -> list[Iterate]:
    """Return the iterates up to the gap that the method wants."""
    found = []
    with one_blas_thread():
        for iterate in method.iterates(problem, Point()):
            found.append(iterate)
            if iterate.converged or (iterate.finished and iterate.relative_gap <= method.wanted):
                break
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("groups", [0, 1])
def test_a_matrix_and_rows_computed_when_needed_give_the_same(epsilon: float, groups: int) -> None:
    method = Decomposition(wanted=1e-9)
    on_matrix = iterates(method, 600, epsilon, groups)[-1]
    on_rows = iterates(replace(method, most_on_matrix=0), 600, epsilon, groups)[-1]
    for found in (on_matrix, on_rows):
        assert found.relative_gap <= 1e-9
    assert on_matrix.dual == pytest.approx(on_rows.dual, rel=1e-8)
    assert_allclose(on_matrix.beta, on_rows.beta, atol=1e-3)


SAMPLING = Decomposition(wanted=1e-8, most_on_matrix=150, sampled=300)  # 2000 rows: 500, then 150


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("groups", [0, 1])
def test_a_sample_solved_first_does_not_change_the_answer(epsilon: float, groups: int) -> None:
    found = iterates(SAMPLING, 2000, epsilon, groups)
    plain = iterates(replace(SAMPLING, sampled=10**6), 2000, epsilon, groups)
    first = next(k for k, iterate in enumerate(found) if iterate.finished)
    assert first > 0
    assert found[first].beta.any()  # it starts from what the sample gave
    assert not plain[0].beta.any()
    for iterate in found[:first]:  # of all rows, feasible, and known to be no answer
        assert iterate.beta.shape == (2000,)
        assert np.abs(iterate.beta).max() <= 5.0
        assert iterate.relative_gap == np.inf
        if groups:
            assert iterate.beta.sum() == pytest.approx(0.0, abs=1e-9)
    assert found[-1].relative_gap <= 1e-8
    assert found[-1].dual == pytest.approx(plain[-1].dual, rel=2e-8)


def test_a_sample_solved_first_depends_on_neither_memory_nor_threads() -> None:
    last = [
        iterates_of(SAMPLING, problem_of(2000, 0.0, 1, memory=memory, threads=threads))[-1]
        for memory, threads in ((1, 1), (10**6, 2), (10**9, 2))
    ]
    for other in last[1:]:
        np.testing.assert_array_equal(other.beta, last[0].beta)


class CountedRBF(RBF):
    """A Gaussian kernel that counts the values that it computes."""

    def __init__(self, gamma: float = 1.0) -> None:
        super().__init__(gamma)
        self.count = 0

    def fill_tile(self, a: Any, b: Any, out: Any) -> None:
        self.count += out.size
        super().fill_tile(a, b, out)


def test_a_sample_solved_first_saves_kernel_values() -> None:
    counts = []
    for sampled in (1000, 10**6):
        kernel = CountedRBF(0.5)
        problem = problem_of(6000, 0.0, 1, kernel=kernel, threads=1)
        iterates_of(Decomposition(1e-3, most_on_matrix=300, sampled=sampled), problem)
        counts.append(kernel.count)
    assert counts[0] < 0.95 * counts[1]


def test_float32_goes_on_where_its_rounding_ended_it_from_scores_in_float64() -> None:
    problem = problem_of(2500, 0.0, 1)  # so many that tiles are in float32
    assert problem.features.gram.tiles.dtype == np.float32
    gaps, start = [], Point()
    for _ in range(3):
        with one_blas_thread():
            for iterate in Decomposition(1e-9).iterates(problem, start):
                if iterate.finished and iterate.relative_gap <= 1e-9:
                    break
        start = Point(None, 0.0, iterate.beta)
        loss, x = problem.loss, iterate.beta.copy()
        v = Variables(*loss[:4], problem.groups, x, problem.row, problem.features.scores(x))
        found = measure(v, 1)
        gaps.append(found.gap / found.dual)
    assert gaps[1] < 0.1 * gaps[0]
    assert gaps[2] < 1e-8
