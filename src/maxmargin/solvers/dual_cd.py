"""Dual coordinate descent with shrinking and active-set steps, for sparse and wide data.

A free intercept is the multiplier of Σβ = 0: the sweeps see a constant feature of size √τ next to a
fixed offset b̄ (a proximal term on b), and b̄ moves to where b has come after each round.

Sweeps find out which duals are free, and are slow to settle them. Where few come to a bound or
leave one, conjugate gradients minimise over the free ones, as Moré & Toraldo (SIAM J. Optim. 1991)
do between projected gradient steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import clock, loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.row_sums import Passes, repaired

_HALVINGS = 8  # of a step that costs more
_ROUNDING = 1e-15  # of a bound, by which it may be off


@dataclass(frozen=True)
class DualCD:
    """Settings of the method."""

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False  # rows in the order given, instead of a new random one for each sweep
    sweeps: int = 200  # in a round, at most
    visits: int = 50  # of each row in a round, at most: shrunk rows are not visited
    first: float = 1.0  # violation at which the first round ends, in units of the residuals
    factor: float = 0.2  # of the largest violation, at which each next round ends
    rest: float = 0.1  # of the largest violation: rows at rest by more are shrunk
    settled: float = 0.02  # of the free duals, that may come or go in a sweep before a step on them
    step_part: float = 0.1  # of the residual that a step may leave
    most_steps: int = 60  # of conjugate gradients
    least_steps: int = 5  # before they end because duals leave their bounds …
    outside: float = 0.005  # … if more than this part of them does

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each round of sweeps (unfinished ones in between).

        It ends when no row violates anything, or when a round took too many sweeps.
        """
        for _, iterate in self.steps(problem, start):
            yield iterate

    def steps(self, problem: LinearProblem, start: Point) -> Iterator[tuple[Point, Iterate]]:
        """Yield the same iterates with the point at which the sweeps stand.

        Its weights are those of its duals, while an iterate has the best of either so far.
        """
        state = _DualCDState(self, problem, start)
        at = Point(state.w, state.b, state.beta)
        while True:
            yield at, state.iterate()
            for _ in state.round():
                yield at, state.iterate().unfinished()
            state.check_optimality()
            if state.converged or state.slow:
                yield replace(at, b=float(state.b[0])), state.iterate()
                return


def _least_prox(loss: Loss) -> float:
    """Return how far b should move at least for a unit of Σβ: all duals together move it by 1."""
    total = float((loss.high - loss.low).sum())
    return 1.0 / total if np.isfinite(total) else 1e-300


class _DualCDState:
    def __init__(self, settings: DualCD, problem: LinearProblem, start: Point) -> None:
        self.settings, self.problem = settings, problem
        self.passes = passes = Passes(problem, settings.threads, centred=False)
        loss = problem.loss
        n = len(problem)
        self.beta, self.w = np.zeros(n), np.zeros(passes.d)
        if start.beta is not None:  # the first step of b is as long as Σβ, if it is free
            self.beta, _ = within_groups(loss, start.beta, problem.groups, problem.totals)
            self.w = passes.combination(self.beta)
        self.diagonal = np.empty(n)
        loops.dual_cd.squared_norms(passes.rows, self.diagonal)
        self.free = problem.intercept is Intercept.FREE
        self.tau = problem.features.constant**2
        self.b = np.array([self.tau * self.beta.sum()])
        if self.free:
            self.tau = max(float(self.diagonal.mean()), _least_prox(loss))
            self.b[0] = start.b
        self.diagonal += self.tau + loss.quadratic
        self.order = np.arange(n)
        self.count = n  # of rows that are not shrunk: the first ones of the order
        self.random = np.array([settings.seed + 0x9E3779B97F4A7C15], np.uint64)
        self.limits = np.array([np.inf, -np.inf])
        self.converged = self.slow = False
        self.visited = 0  # rows, since others had a turn
        self.target = first = settings.first * losses.residual_unit(loss) / settings.factor
        self.f = np.zeros(n)
        self.primal, self.dual = np.inf, -np.inf
        self.best_w, self.best_b, self.best_beta = self.w.copy(), float(self.b[0]), np.zeros(n)
        self.check_optimality()
        if start.beta is None:  # what scores of 0 say about rows does not last
            self.limits[:] = np.inf, -np.inf
            self.target = first

    def iterate(self) -> Iterate:
        return Iterate(self.primal, self.dual, self.best_w, self.best_b, self.best_beta)

    def round(self) -> Iterator[None]:
        """Sweep until violations are small enough, leaving out rows at rest."""
        settings = self.settings
        self.target *= settings.factor
        self.slow = True
        left = settings.visits * len(self.order)
        waited, wait, before = 0, 2, np.inf  # sweeps since a step, and before the next
        for _ in range(settings.sweeps):
            left -= self.count
            worst = np.zeros(3)
            yield from self._sweep(worst)
            largest = max(worst[0], -worst[1])
            if largest <= self.target:
                self.slow = False
                break
            if left <= 0:
                break
            self.limits[:] = settings.rest * worst[:2]
            waited += 1
            if waited >= wait and worst[2] <= settings.settled * self.count:
                wait = 2 * wait if largest > 0.5 * before else 1
                waited, before = 0, largest
                left -= self._active_set_step(worst[2])
        if self.free:
            self.b[0] += self.tau * float(self.beta.sum())

    def _sweep(self, worst: Floats) -> Iterator[None]:
        """Visit the rows that are left once, pausing now and then, and shrink."""
        if self.settings.cyclic:
            self.order[: self.count].sort()
        else:
            loops.dual_cd.shuffle(self.order, self.count, self.random)
        begin = 0
        while begin < self.count:
            before = self.count - begin
            begin, self.count = loops.dual_cd.sweep(
                self.passes.rows, self.problem.loss, self.diagonal, self.order, begin,
                self.count, self.limits, self.tau, self.w, self.b, self.beta, worst,
            )  # fmt: skip
            self.visited += before - (self.count - begin)
            if self.visited >= loops.dual_cd.ROWS_A_CALL:
                self.visited = 0
                yield

    def _active_set_step(self, changed: float) -> int:
        """Minimise over the free duals, up to their bounds; return how many visits that took."""
        settings, rows, loss = self.settings, self.passes.rows, self.problem.loss
        free = self._free_rows()
        if changed > settings.settled * len(free) or not len(free):
            return 0
        first, image = np.empty(len(free)), np.empty(self.passes.d)
        curves, direction, step = np.zeros((3, len(free)))
        size = loops.dual_cd.residuals(
            rows, loss, free, self.diagonal, self.w, self.b, self.beta, first
        )
        enough, last, products, residual = settings.step_part**2 * size, np.inf, 0, first.copy()
        most = min(settings.most_steps, len(free), self.passes.d + 1)
        while size > enough and products < most:
            clock.check()
            following, outside = loops.dual_cd.conjugate_step(
                rows, loss, free, self.diagonal, self.tau, self.beta, size, last,
                image, curves, direction, step, residual,
            )  # fmt: skip
            size, last, products = following, size, products + 1
            if products >= settings.least_steps and outside > settings.outside * len(free):
                break
        for _ in range(_HALVINGS):
            if self._move(free, step, first):
                break
            step *= 0.5
        return (products + 2) * len(free)

    def _move(self, free: Ints, step: Floats, slopes: Floats) -> bool:
        """Move free duals up to their bounds, unless that costs more."""
        loss, old = self.problem.loss, self.beta[free]
        low, high = loss.low[free], loss.high[free]
        if loss.epsilon:  # a dual stays on its side of the kink
            low, high = np.where(old > 0, 0.0, low), np.where(old < 0, 0.0, high)
        new, image = np.clip(old + step, low, high), np.zeros(self.passes.d)
        step = new - old
        loops.dual_cd.combine(self.passes.rows, free, step, image)
        total = float(step.sum())
        curve = float(image @ image) + float(step @ (loss.quadratic[free] * step))
        if not float(slopes @ step) > 0.5 * (curve + self.tau * total**2):
            return False
        self.beta[free] = new
        self.w += image
        self.b[0] += self.tau * total
        return True

    def _free_rows(self) -> Ints:
        rows, loss = self.order[: self.count], self.problem.loss
        beta = self.beta[rows]
        free = (beta > loss.low[rows]) & (beta < loss.high[rows]) & (self.diagonal[rows] > 0)
        return np.sort(rows[free & (beta != 0)] if loss.epsilon else rows[free])

    def check_optimality(self) -> None:
        """Compute both bounds where we stand, keep the best, and choose the rows to go on with."""
        b = float(self.b[0])
        if self.w.any():
            self.passes.scores(self.w, b, self.f)
        else:
            self.f[:] = b
        self.count, largest, fitted, gain, lost, linear, square = loops.dual_cd.survey(
            self.problem.loss, self.f, self.beta, self.settings.rest, self.order, self.limits
        )
        norm2 = float(self.w @ self.w)
        primal = 0.5 * norm2 + fitted
        if not self.free and self.tau:
            primal += 0.5 * b * b / self.tau
        if primal <= self.primal + _ROUNDING * abs(primal):  # of equals the last is the nearest
            self.primal, self.best_w, self.best_b = min(primal, self.primal), self.w.copy(), b
        if self.free and gain != lost:
            beta, dual = repaired(self.problem, self.passes, self.beta)
        else:
            square += norm2 + (0.0 if self.free else self.tau * (gain - lost) ** 2)
            scale = min(1.0, max(linear, 0.0) / square) if square > 0 else 1.0
            beta, dual = scale * self.beta, scale * linear - 0.5 * scale**2 * square
        if dual >= self.dual - _ROUNDING * abs(dual):
            self.dual, self.best_beta = max(dual, self.dual), beta
        self.target = min(self.target, largest)
        self.converged = largest == 0.0 and not (self.free and self.beta.sum())


# ------------------------------------------------------------------- wide
#
# Sparse and wide data: coordinate descent while it is fast, Newton steps where it is not.


@dataclass(frozen=True)
class DualCDThenNewton:
    """Settings of both."""

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield iterates of the one, then of the other, never worse than before."""
        last: tuple[Point, Iterate] | None = None
        for last in DualCD(self.seed, self.threads, self.cyclic).steps(problem, start):
            yield last[1]
        if last is None:
            return
        at, best = last
        for iterate in Newton(self.threads).iterates(problem, at):
            best = iterate if iterate.converged else best.improved(iterate)
            yield replace(best, finished=iterate.finished)
