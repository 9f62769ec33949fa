"""Augmented-Lagrangian semismooth Newton method for linear machines.

Each loss is smoothed around a prox centre a (see ``loops.newton``) and

    ½‖w‖² + Σ m(t − w·x − b)

is minimised by Newton steps with an exact line search: two passes over the rows per step. When a
minimum is near, the duals β reached become the prox centre, and the prox parameter (the width of
smoothing) shrinks. That is the method of multipliers for the constraints f = w·x + b, so the duals
converge too, and every step brackets the optimum. Columns of any scale are welcome: the Newton
system is solved with unit diagonal, and rows are measured from their mean where the intercept is
free.

Large problems are first solved on a subsample, whose solution warm-starts the full solve.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.checkpoints import KeptState
from maxmargin.solvers.linear_systems import (
    solve_by_products,
    solve_positive,
    solve_preconditioned,
)
from maxmargin.solvers.polish import polished
from maxmargin.solvers.row_sums import (
    AnyLinearProblem,
    Look,
    Move,
    Passes,
    Sums,
    blocks_of,
    no_duals,
    rare_rows,
    sum_squares,
)

_STAY = Move()
_ROUNDING = 1e-15  # of the objective: steps that promise less do not count
_ROUGHLY = 1e-9  # of the objective, by which a solution of the conditions may be off
_EXACT = 1e-13  # relative gap that counts as none


@dataclass(frozen=True)
class Newton:
    """Settings of the method."""

    method: ClassVar[str] = "newton"
    threads: int | None = None
    first_width: float = 2.0  # of smoothing, in units of the targets' scale
    first_wide_width: float = 50.0  # the same where systems have one unknown per active row
    start_width: float = 0.1  # where a start is given
    start_wide_width: float = 3.0  # the same where systems have one unknown per active row
    narrowing: float = 4.0  # by which the width is divided when the prox centre moves
    least_width: float = 1e-10
    inner_part: float = 0.4  # of the gap, that the inner problem may add when the centre moves
    line_rest: float = 0.02  # how much of its slope a line search may leave
    many_columns: int = 2000  # beyond which systems have one unknown per active row
    many_rows: int = 4000  # active rows beyond which these are solved by conjugate gradients
    many_sparse_rows: int = 800  # the same for sparse rows
    rows_per_heavy: int = 15  # active rows for each column that these take into account exactly
    least_heavy: int = 100
    most_heavy: int = 1000
    cg_steps: int = 200
    cg_enough: float = 0.01  # part of the step that these may be off by
    cg_residual: float = 0.03  # of the gradient, that they may leave if rows are in blocks
    polish_gap: float = 1e-3  # from which it is worth trying to solve the conditions directly
    sample_rows: int = 4000  # of a subsample, at least
    sample_per_column: int = 20
    sample_part: int = 16  # of the rows: one in this many
    sample_numbers: int = 1 << 22  # of a subsample, at most: it is in memory wherever the rows are
    sample_gap: float = 1e-3  # at which the subsample is solved well enough
    rare_part: float = 0.2  # of the losses at scores of 0, below which a class is rare
    active_sets: bool = True  # whether they go on from a known solution first

    def iterates(self, problem: AnyLinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each Newton step, and unfinished ones on subsamples.

        From a point with duals active sets come first, if they suit.
        """
        width, active_set = None, ActiveSet(self.threads)
        best: Iterate | None = None
        passes, kept = Passes(problem, self.threads), KeptState(problem, self.method)
        if not isinstance(problem, BlockedProblem) and active_set.suits(problem, start):
            for best in active_set.iterates(problem, start) if self.active_sets else ():
                yield best
                start = Point(best.w, best.b, best.beta)
        if start.w is None and start.beta is None and not kept.is_there:
            nothing = self._nothing(passes)
            for begun in self._subsample_starts(problem):
                start, width = begun
                yield (
                    nothing
                    if start.w is None
                    else replace(nothing, primal=np.inf, w=start.w, b=start.b)
                )
        state = _NewtonState(self, problem, passes, start, width)
        if start.beta is None:  # else another run of this method has just been there
            kept.resume(state)
            yield from kept.repeated(state.iterate())
        while True:
            iterate = kept.note(state.iterate())
            yield iterate if best is None or iterate.converged else best.improved(iterate)
            if not state.advance():
                return
            kept.save(state)

    def _nothing(self, passes: Passes) -> Iterate:
        """Return what is known before anything is: the iterate w = 0."""
        passes.fill("none", no_duals)
        duals = passes.blocks.vector("none")
        return Iterate(passes.losses_at(0.0), 0.0, np.zeros(passes.d), 0.0, duals, finished=False)

    def width(self, *, wide: bool, started: bool) -> float:
        """Return how much to smooth at first, in units of the targets' scale."""
        if wide:
            return self.start_wide_width if started else self.first_wide_width
        return self.start_width if started else self.first_width

    def _subsample_starts(self, problem: AnyLinearProblem) -> Iterator[tuple[Point, float | None]]:
        """Solve ever larger samples roughly, yielding where to start from on all rows."""
        blocks = blocks_of(problem)
        n, d = blocks.n, blocks.d
        least = max(self.sample_rows, self.sample_per_column * d)
        most = int(self.sample_numbers * n / max(blocks.numbers, 1.0))
        size = max(least, min(n // self.sample_part, most))
        if 4 * size > n:
            return
        sample = _sampled(problem, size)
        start, width = Point(), None
        for begun in self._subsample_starts(sample):
            start, width = begun
            yield begun
        state = _NewtonState(self, sample, Passes(sample, self.threads), start, width)
        while state.iterate().relative_gap > self.sample_gap and state.advance():
            yield state.start(), 2 * state.width
        yield state.start(), 2 * state.width


# ------------------------------------------------------------------- newton systems
#
# The linear systems of Newton's method: one unknown per column, or one per active row.
#
#     (I + Σh(x, 1)(x, 1)ᵀ) p = −g       the last coordinate belongs to the intercept
#
# With A the rows with h > 0, p = −g − (A, 1)ᵀμ where (AAᵀ + 1/h) μ − p_b = −Ag: cheaper when active
# rows are fewer than columns.


def _intercept_ridge(problem: AnyLinearProblem) -> float:
    """Return the second derivative of the intercept's penalty; infinite: it stays 0."""
    if constant := problem.constant:
        return 1.0 / constant**2
    return 0.0 if problem.intercept is Intercept.FREE else np.inf


class ColumnSystem:
    """One unknown per column."""

    def __init__(self, passes: Passes, ridge: float) -> None:
        self.passes, self.ridge = passes, ridge

    def look(self, move: Move, width: float) -> Look:
        """Sum up the Hessian on the way."""
        found = self.passes.look(move, width, squares=True)
        self.hessian = found.hessian
        return found

    def step(self, gradient: Floats) -> Floats:
        """Return the Newton step, from the system with unit diagonal."""
        H, d = self.hessian, self.passes.d
        H[np.diag_indices(d)] += 1.0
        if np.isfinite(self.ridge):
            H[d, d] += self.ridge
        else:
            H[d, :] = H[:, d] = 0.0
        if H[d, d] == 0.0:
            H[d, d] = 1.0  # no row is active: the line search bounds the step of b
        return -solve_positive(H, gradient)


class ProductSystem:
    """One unknown per column, if these are many: by conjugate gradients, a pass for each step."""

    def __init__(self, settings: Newton, passes: Passes, ridge: float) -> None:
        self.settings, self.passes, self.ridge = settings, passes, ridge

    def look(self, move: Move, width: float) -> Look:
        """Sum up the diagonal on the way."""
        found = self.passes.look(move, width, squares=False)
        self.diagonal = self.passes.squares("h")
        return Look(found.sums, *self.passes.combinations("beta"))

    def step(self, gradient: Floats) -> Floats:
        """Return an approximate Newton step."""
        fixed = np.isinf(self.ridge)
        ridge = 0.0 if fixed else self.ridge
        if ridge + self.diagonal[-1] == 0.0:
            ridge = 1.0  # no row is active: the line search bounds the step of b
        own = np.append(np.ones(self.passes.d), ridge)

        def product(p: Floats) -> Floats:
            image = own * p + self.passes.products(p[:-1], 0.0 if fixed else float(p[-1]), "h")
            if fixed:
                image[-1] = p[-1]
            return np.asarray(image)

        diagonal = own + self.diagonal
        if fixed:
            diagonal[-1] = 1.0
        settings = self.settings
        return -solve_by_products(
            product, gradient, diagonal, steps=settings.cg_steps, enough=settings.cg_residual
        )


class RowSystem:
    """One unknown per active row; products of rows are kept from step to step."""

    def __init__(self, settings: Newton, X: Any, passes: Passes, ridge: float) -> None:
        self.settings, self.passes, self.ridge = settings, passes, ridge
        self.most = settings.many_sparse_rows if sp.issparse(X) else settings.many_rows
        self.cache = _Products(X, passes.centre, 2 * self.most)

    def look(self, move: Move, width: float) -> Look:
        """Note which rows are active."""
        found = self.passes.look(move, width, squares=False)
        self.activate(self.passes.array("h"))
        return Look(found.sums, *self.passes.combinations("beta"))

    def activate(self, h: Floats) -> None:
        """Note which rows are active: those with a curvature."""
        self.active = np.flatnonzero(h > 0)
        self.h = h[self.active]

    def step(self, gradient: Floats) -> Floats:
        """Return the Newton step."""
        if not len(self.active):
            return -gradient
        if len(self.active) > self.most:
            return self._by_gradients(gradient)
        g, g_b = gradient[:-1], float(gradient[-1])
        K = self.cache.of(self.active)
        K[np.arange(len(K)), np.arange(len(K))] += 1.0 / self.h
        products = self.cache.times(self.active, g)
        left, ones = solve_positive(K, np.column_stack([-products, np.ones(len(K))])).T
        p_b = (-g_b - left.sum()) / (ones.sum() + self.ridge)  # 0 if the ridge is infinite
        mu = left + p_b * ones
        return np.append(-g - self.cache.combined(self.active, mu), p_b)

    def _by_gradients(self, gradient: Floats) -> Floats:
        """Return an approximate step: μ by conjugate gradients, preconditioned by heavy columns."""
        g, g_b, ridge, h = gradient[:-1], float(gradient[-1]), self.ridge, self.h
        A = self.cache.take(self.active)
        most, least = self.settings.most_heavy, self.settings.least_heavy
        count = max(least, min(most, len(h) // self.settings.rows_per_heavy))
        nearby = _NearbyProducts(A, self.cache.heavy(count), 1.0 / h)
        across = A.T
        ones = nearby.solve(np.ones(len(h)))
        bordered = float(ones.sum()) + ridge
        spread = 1.0 / ridge if ridge > 0 else 0.0  # of Σμ over the rows, by the intercept

        def product(mu: Floats) -> Floats:
            return np.asarray(A @ (across @ mu) + mu / h + spread * mu.sum())

        def precondition(residual: Floats) -> tuple[Floats, float]:
            # A free intercept takes up what the residual has along ones: steps in μ sum to 0.
            if ridge == 0:
                residual = residual - float(ones @ residual) / bordered
            z = nearby.solve(residual)
            z -= (z.sum() / bordered) * ones
            return z, float(residual @ z)

        right, square = -(A @ g), float(g @ g)
        left = nearby.solve(right)
        first = -(g_b + float(left.sum())) / bordered  # the intercept of the nearby system
        fixed = first if ridge == 0 else -spread * g_b

        def intercept(mu: Floats, residual: Floats) -> float:
            if ridge == 0:
                return first - float(ones @ residual) / bordered
            return -spread * (g_b + float(mu.sum()))

        def done(mu: Floats, residual: Floats) -> bool:
            """Return whether the step is off by little, in the norm that the system defines."""
            p_b = intercept(mu, residual)
            off = residual + (p_b - first) if ridge == 0 else residual
            decrement = square - float(right @ mu) - g_b * p_b
            return float(off @ (h * off)) <= self.settings.cg_enough**2 * decrement

        mu, residual = solve_preconditioned(
            product, right + fixed, precondition, left + first * ones, self.settings.cg_steps, done
        )
        p_b = intercept(mu, residual)
        return np.append(-g - across @ mu, p_b)


class _NearbyProducts:
    """AAᵀ + diagonal with only some columns multiplied across rows, the others on the diagonal.

    With the columns of the largest norms (words that many rows share) this is near enough to the
    whole for conjugate gradients to need some dozen steps: what is left out is nearly diagonal.
    """

    def __init__(self, A: Any, columns: Ints, diagonal: Floats) -> None:
        self.A = A[:, columns] if sp.issparse(A) else np.ascontiguousarray(A[:, columns])
        self.across = self.A.T
        self.own = diagonal + np.maximum(_row_squares(A) - _row_squares(self.A), 0.0)
        k = len(columns)
        products = np.zeros((k + 1, k + 1))
        if sp.issparse(A):
            rows, none = loops.rows.rows(self.A), np.zeros(k)
            zero = np.zeros(len(self.own))
            loops.newton.outer(rows, 0, len(zero), zero, 1.0 / self.own, none, none, products)
        else:
            products[:k, :k] = (self.A.T / self.own) @ self.A
        products[np.arange(k), np.arange(k)] += 1.0
        self.factor = scipy.linalg.cho_factor(products[:k, :k], check_finite=False)

    def solve(self, right: Floats) -> Floats:
        """Return the solution, by Woodbury's identity."""
        z = right / self.own
        inner = scipy.linalg.cho_solve(self.factor, self.across @ z, check_finite=False)
        return np.asarray(z - (self.A @ inner) / self.own)


def _row_squares(A: Any) -> Floats:
    squares = np.empty(A.shape[0])
    loops.dual_cd.squared_norms(loops.rows.rows(A), 0, squares)
    return squares


class _Products:
    """Products of rows, measured from a centre: those asked for before are kept."""

    def __init__(self, X: Any, centre: Floats, capacity: int) -> None:
        self.X, self.centre, self.capacity = X, centre, capacity
        self.rows = np.empty(0, np.int64)
        self.K = np.empty((0, 0))
        self._taken: tuple[Ints, Any] | None = None
        self._heavy: Ints | None = None

    def of(self, rows: Ints) -> Floats:
        """Return a copy of the products of some rows with each other."""
        new = np.setdiff1d(rows, self.rows)
        if len(self.rows) + len(new) > self.capacity:
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
        return np.asarray(self.take(rows) @ p)

    def combined(self, rows: Ints, v: Floats) -> Floats:
        """Return Σ v(x − c) over some rows."""
        return np.asarray(self.take(rows).T @ v)

    def heavy(self, count: int) -> Ints:
        """Return the columns with the largest norms."""
        if self._heavy is None:
            squares = sum_squares(self.X, np.ones(self.X.shape[0]), self.centre)
            self._heavy = np.argsort(-squares, kind="stable")
        return np.sort(self._heavy[:count])

    def take(self, rows: Ints) -> Any:
        """Return some rows, measured from the centre."""
        if self._taken is None or not np.array_equal(self._taken[0], rows):
            self._taken = rows, self._float(self.X[rows])
        return self._taken[1]

    def _float(self, rows: Any) -> Any:
        rows = rows.astype(np.float64, copy=False)
        if not self.centre.any():
            return rows
        return _dense(rows) - self.centre  # few rows, or they would not be centred


def _dense(K: Any) -> Floats:
    return np.asarray(K.toarray() if sp.issparse(K) else K)


# ------------------------------------------------------------------- the method


def _system(
    settings: Newton, problem: AnyLinearProblem, passes: Passes, ridge: float, *, wide: bool
) -> ColumnSystem | ProductSystem | RowSystem:
    """Return how Newton's systems are solved."""
    if not wide:
        return ColumnSystem(passes, ridge)
    if isinstance(problem, BlockedProblem):
        return ProductSystem(settings, passes, ridge)
    return RowSystem(settings, problem.features.X, passes, ridge)


class _NewtonState:
    """Where the method stands, and the best bounds so far."""

    method = Newton.method
    saved: tuple[str, ...] = ("f", "prox_centre", "best_beta", "h")
    scratch: tuple[str, ...] = ("beta", "q", "before", "polished")

    def __init__(
        self, settings: Newton, problem: AnyLinearProblem, passes: Passes, start: Point,
        width: float | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.problem, self.passes = settings, problem, passes
        d, facts = passes.d, passes.facts
        self.w = np.zeros(d) if start.w is None else np.array(start.w, dtype=np.float64)
        b = _first_intercept(settings, problem, passes) if start.w is None else float(start.b)
        self.b = b + float(passes.centre @ self.w)
        passes.scores(self.w, self.b, "f")
        self.constant, ridge = problem.constant, _intercept_ridge(problem)
        self.ridge = ridge if np.isfinite(ridge) else 0.0
        wide = d > settings.many_columns or d > passes.n
        self.system = _system(settings, problem, passes, ridge, wide=wide)
        self.scale = facts.unit
        if start.beta is None:
            passes.fill("prox_centre", _first_prox_centre, wide)
        else:
            passes.blocks.put("given", start.beta)
            passes.clip("given", "prox_centre")
        if width is None:
            width = self.scale * settings.width(wide=wide, started=start.w is not None)
        self.smooth = facts.smooth
        self.width = 0.0 if self.smooth else width  # what is smooth need not be smoothed
        self.primal, self.dual = np.inf, -np.inf
        self.best_w, self.best_b = self.w, self.b
        passes.blocks.renew("best_beta")  # of a run before this one, which may be the start
        passes.fill("best_beta", no_duals)
        self.converged = False
        self._check_optimality()

    _SCALARS = "b", "width", "primal", "dual", "best_b"

    def get(self) -> dict[str, Any]:
        """Return where the method stands, but for vectors of rows."""
        return {
            "w": self.w,
            "best_w": self.best_w,
            "scalars": np.array([getattr(self, name) for name in self._SCALARS]),
            "converged": self.converged,
        }

    def set(self, saved: dict[str, Any]) -> None:
        """Stand where another run stood, whose vectors of rows are there already."""
        self.w, self.best_w = saved["w"], saved["best_w"]
        for name, value in zip(self._SCALARS, saved["scalars"].tolist(), strict=True):
            setattr(self, name, value)
        self.converged = bool(saved["converged"])
        self._check_optimality()

    def start(self) -> Point:
        """Return the best weights so far as a start for another problem."""
        return Point(self.best_w, self._intercept())

    def iterate(self) -> Iterate:
        """Return the best bounds so far, and what attains them."""
        return Iterate(
            self.primal,
            self.dual,
            self.best_w,
            self._intercept(),
            self.passes.blocks.vector("best_beta"),
            converged=self.converged or self.primal <= self.dual,
        )

    def _intercept(self) -> float:
        return self.best_b - float(self.passes.centre @ self.best_w)

    def _check_optimality(self, move: Move = _STAY) -> None:
        """Compute duals, gradient and curvature where we stand, and keep the best bounds."""
        self.sums, self.gains, self.losses, _ = self.system.look(move, self.width)
        primal = 0.5 * (float(self.w @ self.w) + self.ridge * self.b**2) + self.sums.loss
        if primal < self.primal:
            self.primal, self.best_w, self.best_b = primal, self.w.copy(), self.b
        dual, repair = self._dual(self.sums)
        self.gap, self.at = primal - dual, (primal, dual)
        away = self.w - self.gains - self.losses
        # What the inner problem, not yet solved, and the repair of Σβ = 0 add to the gap.
        self.inner = 0.5 * float(away @ away) + repair

    def _dual(self, sums: Sums) -> tuple[float, float]:
        """Return the dual objective of β made feasible, and what making it feasible cost."""
        gain_scale = lost_scale = 1.0
        if self.problem.intercept is Intercept.FREE:
            less = min(sums.gain, sums.lost)
            gain_scale = less / sums.gain if sums.gain > 0 else 1.0
            lost_scale = less / sums.lost if sums.lost > 0 else 1.0
        implied = gain_scale * self.gains + lost_scale * self.losses
        as_it_is = self.gains + self.losses
        spread = self.constant * (sums.gain - sums.lost)  # the weight of a constant feature
        fixed = 0.5 * spread * spread
        dual = sums.dual(gain_scale, lost_scale) - 0.5 * float(implied @ implied) - fixed
        repair = sums.dual(1.0, 1.0) - 0.5 * float(as_it_is @ as_it_is) - fixed - dual
        away = np.sqrt(self.ridge) * self.b - spread
        repair += 0.5 * away * away
        if dual > self.dual:
            self.dual = dual
            self.passes.scaled("beta", "best_beta", gain_scale, lost_scale)
        return dual, max(repair, 0.0)

    def advance(self) -> bool:
        """Make one Newton step; return False when there is nothing left to gain."""
        gradient = self._gradient()
        step = self.system.step(gradient)
        decrement = -float(gradient @ step)
        if not np.isfinite(decrement):
            return False
        moves = decrement > _ROUNDING * abs(self.primal)
        move = self._move(step, decrement) if moves else _STAY
        tight = self.inner <= self.settings.inner_part * self.gap or not moves
        self._check_optimality(self._tightened() if tight else move)
        if tight:
            self._polish()
        if self.smooth and not moves:
            self.converged = True
        return True

    def _polish(self) -> None:
        """Try whether the free duals are known by now: then the rest is linear equations."""
        if self.smooth or self.primal - self.dual > self.settings.polish_gap * abs(self.primal):
            return
        point = polished(self.problem, self.passes, "prox_centre", self.b)
        if point is None:
            return
        before = self.w, self.b, self.gap
        self.w, self.b = point.w, point.b
        self.passes.copy("prox_centre", "before")
        self.passes.copy("polished", "prox_centre")
        self.passes.scores(self.w, self.b, "f")
        self._check_optimality()
        exact = self.passes.complementarity("f", "polished")
        rounded = self.at[0] - self.primal > _ROUGHLY * abs(self.primal)  # better ones are known
        if exact <= max(_EXACT * abs(self.primal), point.rounding) and not rounded:
            self.best_w, self.best_b = point.w, point.b
            self.passes.scaled("polished", "best_beta", 1.0, 1.0)
            self.primal = self.at[0]
            self.dual = self.primal - exact
            self.converged = True
        elif self.gap > before[2]:
            self.w, self.b = before[:2]
            self.passes.copy("before", "prox_centre")
            self.passes.scores(self.w, self.b, "f")
            self._check_optimality()

    def _gradient(self) -> Floats:
        g = np.append(self.w - self.gains - self.losses, self.sums.lost - self.sums.gain)
        g[-1] += self.ridge * self.b
        if self.problem.intercept is Intercept.NONE:
            g[-1] = 0.0
        return g

    def _move(self, step: Floats, decrement: float) -> Move:
        p, p_b = step[:-1], float(step[-1])
        first = self.passes.project(p, p_b, self.width)
        fixed = float(self.w @ p) + self.ridge * self.b * p_b
        square = float(p @ p) + self.ridge * p_b**2
        t = self._line_search(first, fixed, square, decrement)
        self.w = self.w + t * p
        self.b += t * p_b
        return Move(t)

    def _line_search(
        self, first: tuple[float, float], fixed: float, square: float, decrement: float
    ) -> float:
        """Return the step at which the derivative along it, piecewise linear, is about 0.

        ``first`` are the derivatives of the losses at the whole step. Beyond the minimum a small
        slope is not enough: after a kink it may stay small for ever.
        """
        low, high, t = 0.0, np.inf, 1.0
        for tried in range(40):
            slope, curve = self.passes.line(self.width, t) if tried else first
            slope += fixed + t * square
            curve += square
            if -decrement <= slope / self.settings.line_rest <= min(decrement, t * curve):
                return t
            low, high = (t, high) if slope < 0 else (low, t)
            t = t - slope / curve if curve > 0 else np.inf
            if not low < t < high:
                t = _between(low, high)
        return low or t

    def _tightened(self) -> Move:
        """Smooth less, and take the duals reached as prox centre; rounding had added up in f."""
        last = self.width
        if not self.smooth:
            narrower = self.width / self.settings.narrowing
            self.width = max(narrower, self.settings.least_width * self.scale)
        return Move(w=self.w, b=self.b, width=last)


def _first_intercept(settings: Newton, problem: AnyLinearProblem, passes: Passes) -> float:
    """Return where to start b: at the middle of the targets in regression, else at 0.

    But if one class is rare it starts at the label of the other.
    """
    if problem.intercept is not Intercept.FREE:
        return 0.0
    if passes.facts.two_sided:
        return passes.facts.median
    loss, b = min((passes.losses_at(b), b) for b in (-1.0, 1.0))
    return b if loss < settings.rare_part * passes.losses_at(0.0) else 0.0


def _between(low: float, high: float) -> float:
    """Return a step to try next: steps may be right at any order of magnitude."""
    if high == np.inf:
        return 2 * low
    return 0.5 * (low + high) if low > 0.01 * high else 0.05 * high


def _first_prox_centre(loss: Loss, wide: bool) -> Floats:
    """Return the middle duals; 0 where columns are many: most rows are right."""
    if wide:
        return np.zeros(len(loss.low))
    low, high, bounded = loss.low, loss.high, np.isfinite(loss.high - loss.low)
    if not bounded.all():
        low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    return 0.5 * (low + high)


def _sampled(problem: AnyLinearProblem, size: int) -> LinearProblem:
    """Return the problem on some of the rows, each counting for several.

    They are drawn one from each of as many equal parts; but all rows of a rare class are taken.
    """
    n, rare = len(problem), rare_rows(blocks_of(problem), size // 4)
    edges = np.arange(size + 1) * n // size
    rows = edges[:-1] + (np.random.default_rng(0).random(size) * np.diff(edges)).astype(np.int64)
    others = np.setdiff1d(rows, rare)
    rows = np.union1d(others, rare)
    ratio = np.where(np.isin(rows, rare), 1.0, (n - len(rare)) / len(others))
    sample = problem.take(rows)
    return replace(sample, loss=sample.loss.scaled(ratio))
