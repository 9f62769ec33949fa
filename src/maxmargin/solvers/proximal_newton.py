"""Newton's method by coordinate descent on working sets, for ℓ1 and elastic-net penalties.

    min_{w,b}  l1‖w‖₁ + l2·½‖w‖² + Σ ℓᵢ(w·xᵢ + b),    l1 = ratio > 0, l2 = 1 − ratio

    max_β  Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − l1, 0)²/2l2,    v = Xᵀβ

(for l2 = 0 the last sum is the constraint |vⱼ| ≤ l1), and Σβ = 0 if the intercept is free; a
penalised one is the weight of a constant column. Of all columns only those whose weight is not 0,
and as many of those that violate optimality most, enter a quadratic model of the losses (the rows
inside the margin count, the others do not). Its minimiser, found by coordinate descent, gives the
direction of a line search. Free intercepts are eliminated exactly. Johnson & Guestrin (2015),
"Blitz"; Massias et al. (2018), "Celer"; Yuan et al. (2012), "An improved GLMNET", for the model.

Unless rows are many, few of them decide, and Newton's method would take long to guess which. The
losses are then smoothed around prox centres a: − ½ smoothing (β − a)² is added to each, which only
changes target and quadratic. The duals reached become the next centres and smoothing shrinks: the
method of multipliers, so that the gap closes before smoothing is gone. Rockafellar (1976).

Losses with kinks (the hinge) are smoothed from beginning to end. The problem is then a linear
program for l2 = 0 and a quadratic one else, and the method reaches its solution in finitely many
stages; the weights that rows have in the smoothing are the inverse of their costs, so that a row of
cost 2C is the same as two of cost C.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import best_intercept, within_groups
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point, Problem
from maxmargin.solvers.linear_systems import solve_by_products, solve_positive
from maxmargin.solvers.row_sums import Passes, sum_squares

_ROUNDING = 1e-15  # of the objective: bounds that gain less do not count


@dataclass(frozen=True)
class ProximalNewton:
    """Settings of the method."""

    threads: int | None = None
    # the working set
    growth: float = 1.0  # columns that join it, for each one whose weight is not 0
    least: int = 64  # columns that join it at least
    few_columns: int = 200  # from which none are chosen: all are in it
    # models
    narrow: int = 500  # columns whose products are kept as a matrix in any case
    widest_gram: int = 1500  # columns whose products are kept as a matrix, if that is cheaper
    accuracy: float = 0.1  # part of its first size at which a move of the minimiser is small
    patience: int = 10  # rounds of descent on one model
    sweeps: int = 20  # before the coordinates that are not 0 are solved for together
    gram_solves: int = 8  # sign changes followed then, before coordinates are visited again
    column_solves: int = 1  # the same, for models in columns
    cg_steps: int = 30  # of conjugate gradients, in columns
    cg_enough: float = 1e-4  # part of the residual that they may leave
    work: float = 2.0**24  # multiplications between two yields
    damping: float = 1e-6  # first part of a column's full curvature added to the model
    least_damping: float = 1e-14
    # smoothing
    many_rows: int = 10  # for each column, from which nothing is smoothed
    first_smoothing: float = 0.1  # of what would keep all weights at 0
    fast: float = 0.03  # by which smoothing shrinks after a stage of one or two steps
    slow: float = 0.2  # by which it shrinks after a longer stage
    long_stage: int = 12  # steps, beyond which smoothing of kinks shrinks by ``patient``
    patient: float = 0.7
    stage_error: float = 0.5  # of Σ smoothing·(change of β)²: a stage of kinks is solved so well
    stages: int = 4  # that gained nothing, after which a loss with kinks is given up
    widen: float = 30.0  # by which smoothing grows after such a stage: it had drowned in rounding
    # steps
    refresh: int = 16  # after which scores are computed again: updates accumulate rounding
    give_up: int = 8  # without any gain

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each Newton step, and unfinished ones on the way."""
        # What overflows is not better than what is known, and nobody is to be warned of it.
        with np.errstate(all="ignore"):
            state = _ProximalState(self, problem, start)
        yield state.iterate()
        while not state.converged:
            step, paused = state.advance(), True
            while paused:
                with np.errstate(all="ignore"):
                    paused = next(step, step) is None
                yield state.iterate() if not paused else state.iterate().unfinished()


def best_scale(terms: Loss, beta: Floats, v: Floats, l1: float, l2: float) -> tuple[float, float]:
    """Return the t ≥ 0 for which tβ has the highest dual objective, and that.

    The objective is t·gain − ½t²·curve − Σ max(t|v| − l1, 0)²/2l2: Newton's method comes down to
    the maximiser from above in finitely many steps. For l2 = 0 the sum is the limit t|v| ≤ l1.
    """
    gain = losses.dual_value(terms._replace(quadratic=np.zeros(len(beta))), beta)
    curve = float(terms.quadratic @ beta**2)
    bounded = bool(np.isfinite(terms.high - terms.low).any())
    if gain <= 0 or (curve <= 0 and not bounded):
        return 0.0, 0.0
    t = gain / curve if curve > 0 else 1.0
    if bounded:
        t = min(t, 1.0)
    size = np.abs(v)
    if l2 == 0:
        t = min(t, l1 / max(float(size.max(initial=0.0)), 1e-300))
        return t, t * gain - 0.5 * t * t * curve
    for _ in range(60):
        over = size[t * size > l1]
        slope = gain - t * curve - float(over @ (t * over - l1)) / l2
        if slope >= 0 or not len(over):
            break
        t += slope / (curve + float(over @ over) / l2)
    lost = np.maximum(t * size - l1, 0.0)
    return t, t * gain - 0.5 * t * t * curve - 0.5 * float(lost @ lost) / l2


# ------------------------------------------------------------------- columns
#
# Columns of a matrix, dense or sparse, as models need them: products of columns, summed over rows,
# or the columns themselves. Dense rows are measured from their mean if the intercept is free.


class _DenseColumns:
    _BLOCK = 1 << 20  # numbers copied at a time

    def __init__(self, X: Any, centre: Floats) -> None:
        self._X, self._centre = X, centre
        self.entries_per_row = float(X.shape[1])

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        """Add Σ changeᵢ xᵢxᵢᵀ over some rows, in the picked columns, to gram."""
        step = max(1, self._BLOCK // self._X.shape[1])
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            block = self._block(some, picked)
            gram += block.T @ (block * change[some, np.newaxis])

    def scaled(self, picked: Ints, root: Floats) -> Any:
        """Return the picked columns as a CSC array, each row times its root."""
        rows = np.flatnonzero(root)
        block = sp.coo_array(self._block(rows, picked) * root[rows, np.newaxis])
        return sp.csc_array((block.data, (rows[block.row], block.col)), (len(root), len(picked)))

    def _block(self, rows: Ints, picked: Ints) -> Floats:
        block = self._X[rows]
        if len(picked) < self._X.shape[1]:
            block = block[:, picked]
        return np.asarray(block - self._centre[picked])


class _SparseColumns:
    def __init__(self, X: Any) -> None:
        self._rows, self._columns = loops.rows.rows(X), sp.csc_array(X)
        self.entries_per_row = X.nnz / max(1, X.shape[0])

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        place = np.full(self._columns.shape[1], -1, np.int32)
        place[picked] = np.arange(len(picked))
        loops.proximal_newton.add_products(self._rows, rows, change, place, gram)

    def scaled(self, picked: Ints, root: Floats) -> Any:
        columns = self._columns[:, picked].astype(np.float64, copy=False)
        columns.data *= root[columns.indices]
        columns.eliminate_zeros()
        return columns


# ------------------------------------------------------------------- quadratic models
#
# The objective near a point, minimised by coordinate descent.
#
#     min_x  slope·(x − w) + ½(x − w)ᵀH(x − w)  +  l1‖x‖₁ + ½ l2‖x‖²
#
# H = XᵀDX + damping over the working set of columns, D being the curvature of each row's loss; if
# the intercept is free it moves along, which takes μμᵀ/ΣD away (μ = XᵀD1). H is a matrix, or given
# by the columns of √D X: which is cheaper depends on their number.


class _Local(NamedTuple):
    """The working set where the model is made: weights, slope of the losses, and penalties."""

    w: Floats
    slope: Floats
    damping: Floats
    l1: float
    l2: float


class _Model:
    """A quadratic model, and its current minimiser x."""

    def __init__(
        self, settings: ProximalNewton, means: Floats, total: float, local: _Local
    ) -> None:
        self.settings, self.local, self.solves = settings, local, settings.gram_solves
        self.means, self.total = (means, total) if total > 0 else (np.zeros(len(means)), 1.0)
        self.x = local.w.copy()

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        return -float(self.means @ (self.x - self.local.w)) / self.total

    @abstractmethod
    def sweep(self, order: Ints, sweeps: int, aim: float) -> float:
        """Visit coordinates until none moves by more than aim; return the largest last move."""

    @abstractmethod
    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit ``count`` coordinates."""

    @abstractmethod
    def gradient(self, live: Ints) -> Floats:
        """Return the gradient of the quadratic at x, on some coordinates."""

    @abstractmethod
    def curve(self, live: Ints, moved: Floats) -> Floats:
        """Return (H + l2) times a move of some coordinates, on the same."""

    @abstractmethod
    def newton_step(self, live: Ints, slope: Floats) -> Floats:
        """Return the move of some coordinates to where their slopes vanish, or nearly so."""

    @abstractmethod
    def shift(self, live: Ints, moved: Floats) -> None:
        """Take note that some coordinates of x are about to move."""

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, dropping those that would change sign."""
        for _ in range(self.solves):
            live = np.flatnonzero(self.x)
            if not len(live):
                return
            x = self.x[live]
            slope = self.gradient(live) + self.local.l1 * np.sign(x) + self.local.l2 * x
            to = x + self.newton_step(live, slope)
            flips = x * to < 0
            if flips.any():
                to = self._land(live, to, flips, slope)
            self.shift(live, to - x)
            self.x[live] = to
            if not flips.any():
                return

    def _land(self, live: Ints, to: Floats, flips: Any, slope: Floats) -> Floats:
        """Return where a step leads if no sign may change.

        Either all that would change sign stop at 0, or everything stops where the first does: the
        better by the quadratic.
        """
        x = self.x[live]
        reach = x[flips] / (x - to)[flips]
        first = x + float(reach.min()) * (to - x)
        first[np.flatnonzero(flips)[reach.argmin()]] = 0.0
        bold = np.where(flips, 0.0, to)

        def gain(end: Floats) -> float:
            return float((end - x) @ (slope + 0.5 * self.curve(live, end - x)))

        return min(first, bold, key=gain)


class _GramModel(_Model):
    """The model with H as a matrix."""

    def __init__(
        self,
        settings: ProximalNewton,
        products: Floats,
        means: Floats,
        total: float,
        local: _Local,
    ) -> None:
        super().__init__(settings, means, total, local)
        self._H = products - np.outer(self.means / self.total, self.means)
        self._H[np.diag_indices(len(means))] += local.damping
        self._gradient = local.slope.copy()

    def sweep(self, order: Ints, sweeps: int, aim: float) -> float:
        local = self.local
        return float(loops.proximal_newton.gram_sweeps(
            self._H, local.l1, local.l2, order, sweeps, aim, self.x, self._gradient
        ))  # fmt: skip

    def sweep_work(self, count: int) -> float:
        return float(count * len(self.x))

    def gradient(self, live: Ints) -> Floats:
        return np.asarray(self._gradient[live])

    def curve(self, live: Ints, moved: Floats) -> Floats:
        return np.asarray((moved @ self._H[live])[live] + self.local.l2 * moved)

    def newton_step(self, live: Ints, slope: Floats) -> Floats:
        H = self._H.take(live, axis=0).take(live, axis=1)
        H[np.diag_indices(len(live))] += self.local.l2
        return -solve_positive(H, slope)

    def shift(self, live: Ints, moved: Floats) -> None:
        self._gradient += moved @ self._H[live]


class _ColumnModel(_Model):
    """The model with H in columns: sparse ones, or too many for a matrix of products."""

    def __init__(
        self, settings: ProximalNewton, A: Any, means: Floats, total: float, local: _Local
    ) -> None:
        super().__init__(settings, means, total, local)
        self.solves = settings.column_solves
        self._A = A
        squares = np.asarray(A.power(2).sum(axis=0)).ravel()
        self._diagonal = squares - self.means**2 / self.total + local.damping
        self._z = np.zeros(A.shape[0])

    def sweep(self, order: Ints, sweeps: int, aim: float) -> float:
        A, local = self._A, self.local
        return float(loops.proximal_newton.column_sweeps(
            A.data, A.indices, A.indptr, self.means, self.total, local.slope, self._diagonal,
            local.damping, local.l1, local.l2, order, sweeps, aim, local.w, self.x, self._z,
            self.offset,
        ))  # fmt: skip

    def sweep_work(self, count: int) -> float:
        return float(2 * self._A.nnz * count / len(self.x) + count)

    def gradient(self, live: Ints) -> Floats:
        local = self.local
        damped = local.damping[live] * (self.x - local.w)[live]
        steady = local.slope[live] + self.offset * self.means[live] + damped
        return np.asarray(steady + self._A[:, live].T @ self._z)

    def curve(self, live: Ints, moved: Floats) -> Floats:
        return self._curve(self._A[:, live], live, moved)

    def newton_step(self, live: Ints, slope: Floats) -> Floats:
        A = self._A[:, live]
        return solve_by_products(
            lambda moved: self._curve(A, live, moved),
            -slope,
            self._diagonal[live] + self.local.l2,
            steps=self.settings.cg_steps,
            enough=self.settings.cg_enough,
        )

    def _curve(self, A: Any, live: Ints, moved: Floats) -> Floats:
        means = self.means[live]
        down = means * (float(means @ moved) / self.total)
        return np.asarray(
            A.T @ (A @ moved) + (self.local.damping[live] + self.local.l2) * moved - down
        )

    def shift(self, live: Ints, moved: Floats) -> None:
        self._z += self._A[:, live] @ moved


class _GramProducts:
    """XᵀDX on a working set, following D by the rows where it changes."""

    _PIECE = 2.0**26  # multiplications between two yields
    _CANCELLED = 1e-8  # what is left of a sum after subtracting the rest is not to be relied on

    def __init__(self, columns: _DenseColumns | _SparseColumns, n_rows: int) -> None:
        self._columns = columns
        self._picked = np.empty(0, np.int64)
        self._curvature = np.zeros(n_rows)
        self._peak = np.empty(0)
        self.gram = np.empty((0, 0))

    def follow(self, picked: Ints, curvature: Floats) -> Iterator[None]:
        """Bring the products up to date, pausing in between."""
        changed = np.count_nonzero(curvature != self._curvature)
        if changed > np.count_nonzero(curvature) or not np.array_equal(picked, self._picked):
            self._forget(picked)
        yield from self._add(curvature)
        if (np.diag(self.gram) < self._CANCELLED * self._peak).any():
            self._forget(picked)
            yield from self._add(curvature)

    def _forget(self, picked: Ints) -> None:
        self._picked = picked
        self._curvature = np.zeros(len(self._curvature))
        self._peak = np.zeros(len(picked))
        self.gram = np.zeros((len(picked), len(picked)))

    def _add(self, curvature: Floats) -> Iterator[None]:
        change = curvature - self._curvature
        rows = np.flatnonzero(change)
        self._curvature = curvature.copy()
        entries = max(1.0, min(len(self._picked), self._columns.entries_per_row))
        step = 1 + int(self._PIECE / entries**2)
        for start in range(0, len(rows), step):
            if start:
                yield
            self._columns.add_products(self.gram, self._picked, rows[start : start + step], change)
        self._peak = np.maximum(self._peak, np.diag(self.gram))


# ------------------------------------------------------------------- the method


class _ProximalState:
    """Where the method stands, and the best bounds so far."""

    def __init__(self, settings: ProximalNewton, problem: LinearProblem, start: Point) -> None:
        self.settings, self.given = settings, problem.features
        self.far = _far_from_zero(problem)
        problem = _with_tie(problem) if self.far else with_constant_column(problem)
        self.problem = problem
        X, self.loss = problem.features.X, problem.loss
        self.free = problem.intercept is Intercept.FREE
        self.passes = Passes(problem, settings.threads, centred=not sp.issparse(X))
        self.columns = _SparseColumns(X) if sp.issparse(X) else _DenseColumns(X, self.passes.centre)
        self.l1, self.l2 = problem.l1_ratio, 1 - problem.l1_ratio
        n, d = X.shape
        self.kinked = not self.loss.quadratic.all()
        self.shares = self._smoothing_shares()
        self.stage, self.smoothing, self.stage_steps = self.loss, 0.0, 0
        self.stages_idle, self.stage_began = 0, (np.inf, -np.inf)
        self.masses = self._column_masses()
        w = np.zeros(d) if start.w is None else self.given.join(start.w, start.b)
        self.w = np.where(self.masses > 0, w, 0.0)
        self.b = start.b + float(self.passes.centre @ self.w) if self.free else 0.0
        self.beta, self.curvature, self.nowhere = np.zeros((3, n))
        self.primal, self.dual = np.inf, -np.inf
        self.stage_primal, self.stage_gap, self.least_gap = np.inf, np.inf, np.inf
        self.damping, self.steps, self.idle = settings.damping, 0, 0
        self.picked = np.empty(0, np.int64)
        self.products = _GramProducts(self.columns, n)
        self.scores = self.passes.scores(self.w, 0.0, np.empty(n))
        if start.beta is not None:
            given = start.beta
            beta = self._balance(np.append(given, -given.sum()) if self.far else given)
            self._offer(beta, self.passes.combination(beta))
        if self.kinked:
            known = np.zeros(n) if start.beta is None else beta
            self._begin_stage(known, self._first_smoothing_of_kinks())
            return
        self._check_optimality()
        if (smoothing := self._first_smoothing()) > 0:
            self._begin_stage(np.zeros(n), smoothing)

    @property
    def converged(self) -> bool:
        """Whether there is nothing left to gain."""
        idle = self.stages_idle >= self.settings.stages or (
            not self.kinked and self.idle >= self.settings.give_up
        )
        return idle or self.primal <= self.dual

    def iterate(self) -> Iterate:
        """Return the best so far."""
        w, b = self.best_w, self.best_b - float(self.passes.centre @ self.best_w)
        if constant := self.given.constant:
            w, b = w[:-1], constant * float(w[-1])
        beta = self.best_beta[:-1] if self.far else self.best_beta
        return Iterate(self.primal, self.dual, w, b, beta, converged=self.converged)

    def advance(self) -> Iterator[None]:
        """Make a Newton step, pausing in between."""
        settings = self.settings
        if self._stage_done():
            smoothing = self.smoothing * (settings.fast if self.stage_steps <= 2 else settings.slow)
            negligible = smoothing < 0.1 * self.loss.quadratic.min()
            if self.kinked:
                if self.stage_steps > settings.long_stage:
                    smoothing = self.smoothing * settings.patient
                smoothing = self._after_idle_stages(smoothing)
            self._begin_stage(self.beta.copy(), 0.0 if negligible else smoothing)
        self.stage_steps += 1
        self.picked = self._working_set()
        local = _Local(
            self.w[self.picked],
            -self.v[self.picked],
            self.damping * self.masses[self.picked],
            self.l1,
            self.l2,
        )
        total = float(self.curvature.sum()) if self.free else 0.0
        model: _Model
        if self._prefers_gram():
            yield from self.products.follow(self.picked, self.curvature)
            means = np.zeros(len(self.picked))
            if self.free:
                means = self.passes.combination(self.curvature)[self.picked]
            model = _GramModel(settings, self.products.gram, means, total, local)
        else:
            root = np.sqrt(self.curvature)
            A = self.columns.scaled(self.picked, root)
            model = _ColumnModel(settings, A, A.T @ root, total, local)
        yield from self._minimise(model)
        self._move(local, model.x - local.w, model.offset)

    # --- bounds

    def _check_optimality(self) -> None:
        """Evaluate losses, duals and slopes where we are, and keep what is best."""
        before = self.primal, self.dual, self.least_gap
        penalty = self.l1 * float(np.abs(self.w).sum()) + 0.5 * self.l2 * float(self.w @ self.w)
        if self.smoothing:
            b = self._best_b(self.loss)
            self._keep(penalty + self.passes.losses(self.scores + b), b)
        self.b = self._best_b(self.stage)
        # Any smoothing is in the stage's losses already: no prox centre, and a width of 0.
        value = penalty + loops.newton.duals(
            self.stage, 0, len(self.beta), self.scores + self.b, self.nowhere, 0.0, self.beta,
            self.curvature,
        )[0]  # fmt: skip
        self.beta = self._balance(self.beta)
        self.v = self.passes.combination(self.beta)
        self._offer(self.beta, self.v)
        if self.smoothing:
            self.stage_primal = value
            self.stage_gap = value - best_scale(self.stage, self.beta, self.v, self.l1, self.l2)[1]
            self.least_gap = min(self.least_gap, self.stage_gap)
        else:
            self._keep(value, self.b)
        gained = max(before[0] - self.primal, self.dual - before[1])
        moved = gained > _ROUNDING * abs(self.primal) or self.least_gap < before[2]
        self.idle = 0 if moved else self.idle + 1

    def _best_b(self, loss: Loss) -> float:
        if not self.free:
            return 0.0
        if not loss.quadratic.all():
            return best_intercept(loss, self.scores, self.b)
        return float(loops.proximal_newton.best_offset(loss, self.scores, self.b))

    def _balance(self, beta: Floats) -> Floats:
        """Return duals that are feasible but for |v| ≤ l1."""
        return within_groups(self.loss, beta, self.problem.groups, self.problem.totals)[0]

    def _keep(self, primal: float, b: float) -> None:
        if primal < self.primal:
            self.primal, self.best_w, self.best_b = primal, self.w.copy(), b

    def _offer(self, beta: Floats, v: Floats) -> None:
        scale, dual = best_scale(self.loss, beta, v, self.l1, self.l2)
        if dual > self.dual:
            self.dual, self.best_beta = dual, scale * beta

    # --- smoothing

    def _column_masses(self) -> Floats:
        """Return the curvature of each column if all rows were inside the margin."""
        quadratic = self.stage.quadratic
        curvature = 1 / quadratic if quadratic.all() else np.ones(len(quadratic))
        return sum_squares(self.problem.features.X, curvature, self.passes.centre)

    def _smoothing_shares(self) -> Floats:
        """Return what each row has of the smoothing: the more, the less it may cost."""
        if not self.kinked:
            return np.ones(len(self.loss.target))
        bound = self.loss.high - self.loss.low
        shares = np.ones(len(bound)) if np.isinf(bound).any() else np.max(bound) / bound
        if self.far:  # the more, the less the tie would outweigh all other rows in the models
            shares[-1] = max(1.0, self.far**2 / len(bound)) * shares[:-1].mean()
        return np.asarray(shares)

    def _first_smoothing(self) -> float:
        """Return how much to smooth where all weights are 0: just enough that few would leave it.

        With many more rows than columns the rows inside the margin are soon found without.
        """
        n_rows, width = self.problem.features.X.shape
        if width * self.settings.many_rows < n_rows or self.w.any():
            return 0.0
        residuals = self.passes.combination(self.beta * self.loss.quadratic)
        largest = float(np.abs(residuals).max(initial=0.0)) / self.l1
        smoothing = self.settings.first_smoothing * largest
        return smoothing if smoothing > 10 * self.loss.quadratic.min() else 0.0

    def _first_smoothing_of_kinks(self) -> float:
        """Return the same for losses with kinks; no less than what keeps duals off their bounds."""
        loss = self.loss
        residuals = (loss.target - self._best_b(loss)) / self.shares
        largest = float(np.abs(self.passes.combination(residuals)).max(initial=0.0)) / self.l1
        return max(
            self.settings.first_smoothing * largest, 1.0 / float((loss.high - loss.low).max())
        )

    def _begin_stage(self, prox_centre: Floats, smoothing: float) -> None:
        """Smooth the losses around prox centres, and see where that leaves us."""
        self.smoothing, self.stage_steps, self.least_gap = smoothing, 0, np.inf
        self.stage_began, self.prox_centre = (self.primal, self.dual), prox_centre
        smoothed = smoothing * self.shares
        self.stage = self.loss._replace(
            target=self.loss.target + smoothed * prox_centre,
            quadratic=self.loss.quadratic + smoothed,
        )
        self.masses = self._column_masses()
        self._check_optimality()

    def _stage_done(self) -> bool:
        """Return whether smoothing, rather than what is left to do in this stage, makes the gap."""
        enough = min(0.1 * (self.primal - self.dual), 0.3 * self.stage_primal)
        if self.kinked:  # a stage that is solved less precisely may lead away from the solution
            moved = self.beta - self.prox_centre
            enough = min(
                enough, self.settings.stage_error * float(moved @ (self.stage.quadratic * moved))
            )
        return self.smoothing > 0 and (self.stage_gap < enough or self._stuck)

    @property
    def _stuck(self) -> bool:
        return self.idle >= self.settings.give_up // 2

    def _after_idle_stages(self, smoothing: float) -> float:
        """Return how much to smooth next: more after a stage that gained nothing to its end.

        Then differences of scores had drowned in rounding, which smoothing divides them by.
        """
        primal, dual = self.stage_began
        # Each is measured by itself: where rows cost much, the bounds are far apart at first.
        gained = primal - self.primal > _ROUNDING * abs(
            self.primal
        ) or self.dual - dual > _ROUNDING * abs(self.dual)
        if self._stuck and not gained:
            self.stages_idle += 1
            return self.smoothing * self.settings.widen
        if self.stages_idle and gained:
            self.stages_idle = 0
            return self.smoothing
        return smoothing

    # --- models and steps

    def _working_set(self) -> Ints:
        """Return the columns whose weight is not 0, and those that violate optimality most."""
        usable = self.masses > 0
        if np.count_nonzero(usable) <= self.settings.few_columns:
            return np.flatnonzero(usable)
        live = self.w != 0
        wanted = int(max(self.settings.least, self.settings.growth * np.count_nonzero(live)))
        outside = np.flatnonzero(usable & ~live & (np.abs(self.v) > self.l1))
        if len(outside) > wanted:
            excess = (np.abs(self.v[outside]) - self.l1) ** 2 / self.masses[outside]
            outside = outside[np.argpartition(excess, -wanted)[-wanted:]]
        chosen = live.copy()
        chosen[outside] = True
        # A set that still has all of these, and not much else, keeps its products of columns.
        size = np.count_nonzero(chosen)
        small = len(self.picked) <= 2 * size + self.settings.least
        if small and np.count_nonzero(chosen[self.picked]) == size:
            return self.picked
        return np.flatnonzero(chosen)

    def _prefers_gram(self) -> bool:
        """Return whether a sweep over products of columns is about as cheap as over the columns."""
        width = len(self.picked)
        entries = np.count_nonzero(self.curvature) * min(width, self.columns.entries_per_row)
        cheap = width**2 <= 2 * entries or not self.passes.sparse
        return width <= (self.settings.widest_gram if cheap else self.settings.narrow)

    def _minimise(self, model: _Model) -> Iterator[None]:
        """Minimise a model until moves are a small part of the first, pausing in between."""
        settings, everything = self.settings, np.arange(len(model.x))
        largest = first = model.sweep(everything, 1, 0.0)
        for _ in range(settings.patience):
            if largest <= settings.accuracy * first:
                return
            live = np.flatnonzero(model.x)
            if len(live):
                sweeps = 1 + min(settings.sweeps, int(settings.work / model.sweep_work(len(live))))
                aim = 0.3 * settings.accuracy * first
                if model.sweep(live, sweeps, aim) > aim:
                    model.polish()
            largest = model.sweep(everything, 1, 0.0)
            yield

    def _move(self, local: _Local, moved: Floats, offset: float) -> None:
        """Go along a direction to where the objective is least."""
        direction = np.zeros(len(self.w))
        direction[self.picked] = moved
        change = self.passes.scores(direction, 0.0, np.empty(len(self.scores)))
        t = self._step_length(local, moved, change + offset)
        if t == 1.0:
            self.damping = max(0.1 * self.damping, self.settings.least_damping)
        elif t < 0.3:
            self.damping = min(max(10 * self.damping, 1e-4), 1.0)
        self.steps += 1
        self.w[self.picked] = local.w + t * moved
        self.b += t * offset
        if self.steps % self.settings.refresh:
            self.scores += t * change
        else:
            self.passes.scores(self.w, 0.0, self.scores)
        self._check_optimality()

    def _step_length(self, local: _Local, moved: Floats, change: Floats) -> float:
        """Return a t ≤ 1 near which the objective stops falling along the direction."""
        f = self.scores + self.b

        def slope(t: float) -> float:
            at = local.w + t * moved
            sign = np.where(at == 0, np.sign(moved if t == 0 else -moved), np.sign(at))
            loss, _ = loops.newton.line(self.stage, 0, len(f), f, change, self.nowhere, 0.0, t)
            return float(loss + (self.l1 * sign + self.l2 * at) @ moved)

        first, last = slope(0.0), slope(1.0)
        if first >= 0:
            return 0.0
        if last <= 0 or (last <= -0.1 * first and slope(0.5) <= 0.2 * first):
            return 1.0
        left, right, at_left, at_right = 0.0, 1.0, first, last
        for _ in range(40):
            middle = left + (right - left) * min(max(at_left / (at_left - at_right), 0.1), 0.9)
            value = slope(middle)
            if value > 0:
                right, at_right = middle, value
            else:
                left, at_left = middle, value
                if value >= 0.1 * first:
                    break
        return left


def with_constant_column(problem: LinearProblem) -> LinearProblem:
    """Return the problem with a column for its constant feature, if there is one."""
    constant, X = problem.features.constant, problem.features.X
    if not constant:
        return problem
    column = np.full((X.shape[0], 1), constant)
    if sp.issparse(X):
        X = sp.hstack([X, sp.csr_array(column)], format="csr")
    else:
        X = np.hstack([X, column])
    return replace(problem, features=LinearFeatures(X))


_FAR = 30.0  # from 0, in standard deviations of a column


def _far_from_zero(problem: LinearProblem) -> float:
    """Return how far columns are from 0, in deviations; 0 if they are not, or may be centred."""
    X, loss = problem.features.X, problem.loss
    if problem.intercept is Intercept.FREE or sp.issparse(X) or loss.epsilon:
        return 0.0
    means, spread = X.mean(axis=0), X.std(axis=0)
    far = float((np.abs(means) / np.where(spread > 0, spread, np.inf)).max(initial=0.0))
    return far if far > _FAR else 0.0


def _with_tie(problem: LinearProblem) -> LinearProblem:
    """Return the problem with centred columns, a free intercept, and a row that ties it to w.

    Columns far from 0 are all but equal to each other and to a constant one, and coordinates hardly
    get ahead. With m their means and u the weight of the constant c, w·x + cu = w·(x − m) + b where
    b = w·m + cu: a row (−m, −c) whose score must be 0. Any other costs more than all rows gain.
    """
    loss, X = problem.loss, with_constant_column(problem).features.X
    means = X.mean(axis=0)
    centred = np.vstack([X - means, -means])
    curved = loss.quadratic > 0
    bound = np.where(curved, 1 / np.where(curved, loss.quadratic, 1.0), loss.high - loss.low)
    cost = 2.0 * float(bound.sum())
    tied = loss._replace(
        target=np.append(loss.target, 0.0),
        low=np.append(loss.low, -cost),
        high=np.append(loss.high, cost),
        quadratic=np.append(loss.quadratic, 0.0),
    )
    return Problem.linear(centred, tied, l1_ratio=problem.l1_ratio)
