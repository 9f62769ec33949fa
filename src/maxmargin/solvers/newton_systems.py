"""The linear systems of Newton's method: one unknown per column, or one per active row.

    (I + Σh(x, 1)(x, 1)ᵀ) p = −g       the last coordinate belongs to the intercept

With A the rows with h > 0, p = −g − (A, 1)ᵀμ where (AAᵀ + 1/h) μ − p_b = −Ag: cheaper when active
rows are fewer than columns.
"""

from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import Intercept, Problem
from maxmargin.solvers.passes import Passes, Sums

_RIDGE = 1e-13  # added to a unit diagonal
_MANY_COLUMNS = 2000
_MANY_ROWS = 4000  # active rows beyond which a system is solved by conjugate gradients
_CG_STEPS = 60
_CG_TOL = 1e-3


class System(Protocol):
    """Gradient sums and Newton steps at a point."""

    def prepare(self, beta: Floats, h: Floats, sums: Sums) -> tuple[Floats, Floats]:
        """Take note of the duals and curvatures; return Σβ(x − c) over β > 0 and β < 0."""
        ...

    def step(self, gradient: Floats) -> Floats:
        """Return the Newton step."""
        ...


def system_for(problem: Problem, passes: Passes) -> System:
    """Return the kind of system that is cheaper for this shape of data."""
    n, d = problem.X.shape
    wide = d > _MANY_COLUMNS or d > n
    return RowSystem(problem, passes) if wide else ColumnSystem(problem, passes)


class ColumnSystem:
    """One unknown per column."""

    def __init__(self, problem: Problem, passes: Passes) -> None:
        self.problem = problem
        self.passes = passes

    def prepare(self, beta: Floats, h: Floats, sums: Sums) -> tuple[Floats, Floats]:
        """Sum up the Hessian on the way."""
        gains, losses, self.hessian = self.passes.curvature(beta, h, sums)
        return gains, losses

    def step(self, gradient: Floats) -> Floats:
        """Return the Newton step, from the system with unit diagonal."""
        H, d = self.hessian, self.passes.d
        diagonal = np.arange(d + 1)
        H[diagonal[:d], diagonal[:d]] += 1.0
        if self.problem.intercept is Intercept.PENALIZED:
            H[d, d] += 1.0 / self.problem.lift**2
        elif self.problem.intercept is Intercept.NONE:
            H[d, :] = H[:, d] = 0.0
        if H[d, d] == 0.0:
            H[d, d] = 1.0  # no row is active: the line search bounds the step of b
        return -_solved(H, gradient[:, np.newaxis])[:, 0]


class RowSystem:
    """One unknown per active row; products of rows are kept from step to step."""

    def __init__(self, problem: Problem, passes: Passes) -> None:
        self.problem = problem
        self.passes = passes
        self.cache = _Products(problem.X, passes.centre)

    def prepare(self, beta: Floats, h: Floats, sums: Sums) -> tuple[Floats, Floats]:
        """Note which rows are active."""
        self.active = np.flatnonzero(h > 0)
        self.h = h[self.active]
        return self.passes.combinations(beta, sums)

    def step(self, gradient: Floats) -> Floats:
        """Return the Newton step."""
        if not len(self.active):
            return -gradient
        if len(self.active) > _MANY_ROWS:
            return self._by_gradients(gradient)
        g, g_b = gradient[:-1], float(gradient[-1])
        K = self.cache.of(self.active)
        K[np.arange(len(K)), np.arange(len(K))] += 1.0 / self.h
        free = self._intercept_ridge()
        products = self.cache.times(self.active, g)
        left, ones = _solved(K, np.column_stack([-products, np.ones(len(K))])).T
        p_b = (-g_b - left.sum()) / (ones.sum() + free) if np.isfinite(free) else 0.0
        mu = left + p_b * ones
        return np.append(-g - self.cache.combined(self.active, mu), p_b)

    def _intercept_ridge(self) -> float:
        """Return the second derivative of the intercept's penalty."""
        if self.problem.intercept is Intercept.PENALIZED:
            return 1.0 / self.problem.lift**2
        return 0.0 if self.problem.intercept is Intercept.FREE else np.inf

    def _by_gradients(self, gradient: Floats) -> Floats:
        """Return an approximate step by preconditioned conjugate gradients."""
        ridge = np.append(np.ones(self.passes.d), self._intercept_ridge())
        fixed = not np.isfinite(ridge[-1])
        ridge[-1] = 1.0 if fixed else ridge[-1]
        scale = ridge + np.append(self.cache.squares(self.active, self.h), self.h.sum())

        def times(p: Floats) -> Floats:
            v = self.h * (self.cache.times(self.active, p[:-1]) + p[-1])
            out: Floats = ridge * p + np.append(self.cache.combined(self.active, v), v.sum())
            if fixed:
                out[-1] = p[-1]
            return out

        x, r = np.zeros(len(gradient)), -gradient
        z = r / scale
        p, rz = z, float(r @ z)
        enough = _CG_TOL * rz
        for _ in range(_CG_STEPS):
            if rz <= enough:
                break
            Hp = times(p)
            a = rz / float(p @ Hp)
            x, r = x + a * p, r - a * Hp
            z = r / scale
            rz, before = float(r @ z), rz
            p = z + (rz / before) * p
        return x


class _Products:
    """Products of rows, measured from a centre: those asked for before are kept."""

    def __init__(self, X: Any, centre: Floats) -> None:
        self.X = X
        self.centre = centre
        self.rows = np.empty(0, np.int64)
        self.K = np.empty((0, 0))
        self._taken: tuple[Ints, Any] | None = None

    def of(self, rows: Ints) -> Floats:
        """Return a copy of the products of some rows with each other."""
        new = np.setdiff1d(rows, self.rows)
        if len(self.rows) + len(new) > 2 * _MANY_ROWS:
            self.rows, self.K, new = np.empty(0, np.int64), np.empty((0, 0)), rows
        if len(new):
            self._extend(new)
        order = np.argsort(self.rows)
        at = order[np.searchsorted(self.rows, rows, sorter=order)]
        return self.K[np.ix_(at, at)]

    def _extend(self, new: Ints) -> None:
        A = self._float(self.X[new])
        old = len(self.rows)
        every = np.concatenate([self.rows, new])
        K = np.empty((len(every), len(every)))
        K[:old, :old] = self.K
        across = _dense(A @ self._float(self.X[every]).T)
        K[old:], K[:old, old:] = across, across[:, :old].T
        self.rows, self.K = every, K

    def times(self, rows: Ints, p: Floats) -> Floats:
        """Return (x − c)·p for some rows."""
        return np.asarray(self._take(rows) @ p)

    def combined(self, rows: Ints, v: Floats) -> Floats:
        """Return Σ v(x − c) over some rows."""
        return np.asarray(self._take(rows).T @ v)

    def squares(self, rows: Ints, v: Floats) -> Floats:
        """Return Σ v(x − c)² over some rows, column by column."""
        A = self._take(rows)
        A = A.multiply(A) if sp.issparse(A) else A * A
        return np.asarray(A.T @ v).ravel()

    def _take(self, rows: Ints) -> Any:
        if self._taken is None or not np.array_equal(self._taken[0], rows):
            self._taken = rows, self._float(self.X[rows])
        return self._taken[1]

    def _float(self, rows: Any) -> Any:
        rows = rows.astype(np.float64, copy=False)
        if not self.centre.any():
            return rows
        return _dense(rows) - self.centre  # few rows, or they would not be centred


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a positive system (upper triangle given), from unit diagonal.

    A ridge of 1e-13, or as much more as it takes, keeps rounding from making it indefinite.
    """
    diagonal = np.arange(len(matrix))
    unit = 1.0 / np.sqrt(matrix[diagonal, diagonal])
    matrix *= unit[:, np.newaxis]
    matrix *= unit
    ridge = _RIDGE
    while True:
        matrix[diagonal, diagonal] = 1.0 + ridge
        try:
            factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 10
        else:
            solved = scipy.linalg.cho_solve(factor, unit[:, np.newaxis] * right, check_finite=False)
            return np.asarray(unit[:, np.newaxis] * solved)


def _dense(K: Any) -> Floats:
    return np.asarray(K.toarray() if sp.issparse(K) else K)
