"""The compiled path over costs: gaps recomputed in more digits, and Clarabel's objectives."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin._typing import Floats
from maxmargin.loops.records import Loss, Path
from maxmargin.problems.duality import best_intercept
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solvers.decomposition import OnMatrix, Workspace
from tests.support.kernel_reference import Machine, Spec, laplacian, optimum, poly, rbf, stated

TOL = 1e-4
COSTS = np.logspace(-4, 5, 10)
KERNELS = {
    "rbf": rbf(1.0),
    "wide rbf": rbf(0.01),
    "narrow rbf": rbf(100.0),
    "poly": poly(3),
    "poly without constant": poly(2, coef0=0.0),
    "laplacian": laplacian(0.5),
}


def solved(
    machine: Machine, costs: Any, tol: float = TOL, dtype: Any = np.float64, rounds: int = 20_000
) -> Path:
    """Return the path of a machine stated at C = 1, with the scores of all rows."""
    n = len(machine.K)
    K = np.ascontiguousarray(machine.K, dtype=dtype)
    target, low, high = (np.asarray(part, float) for part in machine[1:4])
    loss = Loss(target, low, high, np.zeros(len(target)), 0.0)
    problem = OnMatrix.stated(loss, len(machine.totals) > 0, machine.rows)
    with one_blas_thread():
        return problem.solve(
            K, np.asarray(costs, float), tol, Workspace.of(n, dtype), np.arange(n), rounds
        )


class Bounds(NamedTuple):
    """Both objectives at a point, recomputed."""

    primal: float
    dual: float
    nothing: float

    def within(self, tol: float) -> bool:
        """Return whether the gap is at most tol, or both are as good as 0."""
        size = max(abs(self.primal), abs(self.dual))
        return self.primal - self.dual <= max(tol * size, self.nothing)


def bounds(machine: Machine, a: Floats, b: float) -> Bounds:
    """Return the objectives of coefficients, one a row, and an intercept."""
    two = len(machine.rows) > len(machine.K)
    beta = np.append(np.maximum(a, 0), np.minimum(a, 0)) if two else a
    intercepts = np.array([b])[: len(machine.totals)]
    primal, dual = machine.objective(a, intercepts), machine.lower_bound(beta)
    return Bounds(primal, dual, 1e-12 * machine.worth())


def rows_of(n: int, name: str, seed: int = 0) -> tuple[Floats, Floats]:
    """Return rows with labels ±1, or with targets."""
    rng = np.random.default_rng(seed + n)
    X = rng.normal(size=(n, 3))
    if name == "SVR":
        return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 0.8 + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def check(name: str, spec: Spec, X: Floats, y: Floats, weight: Any = None, free: bool = True,
          costs: Any = COSTS) -> None:  # fmt: skip
    """Assert that each gap is what it is said to be, and at most TOL; and the scores f of rows."""
    K = spec.gram(X)

    def at(C: float) -> Machine:
        return stated(name, K, y, weight, C=C, fit_intercept=free)

    found = solved(at(1.0), costs)
    for c, C in enumerate(costs):
        a, b = found.coefficients[c], found.intercepts[c]
        assert found.gaps[c] <= TOL, (C, found.gaps[c])
        assert bounds(at(C), a, b).within(TOL), (C, bounds(at(C), a, b))
        scores = np.asarray(K @ a + b, float)
        terms = float((np.abs(K) @ np.abs(a)).max()) + abs(b)
        assert np.abs(scores - found.scores[c]).max() <= 4e-16 * (8 + len(y)) * terms
    if not free:
        assert not found.intercepts.any()


@pytest.mark.parametrize("free", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_gaps_at_all_costs(name: str, kernel: str, free: bool) -> None:
    for n in (3, 4, 7, 13, 40):
        check(name, KERNELS[kernel], *rows_of(n, name), free=free)


def test_a_gap_that_does_not_always_fall_is_no_standstill() -> None:
    """On the way to C = 1e5 it rises for many checks, while the dual objective still grows."""
    check("SVR", rbf(0.01), *rows_of(400, "SVR"), free=False)
    check("SVC", rbf(1.0), *rows_of(400, "SVC"), costs=[1e-4, 0.1, 10.0, 1e3])


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_weights_of_which_some_are_zero(name: str, kernel: str) -> None:
    for n in (8, 40):
        X, y = rows_of(n, name)
        weight = np.random.default_rng(n).uniform(0, 3, n)
        weight[2::4] = 0.0
        check(name, KERNELS[kernel], X, y, weight)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_repeated_rows_with_conflicting_labels_and_a_class_of_two_rows(kernel: str) -> None:
    X, y = rows_of(12, "SVC")
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    y[::4] *= -1
    check("SVC", KERNELS[kernel], X, y)
    check("SVC", KERNELS[kernel], X, np.where(np.arange(36) < 2, 1.0, -1.0))


@pytest.mark.parametrize("name", ["SVC", "SVR"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_objectives_beside_clarabel(name: str, kernel: str) -> None:
    X, y = rows_of(30, name)
    K, costs = KERNELS[kernel].gram(X), [1e-2, 1.0, 1e2]
    found = solved(stated(name, K, y), costs)
    for c, C in enumerate(costs):
        machine = stated(name, K, y, C=C)
        below, above = optimum(machine)
        own = bounds(machine, found.coefficients[c], found.intercepts[c])
        assert own.primal <= above + TOL * abs(above)
        assert own.dual >= below - TOL * abs(below)
        assert own.dual <= above * (1 + 1e-9)
        assert own.primal >= below * (1 - 1e-9)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_gaps_on_a_matrix_of_single_precision(name: str) -> None:
    """With 2500 rows the search has its matrix in float32: gaps hold for the exact one."""
    rng = np.random.default_rng(0)
    X, y = rows_of(2500, name)
    X = X + 0.01 * rng.normal(size=X.shape)
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    K = np.exp(-0.5 * np.maximum(distances, 0.0))
    costs = [0.01, 1.0, 30.0]
    found = solved(_plain(name, K, y, 1.0), costs, dtype=np.float32)
    for c, C in enumerate(costs):
        a, b = found.coefficients[c], found.intercepts[c]
        machine = _plain(name, K, y, C)
        r = machine.target - (K @ a)[machine.rows] - b
        losses = np.maximum(np.maximum(machine.high * r, machine.low * r), 0).sum()
        half = 0.5 * a @ K @ a
        beta = np.append(np.maximum(a, 0), np.minimum(a, 0)) if name == "SVR" else a
        assert (beta >= machine.low).all()
        assert (beta <= machine.high).all()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        primal, dual = half + losses, machine.target @ beta - half
        assert primal - dual <= TOL * max(abs(primal), abs(dual)), C


def _plain(name: str, K: Floats, y: Floats, C: float) -> Machine:
    """Return a machine in float64, whose large matrix is not copied into more digits."""
    small = stated(name, np.zeros((len(y), 1)), y, C=C)
    target, low, high = (np.asarray(part, float) for part in small[1:4])
    return Machine(K, target, low, high, small.rows, small.groups, small.totals)  # type: ignore[arg-type]


def test_without_rounds_the_gap_is_still_told() -> None:
    X, y = rows_of(60, "SVC")
    machine = stated("SVC", rbf(1.0).gram(X), y, C=100.0)
    found = solved(machine, [1.0], rounds=1)
    own = bounds(machine, found.coefficients[0], float(found.intercepts[0]))
    size = max(abs(own.primal), abs(own.dual))
    assert found.gaps[0] > TOL
    # The intercept that is returned is the best one; the gap is told at the solver's own.
    assert 1 - 1e-6 <= found.gaps[0] / ((own.primal - own.dual) / size) <= 1.1


def test_the_same_problem_has_the_same_path_to_the_last_bit() -> None:
    X, y = rows_of(60, "SVC")
    machine = stated("SVC", rbf(1.0).gram(X), y)
    for one, other in zip(solved(machine, COSTS), solved(machine, COSTS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_intercept_in_the_middle_when_no_variable_is_free() -> None:
    """As many rows in both classes, and a small cost: then all are at their bounds."""
    X, y = rows_of(40, "SVC")
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    K = rbf(0.5).gram(X)
    found = solved(stated("SVC", K, y), [1e-3])
    assert set(np.abs(found.coefficients[0])) == {1e-3}
    r = y - np.asarray(K @ found.coefficients[0], float)
    assert found.intercepts[0] == pytest.approx((r[y > 0].min() + r[y < 0].max()) / 2, abs=1e-12)


@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_intercepts_are_those_of_least_loss(name: str) -> None:
    X, y = rows_of(70, name)
    weight = np.random.default_rng(0).integers(0, 3, 70).astype(float)
    K = rbf(0.5).gram(X)
    machine = stated(name, K, y, weight)
    found = solved(machine, COSTS)
    for C, a, b in zip(COSTS, found.coefficients, found.intercepts, strict=True):
        target, low, high = (np.asarray(part, float) for part in machine[1:4])
        loss = Loss(target, C * low, C * high, np.zeros(len(target)), 0.0)
        scores = np.asarray(K @ a, float)[machine.rows]
        assert b == pytest.approx(best_intercept(loss, scores, 0.0), abs=1e-9)
