"""Dual coordinate descent with shrinking, for sparse and wide data.

A free intercept is the multiplier of Σβ = 0: the sweeps see a constant feature of size √τ next to a
fixed offset b̄ (a proximal term on b), and b̄ moves to where b has come after each round.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.row_sums import Passes, repaired


@dataclass(frozen=True)
class DualCD:
    """Settings of the method."""

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False  # rows in the order given, instead of a new random one for each sweep
    sweeps: int = 200  # in a round, at most
    visits: int = 50  # of each row in a round, at most: shrunk rows are not visited
    first: float = 0.5  # violation at which the first round ends, in units of the residuals
    factor: float = 0.2  # by which it is smaller for each next round

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
        self.beta = np.zeros(n)
        if start.beta is not None:  # the first step of b is as long as Σβ, if it is free
            self.beta, _ = within_groups(loss, start.beta, problem.groups, problem.totals)
        self.w = passes.combination(self.beta)
        self.norms = np.empty(n)
        loops.dual_cd.squared_norms(passes.rows, self.norms)
        self.free = problem.intercept is Intercept.FREE
        self.tau = problem.features.constant**2
        self.b = np.array([self.tau * self.beta.sum()])
        if self.free:
            self.tau = max(float(self.norms.mean()), _least_prox(loss))
            self.b[0] = start.b
        self.order = np.arange(n)
        self.count = n
        self.random = np.array([settings.seed + 0x9E3779B97F4A7C15], np.uint64)
        self.limits = np.array([np.inf, -np.inf])
        self.converged = self.slow = False
        self.target = settings.first * losses.residual_unit(loss)
        self.f = np.empty(n)
        self.primal, self.dual = np.inf, -np.inf
        self.best_w, self.best_b, self.best_beta = self.w.copy(), float(self.b[0]), np.zeros(n)
        self.check_optimality()

    def iterate(self) -> Iterate:
        return Iterate(self.primal, self.dual, self.best_w, self.best_b, self.best_beta)

    def round(self) -> Iterator[None]:
        """Sweep until violations are small enough, leaving out rows at rest; then all are back."""
        self.count = len(self.order)
        if self.settings.cyclic:
            self.order.sort()
        self.limits[:] = np.inf, -np.inf
        self.slow = True
        left = self.settings.visits * len(self.order)
        for _ in range(self.settings.sweeps):
            everything = self.count == len(self.order)
            left -= self.count
            worst = np.array([0.0, 0.0])
            yield from self._sweep(worst)
            largest = max(worst[0], -worst[1])
            self.converged = everything and largest == 0.0
            if largest <= self.target:
                self.target *= self.settings.factor
                self.slow = False
                break
            if left <= 0:
                break
            self.limits[:] = worst[0] or np.inf, worst[1] or -np.inf
        if self.free:
            step = self.tau * float(self.beta.sum())
            self.b[0] += step
            self.converged = self.converged and step == 0.0

    def _sweep(self, worst: Floats) -> Iterator[None]:
        """Visit the rows that are left once, pausing now and then; then shrink."""
        if not self.settings.cyclic:
            loops.dual_cd.shuffle(self.order, self.count, self.random)
        begin = 0
        while begin < self.count:
            begin = loops.dual_cd.sweep(
                self.passes.rows, self.problem.loss, self.norms, self.order, begin,
                self.count, self.limits, self.tau, self.w, self.b, self.beta, worst,
            )  # fmt: skip
            yield
        visited = self.order[: self.count]
        leave = visited < 0
        self.order[: self.count] = np.concatenate([visited[~leave], ~visited[leave]])
        self.count -= int(np.count_nonzero(leave))

    def check_optimality(self) -> None:
        """Compute both bounds where we stand, and keep the best."""
        problem = self.problem
        b = float(self.b[0])
        self.passes.scores(self.w, b, self.f)
        fitted = self.passes.losses(self.f)
        primal = 0.5 * float(self.w @ self.w) + fitted
        if not self.free and self.tau:
            primal += 0.5 * b * b / self.tau
        if primal < self.primal:
            self.primal, self.best_w, self.best_b = primal, self.w.copy(), b
        beta, dual = repaired(problem, self.passes, self.beta)
        if dual > self.dual:
            self.dual, self.best_beta = dual, beta.copy()


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
