"""Refits after rows came, went or changed: the same answer as a cold fit, from a better start."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.estimators.linear.base import start_again
from maxmargin.problems.problem import Status

TOL = 1e-6
MACHINES = {
    "hinge": mm.LinearSVC(tol=TOL, loss="hinge"),
    "squared hinge": mm.LinearSVC(tol=TOL, loss="squared_hinge"),
    "penalised intercept": mm.LinearSVC(tol=TOL, intercept="penalized"),
    "coordinates": mm.LinearSVC(tol=TOL, solver="dual_cd"),
    "tube": mm.LinearSVR(tol=TOL, epsilon=0.3),
    "squared tube": mm.LinearSVR(tol=TOL, loss="squared_epsilon_insensitive", epsilon=0.3),
    "kernel": mm.SVC(tol=TOL, gamma=0.3),
    "kernel tube": mm.SVR(tol=TOL, gamma=0.3, epsilon=0.3),
}


def rows(n: int = 240, d: int = 4, seed: int = 0) -> tuple[Floats, Floats]:
    """Return rows and numbers, whose signs are labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 0.8 * rng.standard_normal(n)


def targets(machine: Any, t: Floats) -> Any:
    return t if hasattr(machine, "epsilon") else np.sign(t)


# ------------------------------------------------------------------- the same answer


def changed(X: Floats, t: Floats, how: str) -> tuple[Any, Floats]:
    """Return other rows and numbers: 1 in 20 changed, or all of them in another order."""
    rng = np.random.default_rng(1)
    n, few = len(X), max(2, len(X) // 20)
    if how == "added":
        new, more = rows(few, X.shape[1], seed=2)
        return np.vstack([X, new]), np.append(t, more)
    if how == "added among them":
        new, more = rows(few, X.shape[1], seed=2)
        order = rng.permutation(n + few)
        return np.vstack([X, new])[order], np.append(t, more)[order]
    if how == "removed":
        stay = rng.permutation(n)[few:]
        return X[stay], t[stay]
    if how == "repeated":
        chosen = np.append(np.arange(n), rng.integers(n, size=few))
        return X[chosen], t[chosen]
    if how == "other labels":
        other = t.copy()
        other[rng.permutation(n)[:few]] *= -1
        return X, other
    assert how == "sparse"
    return sp.csr_array(X), t


@pytest.mark.parametrize(
    "how", ["added", "added among them", "removed", "repeated", "other labels", "sparse"]
)
@pytest.mark.parametrize("name", MACHINES)
def test_a_refit_ends_where_a_cold_fit_does(name: str, how: str) -> None:
    machine = MACHINES[name]
    X, t = rows()
    warm = clone(machine).set_params(warm_start=True).fit(X, targets(machine, t))
    X2, t2 = changed(X, t, how)
    warm.fit(X2, targets(machine, t2))
    cold = clone(machine).fit(X2, targets(machine, t2))
    assert warm.status_ is Status.OPTIMAL
    assert warm.certificate_.holds(TOL)
    proof = mm.certify(warm, X2, targets(machine, t2))
    assert isinstance(proof, mm.Certificate)
    assert proof.holds(TOL)
    # Both objectives are within TOL above the same optimum.
    assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=2 * TOL)
    probe, _ = rows(50, seed=7)
    score = "predict" if hasattr(machine, "epsilon") else "decision_function"
    assert_allclose(getattr(warm, score)(probe), getattr(cold, score)(probe), atol=0.02)


@pytest.mark.parametrize("C", [0.01, 100.0])
@pytest.mark.parametrize("name", ["hinge", "coordinates", "tube", "kernel"])
def test_a_refit_with_another_cost_and_other_rows(name: str, C: float) -> None:
    machine = MACHINES[name]
    X, t = rows()
    y = targets(machine, t)
    warm = clone(machine).set_params(warm_start=True).fit(X, y)
    warm.set_params(C=C).fit(X[5:], y[5:])
    cold = clone(machine).set_params(C=C).fit(X[5:], y[5:])
    assert warm.certificate_.holds(TOL)
    assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=2 * TOL)


# ------------------------------------------------------------------- a better start


def gap_of_start(machine: Any, X: Any, y: Any) -> tuple[Floats, float, Any]:
    """Return the duals that a refit starts from, their duality gap with the weights, the problem.

    The gap is ½‖w − Σβx‖² plus what each row's loss and dual lack to be conjugate: both are 0 only
    at the optimum. (Σβ = 0 as well, which a free intercept asks for.)
    """
    (point, known), *_ = machine._last()
    (problem,) = clone(machine).formulate(X, y).problems
    beta = start_again(problem, point, known).beta
    residual = problem.loss.target - np.asarray(X @ point.w) - point.b
    loss = np.maximum(0.0, residual * problem.loss.target) * (problem.loss.high - problem.loss.low)
    away = point.w - np.asarray(X.T @ beta)
    return beta, float(0.5 * away @ away + (loss - beta * residual).sum()), problem


@pytest.mark.parametrize("shape", [(400, 4), (60, 300)])  # weights imply most duals, or none
def test_a_refit_of_the_same_rows_starts_at_the_solution_in_any_order(
    shape: tuple[int, int],
) -> None:
    X, t = rows(*shape)
    y = np.sign(t)
    machine = mm.LinearSVC(tol=1e-10).fit(X, y)
    beta, gap, problem = gap_of_start(machine, X, y)
    assert gap <= 1e-4 * machine.certificate_.primal
    signed = np.zeros(len(y))
    signed[machine.support_] = machine.dual_coef_[0]
    assert_allclose(beta, signed, atol=2e-3 * float(problem.loss.high.max()))
    order = np.random.default_rng(3).permutation(len(y))
    permuted, *_ = gap_of_start(machine, X[order], y[order])
    assert_array_equal(permuted, beta[order])
    as_sparse, *_ = gap_of_start(machine, sp.csr_array(X), y)
    assert_allclose(as_sparse, beta, atol=1e-12)


def test_rows_that_were_there_twice_keep_both_duals() -> None:
    X, t = rows(30, 60)
    X, y = np.vstack([X, X]), np.append(np.sign(t), np.sign(t))
    machine = mm.LinearSVC(tol=1e-10).fit(X, y)
    order = np.random.default_rng(3).permutation(len(y))
    beta, *_ = gap_of_start(machine, X[order], y[order])
    assert_allclose(X[order].T @ beta, machine.coef_[0], atol=1e-4)


# At C = 1 planes separate the wide rows, and a cold fit takes few steps.
@pytest.mark.parametrize(("shape", "C"), [((4000, 10), 1.0), ((300, 2500), 1e-3)])
def test_a_refit_after_few_rows_changed_takes_fewer_steps(shape: tuple[int, int], C: float) -> None:
    X, t = rows(*shape)
    y = np.sign(t)
    few, machine = len(y) // 100, mm.LinearSVC(C=C)
    for first, then in ((slice(few, None), slice(None)), (slice(None), slice(few, None))):
        warm = clone(machine).set_params(warm_start=True).fit(X[first], y[first])
        steps = warm.fit(X[then], y[then]).n_iter_
        assert steps < clone(machine).fit(X[then], y[then]).n_iter_
        assert warm.certificate_.holds(machine.tol)


def test_a_kernel_machine_of_high_cost_starts_at_its_solution() -> None:
    """In float32 the scores of such a start would hide the gap that it has."""
    X, t = rows(2000, 3)
    machine = mm.SVC(C=1e3, gamma=0.5, warm_start=True).fit(X, np.sign(t))
    before = machine.certificate_
    machine.fit(X, np.sign(t))
    assert machine.certificate_.holds(machine.tol)
    assert machine.certificate_.dual >= before.dual * (1 - 1e-9)


# ------------------------------------------------------------------- which rows are the same
