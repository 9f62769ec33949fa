"""From C to C: the problems of an estimator solved along a path, each from the solution before."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin._typing import Floats
from maxmargin.budget import Budget
from maxmargin.certificates import certify_many
from maxmargin.kernels.prepared import FloatArray
from maxmargin.problems.problem import KernelProblem, Point, Problem, Run, Status
from maxmargin.runtime import clock
from maxmargin.runtime.progress import Bar
from maxmargin.solve import Attempt, Result, Settings, solve
from maxmargin.solvers.decomposition import COPIED, ROUNDS, OnMatrix, Workspace

_POLISHED = 2e4  # numbers in X up to which solutions are polished beyond tol
_AIM = 0.7  # of tol, aimed at on values of float32, so that the certificate in float64 holds
_MATRIX_PART = 0.5  # of the time left, for solutions on a matrix of kernel values
_MOST_ROWS = 20_000  # whose matrix of kernel values is computed


class Step(NamedTuple):
    """A problem solved at one C: the result, and w·φ(x) of its variables.

    These scores are NaN if there was no time to compute them.
    """

    C: float
    problem: Any
    result: Result
    scores: Floats


def solve_path(
    problems: list[Any],
    Cs: Floats,
    settings: Settings,
    budget: Budget,
    bar: Bar,
) -> list[list[Step]]:
    """Solve problems that are stated at C = 1 for one C after the other (ascending).

    Returns the steps of each problem. Problems with a kernel share one Gram matrix, and each step
    starts from the last.
    """
    bar.update(total=len(problems) * len(Cs))
    matrix = None
    with suppress(clock.OutOfTimeError), clock.limited(_time_on_matrix(budget)):
        if settings.callback is None and not settings.verbose:
            matrix = KernelValues.of(problems)
    found = []
    for which, problem in enumerate(problems):
        known = [] if matrix is None else _solve_on_matrix(problem, Cs, settings, budget, matrix)
        steps: list[Step] = []
        for k, C in enumerate(Cs.tolist()):
            step = known[k] if k < len(known) else None
            if step is None or step.result.status is not Status.OPTIMAL:
                budget.begin(problem, (len(problems) - which) * len(Cs) - k)
                near = steps[-1] if step is None and steps else step
                step = solve_at(problem, C, settings, budget, near)
            steps.append(step)
            bar.advance()
        found.append(steps)
    return found


def solve_at(
    problem: Any, C: float, settings: Settings, budget: Budget, near: Step | None = None
) -> Step:
    """Solve a problem that is stated at C = 1 at another C, starting from a step near it."""
    problem = problem.scaled(C)
    start = Point() if near is None else problem.grown(near.result.point, C / near.C)
    settings = replace(settings, polish=problem.features.size <= _POLISHED)
    result = solve(problem, settings, budget, start)
    if budget.ended is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted on the way along the path")
    scores = np.full(problem.variables, np.nan)
    with suppress(clock.OutOfTimeError), clock.limited(budget.for_certificate):
        scores = problem.products(result.point.w)
    return Step(C, problem, result, scores)


def _solve_on_matrix(
    problem: Any, Cs: Floats, settings: Settings, budget: Budget, matrix: "KernelValues"
) -> list[Step]:
    """Return the steps of one problem on its Gram matrix, as far as the time goes."""
    attempts: list[Attempt] = []
    with suppress(clock.OutOfTimeError), clock.limited(_time_on_matrix(budget)):
        for attempt in matrix.solve(problem, Cs, _AIM * settings.tol, settings.max_iter):
            attempts.append(attempt)
    if not attempts:
        return []
    problems = [problem.scaled(C) for C in Cs[: len(attempts)].tolist()]
    try:
        with clock.limited(budget.for_certificate):
            proofs = certify_many(problems, [attempt.point for attempt in attempts])
    except clock.OutOfTimeError:
        return []
    steps = []
    for k, (attempt, (certificate, seen)) in enumerate(zip(attempts, proofs, strict=True)):
        point, run, name = attempt.point, attempt.run, "path on one Gram matrix"
        status = Status.OPTIMAL if certificate.holds(settings.tol) else Status.STALLED
        result = Result(point, certificate, status, run.iterations, run.seconds, name)
        steps.append(Step(float(Cs[k]), problems[k], result, seen.products()[problem.row]))
    return steps


def _time_on_matrix(budget: Budget) -> float | None:
    return None if budget.left is None else _MATRIX_PART * budget.left


@dataclass(frozen=True)
class KernelValues:
    """The Gram matrix of a machine's problems, for all C and all pairs of classes."""

    values: FloatArray
    workspace: Workspace

    @classmethod
    def of(cls, problems: list[Any]) -> Self | None:
        """Return the matrix if the problems are convex and it is small enough to be kept."""
        gram = problems[0].features.shared_gram()
        if not all(isinstance(problem, Problem) for problem in problems):
            return None  # classes learnt jointly
        if gram is None or any(len(p.totals) > 1 or p.loss.quadratic.any() for p in problems):
            return None
        n = len(gram)
        size = (1 + COPIED**2) * n * n * gram.tiles.dtype.itemsize
        if n > _MOST_ROWS or size > gram.memory:
            return None
        values = gram.materialize()
        return cls(values, Workspace.of(max(map(len, problems)), values.dtype))

    def solve(
        self, problem: KernelProblem, costs: Floats, tol: float, rounds: int
    ) -> Iterator[Attempt]:
        """Yield the solutions of a problem at rising multiples of its costs."""
        free = len(problem.totals) > 0
        stated = OnMatrix.stated(problem.loss, free, problem.features.rows[problem.row])
        last = 0.0
        # With a time limit, the clock is read after each cost; without one all are one call.
        for some in np.array_split(costs, 1 if np.isinf(clock.limit().end) else len(costs)):
            clock.check()
            began = clock.now()
            if last > 0:
                stated.start(float(some[0]), some[0] / last * stated.duals, stated.f)
            path = stated.solve(self.values, some, tol, self.workspace, rounds=min(rounds, ROUNDS))
            seconds, last = (clock.now() - began) / len(some), float(some[-1])
            for k, w in enumerate(path.coefficients):
                b = path.intercepts[k : k + 1] if free else np.zeros(0)
                run = Run(Status.STALLED, int(path.rounds[k]), seconds)
                yield Attempt(Point(w, b, w[problem.row]), run, [])  # one variable per row
