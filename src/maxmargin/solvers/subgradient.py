"""Stochastic subgradient descent: one row at a time, in memory or as a stream.

This is the slowest way to many digits, and the only one that never needs all rows at once. The
means of weights and duals over the later half of all visits are the primal and the dual point.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.loops.records import Loss
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.row_sums import Passes, repaired

_BATCH = 20_000  # rows between two checks of the clock


class Weights(NamedTuple):
    """What is known of each column, and of the constant feature at the end."""

    w: Floats
    sums: Floats  # Σ g
    squares: Floats  # Σ g²
    moments: Floats  # Σ x²
    total: Floats  # Σ w over the visits up to ``since``
    since: Floats

    @classmethod
    def zeros(cls, d: int) -> "Weights":
        """Return the state before the first visit."""
        return cls(*(np.zeros(d + 1) for _ in range(6)))


class Learner:
    """The state of a stream of rows, and its mean weights."""

    def __init__(self, d: int, intercept: Intercept, lift: float) -> None:
        self.weights = Weights.zeros(d)
        self.lift = 0.0 if intercept is Intercept.NONE else lift
        self.ridge = 0.0 if intercept is Intercept.FREE else 1.0
        self.clock = 0.0
        self.counted_from = 0.0

    def adopt(self, w: Floats, b: float, squares: Floats, moments: Floats, seen: float) -> None:
        """Continue from weights found otherwise, given Σβ²x² and Σx² of the rows behind them."""
        state = self.weights
        state.w[:] = np.append(w, b / self.lift if self.lift > 0 else 0.0)
        state.squares[:] = squares
        state.moments[:] = moments
        below = np.append(np.ones(len(w)), self.ridge)
        state.sums[:] = state.w * (below + np.sqrt(moments / max(seen, 1.0) * squares))
        self.clock = seen
        self.forget()

    def visit(
        self, rows: object, loss: Loss, order: npt.NDArray[np.int64], rounds: float, duals: Floats
    ) -> Iterator[None]:
        """Visit rows in order, yielding now and then."""
        for begin in range(0, len(order), _BATCH):
            self.clock = loops.subgradient.visit(
                rows, loss, order, begin, min(begin + _BATCH, len(order)), rounds, self.ridge,
                self.lift, self.clock, self.weights, duals,
            )  # fmt: skip
            yield

    def forget(self) -> None:
        """Begin a new mean."""
        self.weights.total[:] = 0.0
        self.weights.since[:] = self.clock
        self.counted_from = self.clock

    def mean(self) -> tuple[Floats, float]:
        """Return the mean of weights and intercept since the last ``forget``."""
        state = self.weights
        sums = state.total + state.w * (self.clock - state.since)
        mean = sums / max(self.clock - self.counted_from, 1.0)
        return mean[:-1].copy(), float(mean[-1]) * self.lift


@dataclass(frozen=True)
class Subgradient:
    """Settings of the method."""

    seed: int = 0

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each epoch, and unfinished ones in between."""
        n, d = problem.features.X.shape
        rng = np.random.default_rng(self.seed)
        passes = Passes(problem, centred=False)
        learner = Learner(d, problem.intercept, problem.features.constant or 1.0)
        duals, f = np.zeros(n), np.empty(n)
        w = np.zeros(d) if start.w is None else start.w
        beta = np.zeros(n) if start.beta is None else start.beta
        best = _iterate(problem, passes, w, start.b, beta, f)
        yield best
        averaged = 0
        for epoch in count():
            if epoch in (1, 2 * averaged):
                learner.forget()
                duals[:] = 0.0
                averaged = epoch
            order = rng.permutation(n)
            for _ in learner.visit(passes.rows, problem.loss, order, epoch + 1, duals):
                yield best.unfinished()
            w, b = learner.mean()
            mean_duals = duals / (epoch + 1 - averaged)
            best = best.improved(_iterate(problem, passes, w, b, mean_duals, f))
            yield best


def _iterate(
    problem: LinearProblem, passes: Passes, w: Floats, b: float, beta: Floats, f: Floats
) -> Iterate:
    """Return the objective at w and b, and the dual objective at β made feasible."""
    passes.scores(w, b, f)
    primal = 0.5 * float(w @ w) + passes.losses(f)
    if problem.intercept is Intercept.PENALIZED:
        primal += 0.5 * (b / problem.features.constant) ** 2
    beta, dual = repaired(problem, passes, beta)
    return Iterate(primal, dual, w, b, beta)
