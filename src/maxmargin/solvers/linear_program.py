"""Linear programs of HiGHS on the rows that are in doubt, for an ℓ1 penalty and losses with kinks.

    min_{w,b}  ‖w‖₁ + Σ ℓᵢ(w·xᵢ + b)          ℓᵢ(f) = max over low ≤ β ≤ high of β(t − f)

    max_β  Σ tβ    s.t.  low ≤ β ≤ high,  |v| ≤ 1,  v = Xᵀβ,  and Σβ = 0 if b is free

The dual program is the smaller one: a variable for each row, an equation for each column, of which
w are the multipliers. Few rows decide, about as many as w has entries: the others have their β at
the bound that belongs to their side of the kink, where it stays unless the program that is left
puts them on the other side. Each program is a relaxation of the whole one (a loss is at least
either of its sides), so its β is feasible and both bounds are known after each round. Sifting:
Bixby et al. (1992), "Very large-scale linear programming".

The method of multipliers (``ProximalNewton``) is ten times as fast; this one goes on where that one
drowns in rounding. HiGHS hears no signals, so it runs in a thread that is watched. A thread that
nobody waits for any more ends at its own time limit.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.problems import losses
from maxmargin.problems.duality import best_intercept, within_groups
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.runtime import clock
from maxmargin.solvers.proximal_newton import best_scale, with_constant_column

_OPTIMAL, _OUT_OF_TIME = 0, 1  # what scipy calls them


@dataclass(frozen=True)
class LinearProgram:
    """Settings of the method."""

    few_rows: int = 2000  # up to which all are in doubt from the beginning
    first: int = 4  # rows in doubt at first, for each column
    growth: int = 4  # by which they grow while there is no solution
    rounds: int = 50
    tolerance: float = 1e-10  # of HiGHS, the least that it takes
    seconds: float = 20.0  # for a program, before it is begun again with four times as much
    pause: float = 0.05  # seconds between two looks at the thread

    @staticmethod
    def takes(problem: LinearProblem) -> bool:
        """Return whether a problem is a linear program of this kind."""
        loss = problem.loss
        return problem.l1_ratio == 1 and not loss.quadratic.any() and not loss.epsilon

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each program, and unfinished ones while one is solved."""
        state = _State(self, problem, start)
        yield state.iterate()
        for _ in range(self.rounds):
            worker = _Worker(state.program(), self.tolerance, state.seconds)
            while worker.running(self.pause):
                yield state.iterate().unfinished()
            state.take(worker.found)
            yield state.iterate()
            if state.converged:
                return


class _Worker:
    """HiGHS at work on a program, in a thread."""

    def __init__(self, program: dict[str, Any], tolerance: float, seconds: float) -> None:
        self.found: Any = None
        self._program = program
        self._options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "time_limit": min(seconds, max(clock.limit().end - clock.now(), self._LEAST)),
        }
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._solve, daemon=True)
        self._thread.start()

    _LEAST = 0.01  # seconds

    def running(self, pause: float) -> bool:
        """Wait for a moment, and return whether it is still at work; raise what it raised."""
        self._thread.join(pause)
        if self._thread.is_alive():
            return True
        if self._error is not None:
            raise self._error
        return False

    def _solve(self) -> None:
        from scipy.optimize import linprog  # it takes a while to load

        try:
            self.found = linprog(**self._program, method="highs-ds", options=self._options)
        except BaseException as error:  # raised where it is waited for
            self._error = error


class _State:
    """Which rows are in doubt, and the best bounds so far."""

    def __init__(self, settings: LinearProgram, problem: LinearProblem, start: Point) -> None:
        self.settings, self.given, self.seconds = settings, problem.features, settings.seconds
        self.problem = problem = with_constant_column(problem)
        self.loss, self.free = problem.loss, problem.intercept is Intercept.FREE
        n, d = problem.features.X.shape
        self.w, self.b = np.zeros(d), 0.0
        self.primal, self.dual, self.beta = np.inf, 0.0, np.zeros(n)
        self.converged = False
        w = self.w if start.w is None else self.given.join(start.w, start.b)
        beta = self.beta if start.beta is None else start.beta
        self._offer(w, beta)
        self.doubted = np.ones(n, dtype=bool)
        self.wanted = n if n <= settings.few_rows else settings.first * (d + 1)
        self._doubt_nearest()

    def iterate(self) -> Iterate:
        """Return the best so far."""
        w, b = self.w, self.b
        if constant := self.given.constant:
            w, b = w[:-1], constant * float(w[-1])
        return Iterate(self.primal, self.dual, w, b, self.beta, converged=self.converged)

    # --- programs

    def _doubt_nearest(self) -> None:
        """Doubt the rows nearest to their kink, as many as are wanted, and settle the others."""
        residual = self._residuals(self.w, self.b)
        if self.wanted < len(residual):
            nearest = np.argpartition(np.abs(residual), self.wanted)[: self.wanted]
            self.doubted = np.zeros(len(residual), dtype=bool)
            self.doubted[nearest] = True
        else:
            self.doubted[:] = True
        self.settled = np.where(residual > 0, self.loss.high, self.loss.low)

    def _residuals(self, w: Floats, b: float) -> Floats:
        return np.asarray(self.loss.target - self.problem.products(w) - b)

    def program(self) -> dict[str, Any]:
        """Return what is minimised over the duals in doubt, in units of their own, and over v."""
        self.rows = np.flatnonzero(self.doubted)
        X, loss = self.problem.features.X[self.rows], self.loss.take(self.rows)
        self.unit = self._units(X, loss.high - loss.low)
        d, fixed = X.shape[1], np.where(self.doubted, 0.0, self.settled)
        A = sp.diags_array(self.unit) @ sp.csr_array(X, dtype=np.float64)
        equations, sides = (
            [sp.hstack([A.T, -sp.eye_array(d)])],
            [-self.problem.features.combine(fixed)],
        )
        if self.free:
            equations.append(sp.csr_array(np.append(self.unit, np.zeros(d))[np.newaxis]))
            sides.append(np.array([-fixed.sum()]))
        bounds = np.vstack(
            [
                np.column_stack([loss.low, loss.high]) / self.unit[:, np.newaxis],
                np.tile([-1.0, 1.0], (d, 1)),
            ]
        )
        return {
            "c": np.append(-loss.target * self.unit, np.zeros(d)),
            "A_eq": sp.vstack(equations, format="csc"),
            "b_eq": np.concatenate(sides),
            "bounds": bounds,
        }

    @staticmethod
    def _units(X: Any, box: Floats) -> Floats:
        """Return in what each dual is counted: its box, or less where that would fill v."""
        largest = abs(X).max(axis=1)
        largest = np.ravel(largest.toarray() if sp.issparse(largest) else largest)
        return np.minimum(box, 1.0 / np.maximum(largest.astype(np.float64), 1e-300))

    def take(self, found: Any) -> None:
        """Take in what HiGHS found, and choose the rows to doubt next."""
        if found.status == _OUT_OF_TIME:
            self.seconds *= 4
            return
        if found.status != _OPTIMAL:
            self._widen()
            return
        d = len(self.w)
        w = -found.eqlin.marginals[:d]
        beta = np.where(self.doubted, 0.0, self.settled)
        beta[self.rows] = self.unit * found.x[: len(self.rows)]
        self._offer(w, beta)
        residual = self._residuals(w, self._best_b(w))
        side = np.where(residual > 0, self.loss.high, self.loss.low)
        wrong = ~self.doubted & (side != self.settled)
        self.converged = not wrong.any()
        self.doubted |= wrong

    def _widen(self) -> None:
        """Doubt more rows: with the others as they are there is no solution, or none is found."""
        self.converged = bool(self.doubted.all())
        self.wanted = min(len(self.doubted), self.settings.growth * self.wanted)
        self._doubt_nearest()

    # --- bounds

    def _best_b(self, w: Floats) -> float:
        return best_intercept(self.loss, self.problem.products(w), self.b) if self.free else 0.0

    def _offer(self, w: Floats, beta: Floats) -> None:
        """Keep weights and duals that are better than those so far."""
        scores = self.problem.products(w)
        b = best_intercept(self.loss, scores, self.b) if self.free else 0.0
        primal = float(np.abs(w).sum() + losses.values(self.loss, scores + b).sum())
        if primal < self.primal:
            self.primal, self.w, self.b = primal, w, b
        beta, _ = within_groups(self.loss, beta, self.problem.groups, self.problem.totals)
        scale, dual = best_scale(self.loss, beta, self.problem.features.combine(beta), 1.0, 0.0)
        if dual > self.dual:
            self.dual, self.beta = dual, scale * beta
