"""Newton's method on a factor of the Gram matrix: a kernel machine as the linear one that it is.

With K = ZZᵀ the rows of Z are points whose linear machine has the same losses, duals and optimum.
Where K has a low rank, or spans many orders of magnitude, pairs of duals hardly get ahead, and
the linear machine's Newton method takes a few steps. It costs n² kernel values and n·rank² work.

A ν-form, whose groups have intercepts of their own and sums other than 0, becomes such a machine,
too. A row of zeros for each group has a target that is never met, so that its dual is at its bound:
that is what the sum of the others has to be. Half the distance of the two intercepts, s, is the
weight of a column ±L. It should not be penalised, so its penalty is taken about the best value s₀
so far (a proximal point): with a large L that moves the sums by (s − s₀)/L², and s₀ = s ends it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
from scipy.linalg.lapack import dpstrf

from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Linear
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import feasible_start
from maxmargin.problems.problem import Iterate, KernelProblem, LinearProblem, Point, Problem
from maxmargin.solvers.decomposition import SplitTube, is_nothing, measure
from maxmargin.solvers.newton import Newton

# ------------------------------------------------------------------- pivoted factor
#
# Points with given products: Z with ZZᵀ = K, by the Cholesky factor with pivoting.


def factor_with_pivots(K: Floats, precision: float) -> tuple[Floats, Ints]:
    """Return Z with ZZᵀ = K, and the rows of K in which Z is a lower triangle.

    The diagonal of K is scaled to 1 for the while. It stops where what is left of every row is at
    most ``precision`` of its diagonal entry.
    """
    unit = np.sqrt(np.maximum(K.diagonal(), 0.0))
    unit[unit == 0.0] = 1.0
    scaled = K / unit
    scaled /= unit[:, np.newaxis]
    # It is symmetric, so that its transpose is the same in the order that LAPACK works in.
    factor, pivots, rank, _ = dpstrf(scaled.T, tol=precision, lower=1, overwrite_a=1)
    triangle = np.tril(factor[:, :rank])
    del scaled, factor  # large
    triangle *= unit[pivots - 1, np.newaxis]
    Z = np.zeros((len(K), max(rank, 1)))
    Z[pivots - 1, :rank] = triangle
    return Z, (pivots[:rank] - 1).astype(np.int64)


# ------------------------------------------------------------------- the method


MOST_ROWS = 2000  # whose matrix is factorised
_THIN = 4  # rows for each column: then the rows of the linear kernel are the factor
_NEVER_MET = 4.0  # of the largest residual: where the target of a row of zeros is
_PROX_PARAMETER = 1e8  # of those residuals over the sum of a group: L²
_CENTRES = 6  # s₀ after s₀, of which two are enough where nothing is degenerate
_STEPS = 100  # Newton steps for each of them
_FIRST_CAP, _CAP_RATIO = 1e2, 1e3  # of duals that make scores of the size of the targets
_WORTH_CAPS = 2  # caps, below which it starts with the bounds as they are
_AT_CAP = 1 - 1e-9
_BALANCED = 1e-14  # of the sum of a group, by which it may be off
_HALVINGS = 60  # of the interval that a shift of duals is in


@dataclass(frozen=True)
class FactorNewton:
    """Settings of the method."""

    threads: int | None = None

    @staticmethod
    def takes(problem: KernelProblem) -> bool:
        """Return whether a problem is small enough, or its rows are a factor of few columns."""
        return len(problem) <= MOST_ROWS or FactorNewton.suits(problem)

    @staticmethod
    def suits(problem: KernelProblem) -> bool:
        """Return whether rows of the linear kernel are so many that pairs would take longer."""
        gram = problem.features.gram
        rows = gram.prepared.parts[:1]
        thin = type(gram.kernel) is Linear and isinstance(rows[0], np.ndarray)
        return thin and _THIN * rows[0].shape[1] <= len(gram)

    def iterates(self, problem: KernelProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each Newton step, at the weights that its duals imply."""
        factor, tube = _Factor.of(problem), SplitTube.of(problem)
        Z, lengths = factor.Z[problem.row], problem.lengths()
        best, least = None, np.inf  # the gap is a sum of terms ≥ 0, so that no rounding hides it
        steps = self._of_groups if problem.totals.any() else self._of_one
        first = [] if start.beta is None else [(start.beta, False)]
        for beta, converged in chain(first, steps(problem, Z, start)):
            if best is None or not np.array_equal(beta, best.beta):
                coefficients = problem.by_row(beta)
                variables = tube.variables(beta, factor.scores(coefficients))
                gap, dual, b, _ = measure(variables, len(problem.totals))
                if lengths is not None and is_nothing(variables, dual, lengths):
                    gap, dual, converged = 0.0, 0.0, True
                if best is None or gap < least:
                    least, best = gap, Iterate(dual + gap, dual, coefficients, b, beta)
            yield replace(best, converged=converged)

    def _of_one(
        self, problem: KernelProblem, Z: Floats, start: Point
    ) -> Iterator[tuple[Floats, bool]]:
        """Yield the duals, and whether they converged, with a free intercept or none."""
        begun, caps = Point(beta=start.beta), _caps(problem.loss, Z)
        for cap in caps:
            linear = Problem.linear(Z, _capped(problem.loss, cap), problem.intercept)
            steps = Newton(self.threads, active_sets=False).iterates(linear, begun)
            for step in islice(steps, None if cap == caps[-1] else _STEPS):
                yield step.beta, step.converged and cap == caps[-1]
                if step.converged and cap != caps[-1]:
                    break
            if step.converged and np.abs(step.beta).max() < _AT_CAP * cap:
                yield step.beta, True  # no dual wants to be larger
                return
            begun = Point(step.w, step.b, step.beta)

    def _of_groups(
        self, problem: KernelProblem, Z: Floats, start: Point
    ) -> Iterator[tuple[Floats, bool]]:
        """Yield the duals, and whether they converged, of a ν-form."""
        beta = start.beta
        if beta is None:
            beta = feasible_start(problem.loss, problem.groups, problem.totals)
        apart, begun = 0.0, Point(beta=np.append(beta, -problem.totals))
        for _ in range(_CENTRES):
            machine = _Joined.of(problem, Z, beta, apart)
            steps = Newton(self.threads, active_sets=False).iterates(
                machine.linear, machine.start(begun)
            )
            for step in islice(steps, _STEPS):
                beta = machine.unit * step.beta[: len(Z)]
                yield _balanced(problem, beta), False
                if step.converged:
                    break
            apart, begun = machine.distance(step), machine.point(step)
            off = np.bincount(problem.groups, beta) - problem.totals
            if step.converged and (np.abs(off) <= _BALANCED * np.abs(problem.totals)).all():
                break
        yield _balanced(problem, beta), step.converged


@dataclass(frozen=True)
class _Factor:
    """Z with K = ZZᵀ, and K where it is known."""

    Z: Floats
    K: Floats | None

    @classmethod
    def of(cls, problem: KernelProblem) -> "_Factor":
        """Return a factor of the Gram matrix of a problem's rows."""
        gram, rows = problem.features.gram, problem.features.rows
        if FactorNewton.suits(problem):
            return cls(gram.exact[rows].parts[0], None)
        K = gram.block(rows, rows)
        precision = max(len(K), 100) * float(np.finfo(np.float64).eps)
        return cls(factor_with_pivots(K, precision)[0], K)

    def scores(self, coefficients: Floats) -> Floats:
        """Return K times the coefficients."""
        if self.K is None:
            return np.asarray(self.Z @ (self.Z.T @ coefficients))
        return np.asarray(self.K @ coefficients)


@dataclass(frozen=True)
class _Joined:
    """A ν-form as a linear machine with one intercept, residuals measured in units."""

    linear: LinearProblem
    width: int  # of the factor
    unit: float
    apart: float  # s₀
    length: float  # L

    @classmethod
    def of(cls, problem: KernelProblem, Z: Floats, beta: Floats, apart: float) -> "_Joined":
        """Return the machine near the duals, its penalty of s about ``apart``."""
        loss, count = problem.loss, len(problem.totals)
        side = np.concatenate([1.0 - 2.0 * problem.groups, 1.0 - 2.0 * np.arange(count)])
        residuals = loss.target - Z @ (Z.T @ beta)
        unit = float(residuals.std()) or 1.0
        reach = _NEVER_MET * (float(np.abs(residuals).max()) + abs(apart)) or 1.0
        length = float(np.sqrt(_PROX_PARAMETER * reach / np.abs(problem.totals).max()))
        held = -problem.totals
        joined = Loss(
            (np.append(loss.target, np.sign(held) * reach) - (count - 1) * apart * side) / unit,
            np.append(loss.low, np.minimum(held, 0.0)) / unit,
            np.append(loss.high, np.maximum(held, 0.0)) / unit,
            np.append(loss.quadratic, np.zeros(count)),
            loss.epsilon / unit,
        )
        X = np.zeros((len(side), Z.shape[1] + count - 1))
        X[: len(Z), : Z.shape[1]] = Z
        X[:, Z.shape[1] :] = length * side[:, np.newaxis]
        return cls(Problem.linear(X, joined), Z.shape[1], unit, apart, length)

    def start(self, point: Point) -> Point:
        """Return a point as a start of this machine, at the centre of its penalty."""
        assert point.beta is not None
        beta = point.beta / self.unit
        if point.w is None:
            return Point(beta=beta)
        w = point.w / self.unit
        w[self.width :] = 0.0
        return Point(w, point.b / self.unit, beta)

    def point(self, step: Iterate) -> Point:
        """Return where the machine stands."""
        return Point(self.unit * step.w, self.unit * step.b, self.unit * step.beta)

    def distance(self, step: Iterate) -> float:
        """Return half the distance of the intercepts."""
        return self.apart + self.unit * self.length * float(step.w[self.width :].sum())


def _caps(loss: Loss, Z: Floats) -> list[float]:
    """Return bounds of the duals, from small ones up to none but their own.

    If C is far beyond what duals have to be for scores of the size of the targets, smoothed losses
    do not tell duals from 0. A machine with a smaller C is the same unless a dual is at its bound.
    """
    bounds = np.maximum(np.abs(loss.low), np.abs(loss.high))
    squares = np.einsum("ij,ij->i", Z, Z)
    size = float(np.median(squares[squares > 0])) if squares.any() else 1.0
    cap, largest = _FIRST_CAP * losses.residual_unit(loss) / size, float(bounds.max())
    caps = []
    while cap * _CAP_RATIO < largest < np.inf:
        caps.append(cap)
        cap *= _CAP_RATIO
    return [*caps, np.inf] if len(caps) >= _WORTH_CAPS else [np.inf]


def _capped(loss: Loss, cap: float) -> Loss:
    return loss._replace(low=np.maximum(loss.low, -cap), high=np.minimum(loss.high, cap))


def _balanced(problem: KernelProblem, beta: Floats) -> Floats:
    """Return duals whose groups have their sums: the free ones take what is missing, or all."""
    low, high = problem.loss.low, problem.loss.high
    beta = np.clip(beta, low, high)
    for g, total in enumerate(problem.totals):
        mine = np.flatnonzero(problem.groups == g)
        free = mine[(beta[mine] > low[mine]) & (beta[mine] < high[mine])]
        for some in (free, mine):
            missing = total - float(beta[mine].sum())
            if abs(missing) > _BALANCED * abs(total) and len(some):
                wanted = float(beta[some].sum()) + missing
                beta[some] = _shift_to_sum(beta[some], low[some], high[some], wanted)
    return beta


def _shift_to_sum(x: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Return clip(x − λ, low, high) for the λ with which it has this sum, found by bisection."""
    size = max(abs(total) + 1.0, float(np.abs(x).max()))
    left = max(float((x - high).min()), -2.0 * size)
    right = min(float((x - low).max()), 2.0 * size)
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        if np.clip(x - middle, low, high).sum() > total:
            left = middle
        else:
            right = middle
    return np.clip(x - 0.5 * (left + right), low, high)
