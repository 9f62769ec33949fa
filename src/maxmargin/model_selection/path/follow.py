"""From C to C: the problems of an estimator solved along a path, and models made of solutions."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.certificates import certify_many
from maxmargin.kernels.prepared import FloatArray
from maxmargin.problems.problem import KernelProblem, Point, Run, Status
from maxmargin.progress import Bar
from maxmargin.solve import Attempt, Budget, Result, Settings, solve
from maxmargin.solvers.on_matrix import COPIED, ROUNDS, OnMatrix, Room

# ------------------------------------------------------------------- path matrix
#
# Kernel machines along a path on one matrix of kernel values, for all C and pairs of classes.


_MOST_ROWS = 20_000


@dataclass(frozen=True)
class KernelValues:
    """The Gram matrix of a machine's problems."""

    values: FloatArray
    room: Room

    @classmethod
    def of(cls, problems: list[Any]) -> Self | None:
        """Return the matrix if the problems are convex and it is small enough to be kept."""
        gram = problems[0].features.shared_gram()
        if gram is None or not all(map(_takes, problems)):
            return None
        n = len(gram)
        size = (1 + COPIED**2) * n * n * gram.tiles.dtype.itemsize
        if n > _MOST_ROWS or size > gram.memory:
            return None
        values = gram.materialize()
        most = max(map(len, problems))
        return cls(values, Room.of(most, values.dtype))

    def solutions(
        self, problem: KernelProblem, costs: Floats, tol: float, rounds: int
    ) -> list[Attempt]:
        """Return the solutions of a problem at rising multiples of its costs."""
        begun = clock.now()
        free = len(problem.totals) > 0
        rows = problem.features.rows[problem.row]
        stated = OnMatrix.stated(problem.loss, free, rows)
        path = stated.solve(self.values, costs, tol, self.room, rounds=min(rounds, ROUNDS))
        seconds = (clock.now() - begun) / len(costs)
        found = []
        for k in range(len(costs)):
            beta = path.coefficients[k][problem.row]  # one variable a row
            b = path.intercepts[k : k + 1] if free else np.zeros(0)
            run = Run(Status.STALLED, int(path.rounds[k]), seconds)
            found.append(Attempt(Point(path.coefficients[k], b, beta), run, []))
        return found


def _takes(problem: Any) -> bool:
    return len(problem.totals) <= 1 and not problem.loss.quadratic.any()


# ------------------------------------------------------------------- from C to C


_POLISHED = 2e4  # numbers in X up to which linear machines are polished beyond tol
_AIM = 0.7  # of tol, aimed at on values of float32, so that the certificate in float64 holds


class Step(NamedTuple):
    """A problem solved at one C: the result, and w·φ(x) of its variables.

    They are NaN where there was no time for them.
    """

    problem: Any
    result: Result
    scores: Floats


class PathPoint(NamedTuple):
    """A solution at a C."""

    C: float
    point: Point


def start_from(problem: Any, C: float, last: PathPoint | None) -> Point:
    """Return where to start at C: at the last solution, its duals grown with C."""
    return Point() if last is None else problem.grown(last.point, C / last.C)


class Walker:
    """Solves the problems of one fit for one C after the other."""

    def __init__(self, problems: list[Any], C: float, settings: Settings, budget: Budget) -> None:
        small = problems[0].features.size <= _POLISHED
        self.settings = replace(settings, polish=small)
        self.problems, self.C, self.budget = problems, C, budget
        self.matrix: KernelValues | None = None
        if settings.callback is None and settings.max_time is None and not settings.verbose:
            self.matrix = KernelValues.of(problems)

    def walk(self, Cs: Floats, bar: Bar) -> list[list[Step]]:
        """Return the steps of each problem, one for each C (ascending)."""
        bar.update(total=len(self.problems) * len(Cs))
        way = self._one_by_one if self.matrix is None else self._on_matrix
        steps = [way(k, Cs, bar) for k in range(len(self.problems))]
        self.matrix = None  # gigabytes, maybe
        return steps

    def again(self, k: int, C: float, near: PathPoint | None = None) -> Step:
        """Return a step of one problem at one C, from a solution near it."""
        problem = self.problems[k].scaled(C / self.C)
        start = start_from(problem, C, near)
        result = solve(problem, self.settings, self.budget, start)
        return Step(problem, result, problem.products(result.point.w))

    def _on_matrix(self, which: int, Cs: Floats, bar: Bar) -> list[Step]:
        """Return the steps of a problem, solved and certified together on one Gram matrix."""
        assert self.matrix is not None
        ratios, tol = Cs / self.C, self.settings.tol
        problem = self.problems[which]
        attempts = self.matrix.solutions(problem, ratios, _AIM * tol, self.settings.max_iter)
        problems = [problem.scaled(ratio) for ratio in ratios.tolist()]
        proofs = certify_many(problems, [attempt.point for attempt in attempts])
        steps = []
        for here, attempt, (certificate, seen) in zip(problems, attempts, proofs, strict=True):
            (point, run, _), scores = attempt, seen.products()[here.row]
            if certificate.holds(tol):
                name = "path on one Gram matrix"
                result = Result(
                    point, certificate, Status.OPTIMAL, run.iterations, run.seconds, name
                )
            else:  # go on from there
                result = solve(here, self.settings, self.budget, point)
                scores = here.products(result.point.w)
            self._raise_if_interrupted()
            steps.append(Step(here, result, scores))
            bar.advance()
        return steps

    def _one_by_one(self, which: int, Cs: Floats, bar: Bar) -> list[Step]:
        """Return the steps of a problem, which share ``max_time`` with those to come."""
        steps: list[Step] = []
        points = (len(self.problems) - which) * len(Cs)
        for k, C in enumerate(Cs.tolist()):
            here = self.problems[which].scaled(C / self.C)
            self.budget.begin(here, points - k)
            near = PathPoint(float(Cs[k - 1]), steps[-1].result.point) if steps else None
            result = solve(here, self.settings, self.budget, start_from(here, C, near))
            self._raise_if_interrupted()
            try:
                with clock.limited(self.budget.for_certificate):
                    scores = here.products(result.point.w)
            except clock.OutOfTimeError:
                scores = np.full(here.variables, np.nan)
            steps.append(Step(here, result, scores))
            bar.advance()
        return steps

    def _raise_if_interrupted(self) -> None:
        if self.budget.ended is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted on the way along the path")
