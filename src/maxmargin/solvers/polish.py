"""The last step: solve the optimality conditions on the free duals as linear equations.

Once it is known which duals are at a bound, the others (the free ones, F) and b are determined by

    f = t − slope·sign(β)  on F,     Σβ = 0  (free intercept),      w = Σβx

which direct solution satisfies to rounding, so that fits agree to many digits whatever the order
of the rows. Where rows depend on each other β is not unique: the nearest solution is taken.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg

from maxmargin._typing import Floats
from maxmargin.problems.problem import Intercept
from maxmargin.solvers.row_sums import AnyLinearProblem, FreeRows, Passes

_MOST_FREE = 3000
_MOST_NUMBERS = 1 << 23  # of the free rows written out densely
_MOST_SINGULAR = 1000
_RANK = 1e-11
_REFINEMENTS = 3


class Polished(NamedTuple):
    """A point at which the conditions hold; b belongs to centred rows."""

    w: Floats
    b: float
    rounding: float  # of a duality gap computed here


def polished(problem: AnyLinearProblem, passes: Passes, duals: str, b: float) -> Polished | None:
    """Return the point with the free ones of some duals, or None if they were not the right ones.

    Its duals are written to "polished".
    """
    # In general position no more than d + 1 rows lie on the margin: many more are a wrong guess.
    most = min(_MOST_FREE, _MOST_NUMBERS // passes.d, 50 + 10 * passes.d)
    count = passes.count_free(duals)
    if count > most:
        return None
    implied, sizes = passes.combination(duals), passes.measure(duals)
    if not count:  # every dual is at a bound: nothing is left to solve for
        passes.copy(duals, "polished")
        return Polished(implied, b, 0.0)
    free, epsilon, constant = passes.take_free(duals), passes.facts.epsilon, problem.constant
    rows, beta = free.X, free.beta.copy()
    wanted = free.target - epsilon * np.sign(beta)
    border: _Border | _RowBorder = (
        _Border(problem, rows) if len(beta) > passes.d else _RowBorder(problem, rows)
    )
    penalised = problem.intercept is Intercept.PENALIZED
    for _ in range(_REFINEMENTS):
        moved = beta - free.beta
        w, summed = implied + rows.T @ moved, sizes.total + float(moved.sum())
        if penalised:
            b = constant**2 * summed
        step, step_b = border.solve(wanted - rows @ w - b, summed)
        beta += step
        b += step_b
    slack = 1e-9 * max(sizes.largest, float(np.abs(beta).max()))
    if not np.isfinite(beta).all() or not _within(free, epsilon, beta, wanted, slack):
        return None
    passes.replace(duals, "polished", free.number, beta)
    w, sizes = passes.combination("polished"), passes.measure("polished")
    if penalised:
        b = constant**2 * sizes.total
    # Sums of many βx carry more rounding than the equations for w itself.
    step_w, step_b = border.corrected(wanted - rows @ w - b)
    reach = float((np.abs(rows) @ np.abs(w)).max()) + abs(b) + 1.0
    rounding = 16 * np.finfo(np.float64).eps * sizes.size * reach
    return Polished(w + step_w, b + step_b, rounding)


def _within(free: FreeRows, epsilon: float, changed: Floats, wanted: Floats, slack: float) -> bool:
    """Return whether the free duals, changed, are within their bounds and on their side."""
    if (changed < free.low - slack).any() or (changed > free.high + slack).any():
        return False
    sides = np.sign(free.target - wanted)  # of the slope that the equation took
    return epsilon == 0.0 or bool((sides * changed >= -slack).all())


class _Border:
    """The equations for changes of the free duals and of b, in a basis of what rows can do."""

    def __init__(self, problem: AnyLinearProblem, rows: Floats) -> None:
        self.free = problem.intercept is Intercept.FREE
        ones, self.width = np.ones((len(rows), 1)), rows.shape[1]
        if problem.intercept is Intercept.PENALIZED:
            rows = np.hstack([rows, problem.constant * ones])
        size = np.sqrt((rows * rows).mean(axis=0))
        unit = rows / np.where(size > 0, size, 1.0)
        spanning = np.hstack([unit, ones]) if self.free else unit
        self.size = np.where(size > 0, size, 1.0)
        self.spanning = spanning
        basis, triangle, _ = scipy.linalg.qr(spanning, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > _RANK * diagonal[0]).sum()) if len(diagonal) else 0
        self.basis = basis[:, :rank]
        across = self.basis.T @ rows
        self.matrix = across @ across.T
        self.ones = self.basis.T @ ones[:, 0]

    def solve(self, residual: Floats, total: float) -> tuple[Floats, float]:
        """Return the changes that make the residuals vanish, and Σβ with a free intercept."""
        right = self.basis.T @ residual
        if not self.free:
            return self.basis @ least_solution(self.matrix, right), 0.0
        matrix = np.block([[self.matrix, self.ones[:, np.newaxis]], [self.ones, np.zeros(1)]])
        solution = least_solution(matrix, np.append(right, -total))
        return self.basis @ solution[:-1], float(solution[-1])

    def corrected(self, residual: Floats) -> tuple[Floats, float]:
        """Return the smallest changes of w and b that make the residuals vanish."""
        change = np.linalg.lstsq(self.spanning, residual, rcond=_RANK)[0]
        w = change[: self.width] / self.size[: self.width]
        return np.asarray(w), float(change[-1]) if self.free else 0.0


class _RowBorder:
    """The same equations where rows are fewer than columns: in their products."""

    def __init__(self, problem: AnyLinearProblem, rows: Floats) -> None:
        self.free = problem.intercept is Intercept.FREE
        self.rows = rows
        self.products = rows @ rows.T
        if problem.intercept is Intercept.PENALIZED:
            self.products += problem.constant**2

    def solve(self, residual: Floats, total: float) -> tuple[Floats, float]:
        """Return the changes that make the residuals vanish, and Σβ with a free intercept."""
        if not self.free:
            return least_solution(self.products, residual), 0.0
        ones = np.ones(len(residual))
        matrix = np.block([[self.products, ones[:, np.newaxis]], [ones, np.zeros(1)]])
        solution = least_solution(matrix, np.append(residual, -total))
        return solution[:-1], float(solution[-1])

    def corrected(self, residual: Floats) -> tuple[Floats, float]:
        """Return small changes of w that make the residuals vanish."""
        return self.rows.T @ least_solution(self.products, residual), 0.0


def least_solution(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a symmetric system, scaled to unit diagonal."""
    if not len(right):
        return right
    size = np.sqrt(np.maximum(np.abs(matrix).max(axis=1), 1e-300))
    scaled = matrix / size / size[:, np.newaxis]
    with warnings.catch_warnings():
        warnings.simplefilter("error", scipy.linalg.LinAlgWarning)
        try:
            solved = scipy.linalg.solve(scaled, right / size, assume_a="sym", check_finite=False)
        except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
            if len(matrix) > _MOST_SINGULAR:
                return np.full(len(matrix), np.nan)  # taken as failure by the caller
            solved = np.linalg.lstsq(scaled, right / size, rcond=1e-14)[0]
    return np.asarray(solved / size)
