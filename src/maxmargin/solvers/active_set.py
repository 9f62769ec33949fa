"""Active sets near a solution: descent from corner to corner of the piecewise quadratic objective.

    ½‖w‖² + Σ ℓ(w·x + b),     ℓ the hinge, ε-insensitive or pinball loss

From the solution of a problem that is nearly the same (the last C of a path, some rows more or
less) few rows change sides: as many as half of the columns, or some hundred. Each of them costs a
step of about a pass over the rows near their kinks (``loops.active_set``), where Newton's method
needs two dozen passes over all rows to find which of them are free. All other rows keep their side
meanwhile; a pass over all of them shows which do not, and they are taken in.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Descent, DescentRule, Hinges
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.runtime import clock
from maxmargin.solvers.row_sums import Passes, repaired

_ON_KINK = 1e-9  # in units of the targets' scale
_SAME_SIDE = 1e-11  # of the same: a row so near to its kink is on the side it came from
_EXACT = 1e-12  # relative gap that counts as none
_MOST_NEAR = 20_000  # rows that are looked at together: each step compares the kinks it may pass


@dataclass(frozen=True)
class ActiveSet:
    """Settings of the method."""

    threads: int | None = None
    most_numbers: int = 1_300_000  # rows × columns, beyond which too many rows change sides
    most_columns: int = 500
    near_part: int = 16  # of the rows: one in this many is near enough to its kink at first
    near_per_column: int = 4
    aims: tuple[float, ...] = (1e-4, 1e-6, 1e-9, 1e-13)  # relative gaps, one after the other
    rounds: int = 12
    call: float = 1e8  # multiplications in a compiled call, some hundredths of a second

    def suits(self, problem: LinearProblem, start: Point) -> bool:
        """Return whether the start is worth going on from, and the problem is not too large."""
        loss, (n, d) = problem.loss, problem.features.X.shape
        known = start.w is not None and start.beta is not None
        small = n * d <= self.most_numbers and d <= min(n, self.most_columns)
        if not (known and small) or loss.quadratic.any():
            return False
        doubled = loss.epsilon == 0.0 and bool(((loss.low < 0) & (loss.high > 0)).any())
        return bool(np.isfinite(loss.high - loss.low).all()) and not doubled

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each round, until the objective falls no more."""
        state = _State(self, problem, start)
        yield state.iterate()
        aims = list(self.aims)
        for _ in range(self.rounds):
            clock.check()
            if not state.advance(aims[0]):
                return
            yield state.iterate()
            if state.converged:
                return
            while len(aims) > 1 and state.iterate().relative_gap <= 2 * aims[0]:
                aims.pop(0)


class _State:
    """Where the method stands, and the best bounds so far."""

    def __init__(self, settings: ActiveSet, problem: LinearProblem, start: Point) -> None:
        self.settings, self.problem = settings, problem
        self.passes = Passes(problem, settings.threads)
        loss, constant = problem.loss, problem.features.constant
        up, down = np.flatnonzero(loss.high > 0), np.flatnonzero(loss.low < 0)
        self.row = np.concatenate([up, down])
        self.kink = np.concatenate(
            [loss.target[up] - loss.epsilon, loss.target[down] + loss.epsilon]
        )
        self.low = np.concatenate([np.zeros(len(up)), loss.low[down]])
        self.high = np.concatenate([loss.high[up], np.zeros(len(down))])
        self.w = np.array(start.w, dtype=np.float64)
        self.b = float(start.b) + float(self.passes.centre @ self.w)
        self.ridge = 1.0 / constant**2 if constant else 0.0
        self.f = self.passes.scores(self.w, self.b, np.empty(self.passes.n))
        beta = start.beta[self.row]
        self.unit = losses.residual_unit(loss)
        off = self.kink - self.f[self.row]
        self.side = np.where(off > 0, self.high, self.low)
        on = np.abs(off) <= _ON_KINK * self.unit
        self.members = np.flatnonzero(on & (beta > self.low) & (beta < self.high))
        near = max(len(self.row) // settings.near_part, settings.near_per_column * self.passes.d)
        self.near = min(near, len(self.row))
        self.primal, self.dual, self.beta = self._objective(self.w, self.b, self.f), -np.inf, beta
        self.best_beta = np.zeros(self.passes.n)
        self.converged = False
        self._keep_dual(np.array(start.beta, dtype=np.float64))

    def iterate(self) -> Iterate:
        """Return the best bounds so far, and what attains them."""
        b = self.b - float(self.passes.centre @ self.w)
        return Iterate(self.primal, self.dual, self.w, b, self.best_beta, converged=self.converged)

    def advance(self, aim: float) -> bool:
        """Make a round: rows near their kinks, then a look at all; return whether that helped."""
        near = self._nearest()
        w, b, beta, members, ended = self._descend(near, aim)
        f = self.passes.scores(w, b, np.empty(self.passes.n))
        primal = self._objective(w, b, f)
        last = self.primal - self.dual
        if primal > self.primal + _EXACT * abs(self.primal):
            # Others crossed their kinks on the way: go as far as all of them let us.
            t = self._line_search(w - self.w, b - self.b, f - self.f)
            if not t > 0.0:
                return False
            self.w, self.b = self.w + t * (w - self.w), self.b + t * (b - self.b)
            self.passes.scores(self.w, self.b, self.f)
            self.primal, self.members = self._objective(self.w, self.b, self.f), members[:0]
            self.near = min(2 * self.near, len(self.row), max(self.near, _MOST_NEAR))
            return True
        fell = self.primal - primal
        self.w, self.b, self.f, self.primal, self.members = w, b, f, primal, members
        every = self._sides()
        every[near] = beta
        outside = (every == self.low) | (every == self.high)
        self.side = np.where(outside, every, self._sides())
        self._keep_dual(self._of_rows(every))
        self.converged = self.primal - self.dual <= _EXACT * abs(self.primal)
        if ended == loops.active_set.STUCK:
            self.near = min(2 * self.near, len(self.row), max(self.near, _MOST_NEAR))
        closer = self.primal - self.dual < 0.5 * last
        return bool(self.converged or closer or fell > 0.1 * aim * abs(self.primal))

    def _nearest(self) -> Ints:
        distance = np.abs(self.f[self.row] - self.kink)
        distance[self.members] = -1.0
        if self.near == len(self.row):
            return np.arange(self.near)
        return np.sort(np.argpartition(distance, self.near - 1)[: self.near])

    def _of_rows(self, beta: Floats) -> Floats:
        """Return the sum of the β of each row."""
        return np.asarray(np.bincount(self.row, beta, minlength=self.passes.n), dtype=np.float64)

    def _sides(self) -> Floats:
        """Return the β of each term by the side of its kink that its row is on.

        Where many rows are on their kinks (w = 0, say), rounding would have them on any side.
        """
        off = self.kink - self.f[self.row]
        side = np.where(off > 0, self.high, self.low)
        return np.where(np.abs(off) <= _SAME_SIDE * self.unit, self.side, side)

    def _descend(self, near: Ints, aim: float) -> tuple[Floats, float, Floats, Ints, int]:
        """Return the best w and b for terms near their kinks, their β, and who is on its kink."""
        passes, constant = self.passes, self.problem.features.constant
        free = self.problem.intercept is Intercept.FREE
        most = passes.d + bool(constant) + free
        members = self.members[np.isin(self.members, near)][:most]
        beta = self._sides()
        beta[members] = 0.0
        u, w, total = passes.combination(self._of_rows(beta)), self.w.copy(), float(beta.sum())
        rows = self.problem.features.X[self.row[near]]
        Z = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
        Z = Z - passes.centre
        if constant:
            Z = np.column_stack([Z, np.full(len(Z), constant)])
            u, w = np.append(u, constant * total), np.append(w, self.b / constant)
        hinges = Hinges(Z, self.kink[near], self.low[near], self.high[near])
        place = np.searchsorted(near, members)
        at = Descent.at(
            w, np.array([0.0 if constant else self.b, total]), u, self.f[self.row[near]],
            beta[near], place, most,
        )  # fmt: skip
        shift = float(np.einsum("ij,ij->", Z, Z)) / Z.size if free else 0.0
        scale = abs(self.primal) or 1.0
        limit = max(50, int(self.settings.call / (Z.size + 4 * most * most)))
        rule = DescentRule(free, shift, 0.02 * aim * scale, 0.4 * aim * scale, limit)
        count, _, ended = loops.active_set.descend(hinges, at, len(place), rule)
        b = constant * float(at.w[-1]) if constant else float(at.sums[0])
        return at.w[: passes.d], b, at.beta, near[at.members[:count]], ended

    def _line_search(self, p: Floats, p_b: float, q: Floats) -> float:
        """Return how far to go along a direction, all rows considered."""
        beta, terms, on = self._sides(), q[self.row], self.members
        beta[on] = np.where(terms[on] < 0, self.high[on], self.low[on])  # the sides they go to
        slope = float(self.w @ p) + self.ridge * self.b * p_b - float(beta @ terms)
        curve = float(p @ p) + self.ridge * p_b * p_b
        if not (slope < 0.0 and curve > 0.0):
            return 0.0
        away = self.kink - self.f[self.row]
        before = (beta == self.high) & (terms > 0) & (away <= terms)
        beyond = (beta == self.low) & (terms < 0) & (away >= terms)
        passed = np.flatnonzero(before | beyond)
        times = np.maximum(away[passed] / terms[passed], 0.0)
        order = np.argsort(times, kind="stable")
        passed, times = passed[order], times[order]
        jumps = (self.high - self.low)[passed] * np.abs(terms[passed])
        slopes = slope + np.append(0.0, np.cumsum(jumps))  # at the start, with pieces passed so far
        ends = np.flatnonzero(slopes[1:] + curve * times >= 0.0)
        if len(ends) and slopes[ends[0]] + curve * times[ends[0]] < 0.0:
            return float(times[ends[0]])
        return float(-slopes[ends[0] if len(ends) else -1] / curve)

    def _objective(self, w: Floats, b: float, f: Floats) -> float:
        return 0.5 * (float(w @ w) + self.ridge * b * b) + self.passes.losses(f)

    def _keep_dual(self, beta: Floats) -> None:
        beta, dual = repaired(self.problem, self.passes, beta)
        if dual > self.dual:
            self.dual, self.best_beta = dual, beta
