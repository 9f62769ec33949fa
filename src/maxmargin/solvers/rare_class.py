"""Working sets of rows, for linear machines one of whose classes has few rows.

With a free intercept Σβ = 0, so the duals of the larger class sum to no more than those of the rare
one can, and most of its rows are no support vectors. The problem is solved on the rare rows and
some others; a pass over all rows shows which are on the wrong side of their margins, and the worst
of them are taken in. As duals of rows left out are 0, both bounds are those of the whole problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.problems import losses
from maxmargin.problems.duality import best_intercept
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.row_sums import blocks_of, rare_rows


@dataclass(frozen=True)
class RareClass:
    """Settings of the method."""

    threads: int | None = None
    least_rows: int = 500  # of a problem that is worth it
    rare_part: int = 20  # of the rows: at most one in this many is of a rare class …
    few: int = 50  # … or so many rows, if they are at most one in ten
    set_part: int = 3  # of the rows: if a working set needs more than one in this many, all are
    wrong_part: int = 4  # the same of rows on the wrong side of their margins
    near: int = 200  # rows of the other class that lie farthest towards the rare one, at first …
    spread: int = 100  # … and rows that are spread evenly
    added: int = 300  # rows that are taken in after a round, or as many as there are
    aim: float = 1e-3  # relative gap to which the first working set is solved
    whole_aim: float = 5e-5  # the same of all rows, from where active sets go on
    exact: float = 1e-10  # relative gap that counts as none
    exact_constant: float = 1e-5  # the same while no weights are better than w = 0
    near_gap: float = 0.1  # relative gap from which a working set is worth starting from
    rounds: int = 30  # working sets, and …
    steps: int = 60  # … steps on each, at most

    def rare(self, problem: LinearProblem) -> Ints:
        """Return the rows of the rare class, if there is one and losses are bounded hinges."""
        none, n, loss = np.empty(0, np.int64), len(problem), problem.loss
        if n < self.least_rows or problem.intercept is Intercept.NONE or loss.epsilon:
            return none
        most = max(n // self.rare_part, min(self.few, n // 10))
        rare = rare_rows(blocks_of(problem), most)
        plain = len(rare) and np.isfinite(loss.high - loss.low).all() and not loss.quadratic.any()
        return rare if plain else none

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each working set, and after each step on all rows at the end."""
        n, best, rows = len(problem), _constant(problem), self._first(problem)
        start, aim = Point(), self.aim
        for _ in range(self.rounds):
            found = best
            constant = not best.w.any()
            for step, found in enumerate(self._solve(problem, rows, start, constant)):
                if found.relative_gap <= aim or found.converged or step > self.steps:
                    break
                yield best.unfinished()
            start = Point(found.w, found.b, found.beta)
            scores = problem.products(found.w) + found.b
            best = best.improved(_iterate(problem, start, found.dual, scores))
            outside = losses.values(problem.loss, scores)
            outside[rows] = 0.0
            wrong = np.flatnonzero(outside)
            yield self._judged(best, converged=found.converged and not len(wrong))
            if len(wrong) > max(n // self.wrong_part, self.added) and best.relative_gap > self.aim:
                break
            aim = max(min(0.01 * aim, 0.1 * best.relative_gap), 1e-13)
            rows = self._grown(rows, wrong, outside)
            if self.set_part * len(rows) > n:
                break
        yield from self._on_all(problem, best)

    def _on_all(self, problem: LinearProblem, best: Iterate) -> Iterator[Iterate]:
        """Yield the iterates of Newton's method on all rows, then of active sets if they suit."""
        start, last = Point(), best
        if best.relative_gap <= self.near_gap:
            start = Point(best.w, best.b, best.beta)
        newton = Newton(self.threads)
        for last in newton.iterates(problem, start):
            best = last if last.converged else best.improved(last)
            yield replace(self._judged(best, last.converged), finished=last.finished)
            start = Point(best.w, best.b, best.beta)
            if best.relative_gap <= self.whole_aim and ActiveSet().suits(problem, start):
                break
        if not last.converged:
            for last in newton.iterates(problem, start):
                best = last if last.converged else best.improved(last)
                yield self._judged(best, last.converged)

    def _judged(self, best: Iterate, converged: bool) -> Iterate:
        """Return an iterate that says whether there is nothing more to gain."""
        exact = self.exact if best.w.any() else self.exact_constant
        return replace(best, converged=converged or best.relative_gap <= exact)

    def _solve(
        self, problem: LinearProblem, rows: Ints, start: Point, constant: bool
    ) -> Iterator[Iterate]:
        """Yield iterates on a working set, with duals of 0 for all other rows.

        From a constant, which many rows have on their kinks, active sets would not get far.
        """
        if start.beta is not None:
            start = replace(start, beta=start.beta[rows])
        newton = Newton(self.threads, active_sets=not constant)
        for each in newton.iterates(problem.take(rows), start):
            beta = np.zeros(len(problem))
            beta[rows] = each.beta
            yield replace(each, beta=beta)

    def _first(self, problem: LinearProblem) -> Ints:
        """Return the rare rows, others that lie far towards them, and some spread evenly."""
        n, rare = len(problem), self.rare(problem)
        towards = np.asarray(problem.features.X[rare].mean(axis=0), dtype=np.float64).ravel()
        away = -problem.products(towards)
        near = np.argpartition(away, min(self.near, n // 10))[: min(self.near, n // 10)]
        spread = min(self.spread, n // 20)
        return np.unique(np.concatenate([rare, near, np.arange(spread) * n // spread]))

    def _grown(self, rows: Ints, wrong: Ints, outside: Floats) -> Ints:
        """Return a working set with the worst of the rows on the wrong side of their margins."""
        most = max(self.added, len(rows))
        if len(wrong) > most:
            wrong = wrong[np.argpartition(-outside[wrong], most)[:most]]
        return np.union1d(rows, wrong)


def _constant(problem: LinearProblem) -> Iterate:
    """Return the best function without weights, which nothing that is returned is worse than."""
    n, b = len(problem), 0.0
    if problem.intercept is Intercept.FREE:
        b = best_intercept(problem.loss, np.zeros(n), b)
    point = Point(np.zeros(problem.features.X.shape[1]), b, np.zeros(n))
    return _iterate(problem, point, 0.0, np.full(n, b))


def _iterate(problem: LinearProblem, point: Point, dual: float, scores: Floats) -> Iterate:
    norm2 = float(point.w @ point.w)
    if problem.constant:
        norm2 += (point.b / problem.constant) ** 2
    primal = 0.5 * norm2 + float(losses.values(problem.loss, scores).sum())
    return Iterate(primal, dual, point.w, point.b, point.beta)
