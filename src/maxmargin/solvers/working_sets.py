"""Newton's method by coordinate descent on working sets, for ℓ1 and elastic-net penalties.

    min_{w,b}  ratio·‖w‖₁ + (1 − ratio)/2·‖w‖² + Σ ℓᵢ(w·xᵢ + b),    0 < ratio ≤ 1, ℓᵢ smooth

    max_β  Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − ratio, 0)²/(2(1 − ratio)),    v = Xᵀβ

(for ratio = 1 the last sum is the constraint |vⱼ| ≤ ratio), and Σβ = 0 if the intercept is free.
Of all columns only those whose weight is not 0, and as many of those that violate optimality most,
enter a quadratic model of the losses (the rows inside the margin count, the others do not); its
minimiser, found by coordinate descent, gives the direction of a line search. Free intercepts are
eliminated exactly. Johnson & Guestrin (2015), "Blitz"; Massias et al. (2018), "Celer"; Yuan et al.
(2012), "An improved GLMNET", for the quadratic model.

Unless rows are many, few of them decide, and Newton's method would long guess which. The losses are
then smoothed around anchors a: − ½ smoothing (β − a)² is added to each, which only changes target
and shift. The duals reached become the next anchor and smoothing shrinks: the method of
multipliers, so that the gap closes before smoothing is gone. Rockafellar (1976).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.loops.records import Loss
from maxmargin.problems.problem import Bracket, Intercept, Problem, Start
from maxmargin.solvers.column_models import ByColumns
from maxmargin.solvers.designs import design_of
from maxmargin.solvers.gram_models import Gram, Products
from maxmargin.solvers.quadratic_models import Local, Model, minimised
from maxmargin.solvers.sparse_duals import balanced, best_scale, penalties

_ALL = 200  # so many columns are not worth choosing from
_WIDEST_GRAM = 1500
_REFRESH = 16  # steps after which scores are computed afresh: updates accumulate rounding
_DAMPING = 1e-6  # first part of a column's full curvature added to the model
_LEAST = 1e-14
_MANY_ROWS = 10  # times as many rows as columns: no smoothing
_SMOOTH = 0.1  # first smoothing, as part of what would keep all weights at 0
_FAST, _SLOW = 0.03, 0.2  # smoothing after a stage of one or two steps, and after a longer one
_PATIENCE = 10  # rounds of descent on one model
_UNTOLD = 10  # steps on smoothed losses that may count as one iteration
_GIVE_UP = 8  # steps without any gain


@dataclass(frozen=True)
class WorkingSets:
    """Settings of the method.

    Parameters
    ----------
    growth : float, default 1.0
        How many columns join the working set, for each one whose weight is not 0.
    least : int, default 64
        How many join at least.
    accuracy : float, default 0.1
        At what part of its first size a move of the model's minimiser is small enough.
    """

    growth: float = 1.0
    least: int = 64
    accuracy: float = 0.1

    def iterates(self, problem: Problem, start: Start) -> Iterator[Bracket]:
        """Yield a bracket after each Newton step, and unfinished ones on the way."""
        with one_blas_thread():
            run = _Run(self, problem, start)
        yield run.bracket()
        while run.goes_on():
            for _ in _with_one_thread(run.advance()):
                yield run.bracket(finished=False)
            yield run.bracket(run.tells())


def _with_one_thread(pieces: Iterator[None]) -> Iterator[None]:
    """Yield as the pieces do, BLAS kept to one thread while they work: vectors are short."""
    while True:
        with one_blas_thread():
            try:
                next(pieces)
            except StopIteration:
                return
        yield


class _Run:
    """Where the method stands, and the best bounds so far."""

    def __init__(self, settings: WorkingSets, problem: Problem, start: Start) -> None:
        self.settings = settings
        self.loss = problem.loss
        self.intercept = problem.intercept
        self.design = design_of(problem)
        self.l1, self.l2 = penalties(problem, self.design.shape[1])
        self.masses = self.design.masses(1 / problem.loss.quadratic)
        self.w = _start_weights(problem, start, self.masses > 0)
        free = problem.intercept is Intercept.FREE
        self.b = start.b + float(self.design.centre @ self.w) if free else 0.0
        self.beta, self.curvature = np.empty((2, self.design.shape[0]))
        self.primal, self.dual = np.inf, -np.inf
        self.stage_primal, self.stage_gap, self.least_gap = np.inf, np.inf, np.inf
        self.damping, self.steps, self.idle = _DAMPING, 0, 0
        self.untold, self.told_gap = 0, np.inf
        self.picked = np.empty(0, np.int64)
        self.products = Products(self.design)
        self.scores = self.design.scores(self.w)
        self.stage, self.smoothing, self.stage_steps = self.loss, 0.0, 0
        if start.beta is not None:
            beta = balanced(np.clip(start.beta, self.loss.low, self.loss.high), self.intercept)
            self._offer(beta, self.design.gradients(beta))
        self.look()
        if (smoothing := self._smoothing_at_first()) > 0:
            self._begin_stage(np.zeros(len(self.beta)), smoothing)

    def _smoothing_at_first(self) -> float:
        """Return how much to smooth where all weights are 0: just enough that few would leave it.

        With many more rows than columns the rows inside the margin are soon found without.
        """
        n_rows, width = self.design.shape
        if width * _MANY_ROWS < n_rows or self.w.any():
            return 0.0
        residuals = self.design.gradients(self.beta * self.loss.quadratic)
        smoothing = _SMOOTH * float(np.max(np.abs(residuals) / self.l1, initial=0.0))
        return smoothing if smoothing > 10 * self.loss.quadratic.min() else 0.0

    def _begin_stage(self, anchor: Floats, smoothing: float) -> None:
        """Smooth the losses around an anchor, and see where that leaves us."""
        self.smoothing, self.stage_steps, self.least_gap = smoothing, 0, np.inf
        self.stage = self.loss._replace(
            target=self.loss.target + smoothing * anchor, quadratic=self.loss.quadratic + smoothing
        )
        self.masses = self.design.masses(1 / self.stage.quadratic)
        self.look()

    def _stage_done(self) -> bool:
        """Return whether smoothing, rather than what is left to do in this stage, makes the gap."""
        enough = min(0.1 * (self.primal - self.dual), 0.3 * self.stage_primal)
        return self.smoothing > 0 and (self.stage_gap < enough or self.idle >= _GIVE_UP // 2)

    def look(self) -> None:
        """Evaluate losses, duals and slopes where we are, and keep what is best."""
        before = self.primal, self.dual, self.least_gap
        norm = float(self.l1 @ np.abs(self.w) + 0.5 * self.l2 @ self.w**2)
        if self.smoothing:
            b, loss = self._losses(self.loss)
            self._keep(norm + loss, b)
        self.b, loss = self._losses(self.stage)
        if not self.smoothing:
            self._keep(norm + loss, self.b)
        self.beta = balanced(self.beta, self.intercept)
        self.v = self.design.gradients(self.beta)
        self._offer(self.beta, self.v)
        if self.smoothing:
            self.stage_primal = norm + loss
            bound = best_scale(self.stage, self.beta, self.v, self.l1, self.l2)[1]
            self.stage_gap = self.stage_primal - bound
            self.least_gap = min(self.least_gap, self.stage_gap)
        after = self.primal, self.dual, self.least_gap
        self.idle = self.idle + 1 if before == after else 0

    def _losses(self, terms: Loss) -> tuple[float, float]:
        """Return the best intercept and the sum of losses, and fill β and curvature."""
        b = self.b
        if self.intercept is Intercept.FREE:
            b = loops.working_sets.best_offset(terms, self.scores, b)
        return b, loops.working_sets.losses_at(terms, self.scores, b, self.beta, self.curvature)

    def _keep(self, primal: float, b: float) -> None:
        if primal < self.primal:
            w = self.w.copy()
            if self.intercept is Intercept.PENALIZED:
                w, b = w[:-1], float(w[-1])
            elif self.intercept is Intercept.FREE:
                b -= float(self.design.centre @ w)
            self.primal, self.best_w, self.best_b = primal, w, b

    def _offer(self, beta: Floats, v: Floats) -> None:
        scale, dual = best_scale(self.loss, beta, v, self.l1, self.l2)
        if dual > self.dual:
            self.dual, self.best_beta = dual, scale * beta

    def goes_on(self) -> bool:
        """Return whether there is anything to gain."""
        return self.idle < _GIVE_UP and self.primal > self.dual

    def tells(self) -> bool:
        """Return whether the gap says how things go: while losses are smoothed it may not."""
        gap = self.primal - self.dual
        self.untold += 1
        smoothed = self.smoothing > 0 and self.goes_on()
        if smoothed and self.untold < _UNTOLD and gap > 0.5 * self.told_gap:
            return False
        self.untold, self.told_gap = 0, gap
        return True

    def bracket(self, finished: bool = True) -> Bracket:
        """Return the best so far."""
        settled = finished and not self.goes_on()
        return Bracket(
            self.primal, self.dual, self.best_w, self.best_b, self.best_beta, finished, settled
        )

    def advance(self) -> Iterator[None]:
        """Make a Newton step, pausing in between."""
        if self._stage_done():
            smoothing = self.smoothing * (_FAST if self.stage_steps <= 2 else _SLOW)
            negligible = smoothing < 0.1 * self.loss.quadratic.min()
            self._begin_stage(self.beta, 0.0 if negligible else smoothing)
        self.stage_steps += 1
        self.picked = self._working_set()
        local = Local(
            self.w[self.picked],
            -self.v[self.picked],
            self.damping * self.masses[self.picked],
            self.l1[self.picked],
            self.l2[self.picked],
        )
        rows = np.flatnonzero(self.curvature)
        if self._prefers_gram(rows):
            yield from self.products.follow(self.picked, self.curvature)
            model = self._gram(local)
        else:
            model = self._by_columns(local, rows)
        yield from minimised(model, self.settings.accuracy, _PATIENCE)
        self._move(local, model.x - local.w, model.offset)

    def _gram(self, local: Local) -> Model:
        if self.intercept is not Intercept.FREE:
            return Gram(self.products.gram, np.zeros(len(local.w)), 0.0, local)
        means = self.design.gradients(self.curvature)[self.picked]
        return Gram(self.products.gram, means, float(self.curvature.sum()), local)

    def _by_columns(self, local: Local, rows: Ints) -> Model:
        root = np.sqrt(self.curvature)
        A = self.design.restricted(self.picked, rows, root)
        return ByColumns(A, root[rows], self.intercept is Intercept.FREE, local)

    def _prefers_gram(self, rows: Ints) -> bool:
        width = len(self.picked)
        return width <= _WIDEST_GRAM and width <= len(rows) * self.design.entries(width) / 4

    def _working_set(self) -> Ints:
        """Return the columns whose weight is not 0, and those that violate optimality most."""
        usable = self.masses > 0
        if np.count_nonzero(usable) <= _ALL:
            return np.flatnonzero(usable)
        live = self.w != 0
        wanted = int(max(self.settings.least, self.settings.growth * np.count_nonzero(live)))
        outside = np.flatnonzero(usable & ~live & (np.abs(self.v) > self.l1))
        if len(outside) > wanted:
            excess = (np.abs(self.v[outside]) - self.l1[outside]) ** 2 / self.masses[outside]
            outside = outside[np.argpartition(excess, -wanted)[-wanted:]]
        chosen = live.copy()
        chosen[outside] = True
        # A set that still has all of these, and not much else, keeps its products of columns.
        size = np.count_nonzero(chosen)
        small = len(self.picked) <= 2 * size + self.settings.least
        if small and np.count_nonzero(chosen[self.picked]) == size:
            return self.picked
        return np.flatnonzero(chosen)

    def _move(self, local: Local, moved: Floats, offset: float) -> None:
        """Go along a direction to where the objective is least."""
        change = self.design.change(self.picked, moved) + offset
        t = self._step_length(local, moved, change)
        if t == 1.0:
            self.damping = max(0.1 * self.damping, _LEAST)
        elif t < 0.3:
            self.damping = min(max(10 * self.damping, 1e-4), 1.0)
        self.steps += 1
        self.w[self.picked] = local.w + (moved if t == 1.0 else t * moved)
        self.b += t * offset
        if self.steps % _REFRESH:
            self.scores += t * (change - offset)
        else:
            self.scores = self.design.scores(self.w)
        self.look()

    def _step_length(self, local: Local, moved: Floats, change: Floats) -> float:
        """Return a t ≤ 1 near which the objective stops falling along the direction."""

        def slope(t: float) -> float:
            at = local.w + t * moved
            sign = np.where(at == 0, np.sign(moved if t == 0 else -moved), np.sign(at))
            loss: float = loops.working_sets.slope_along(self.stage, self.scores, self.b, change, t)
            return loss + float((local.l1 * sign + local.l2 * at) @ moved)

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


def _start_weights(problem: Problem, start: Start, usable: npt.NDArray[np.bool_]) -> Floats:
    w = np.zeros(len(usable))
    if start.w is not None:
        w[: len(start.w)] = start.w
    if problem.intercept is Intercept.PENALIZED:
        w[-1] = start.b
    return np.where(usable, w, 0.0)
