"""From C to C: the problems of an estimator solved along a path, and models made of solutions."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.certificates import Certificate, certify
from maxmargin.geometry.inputs import row_products
from maxmargin.kernels.rows import FloatArray
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import (
    KernelProblem,
    MulticlassProblem,
    Point,
    Problem,
    Run,
    Status,
)
from maxmargin.progress import Bar
from maxmargin.solve import Attempt, Budget, Result, Settings, choose, named, run_solver, solve
from maxmargin.solvers.on_matrix import COPIED, ROUNDS, OnMatrix, Room, snapped

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
        if not all(map(_takes, problems)):
            return None
        gram = problems[0].gram
        n = len(gram)
        size = (1 + COPIED**2) * n * n * gram.tiles.dtype.itemsize
        if n > _MOST_ROWS or size > gram.memory:
            return None
        values = gram.square(np.arange(n))
        most = max(len(np.unique(problem.rows)) for problem in problems)
        return cls(values, Room.of(most, values.dtype))

    def solutions(
        self, problem: KernelProblem, costs: Floats, tol: float, rounds: int
    ) -> list[Attempt]:
        """Return the solutions of a problem at rising multiples of its costs."""
        begun = clock.now()
        free = len(problem.totals) > 0
        stated = OnMatrix.stated(problem.loss, free, problem.rows)
        path = stated.solve(self.values, costs, tol, self.room, rounds=min(rounds, ROUNDS))
        seconds = (clock.now() - begun) / len(costs)
        low, high = problem.loss.low, problem.loss.high
        found = []
        for k, cost in enumerate(costs.tolist()):
            # Of two variables of a row one is ≥ 0, the other ≤ 0, and one of them is 0.
            beta = np.clip(path.coefficients[k][stated.at], cost * low, cost * high)
            b = path.intercepts[k : k + 1] if free else np.zeros(0)
            run = Run(Status.STALLED, int(path.rounds[k]), seconds)
            found.append(Attempt(Point(beta, b, beta), run, []))
        return found


def _takes(problem: Any) -> bool:
    if not isinstance(problem, KernelProblem) or len(problem.totals) > 1:
        return False
    return problem.gram.kernel.psd is True and not problem.loss.quadratic.any()


# ------------------------------------------------------------------- path products
#
# Scores of many solutions from one pass over the kernel values.
#
# A certificate needs Kw and Kβ in float64, computed from the data. For the solutions of a path they
# are computed together, each kernel value once, and handed to ``certify`` when it asks for them.


class _Remembering:
    """A kernel that knows some products, and their sizes; all else it computes."""

    def __init__(self, kernel: Any, coefficients: Floats, products: Floats, sizes: Floats) -> None:
        self._kernel, self._coefficients = kernel, coefficients
        self._products, self._sizes = products, sizes

    def dot_with_magnitudes(self, a: Any, b: Any, weights: Floats, **options: Any) -> Any:
        """Return K(a, b) @ weights and |K(a, b)| @ |weights|: rows with a weight come first."""
        count = weights.shape[1]
        used = self._coefficients[:, :count].any(axis=1)
        some = self._coefficients[used, :count]
        if len(a) == len(self._products) and np.array_equal(weights, some):
            order = np.argsort(~used, kind="stable")
            return self._products[order, :count], self._sizes[order, :count]
        return self._kernel.dot_with_magnitudes(a, b, weights, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)


def with_products(
    problems: list[KernelProblem], points: list[Point]
) -> tuple[list[KernelProblem], list[Floats]]:
    """Return the problems of one machine at several C with the products their points need.

    They are for ``certify`` only; and the scores w·φ of each point, by variable.
    """
    first = problems[0]
    rows, at = np.unique(first.rows, return_inverse=True)
    columns = np.zeros((len(rows), 2 * len(problems)))
    for k, (problem, point) in enumerate(zip(problems, points, strict=True)):
        beta, _ = within_groups(problem.loss, point.beta, problem.groups, problem.totals)
        np.add.at(columns[:, 2 * k], at, point.w)
        np.add.at(columns[:, 2 * k + 1], at, beta)
    used = np.flatnonzero(columns.any(axis=1))
    if not len(used):
        return problems, [np.zeros(len(at)) for _ in problems]
    bound = first.gram.exact[rows]
    unique, place = np.unique(columns, axis=1, return_inverse=True)
    unique = np.ascontiguousarray(unique[used])
    both = first.gram.kernel.dot_with_magnitudes(bound, bound[used], unique, first.gram.threads)
    products, sizes = (part[:, np.ravel(place)] for part in both)
    found = []
    for k, problem in enumerate(problems):
        mine = slice(2 * k, 2 * k + 2)
        known = columns[:, mine], products[:, mine], sizes[:, mine]
        gram: Any = SimpleNamespace(
            kernel=_Remembering(problem.gram.kernel, *known),
            prepared=first.gram.prepared,
            exact=first.gram.exact,
            threads=first.gram.threads,
        )
        found.append(replace(problem, gram=gram))
    return found, [products[at, 2 * k] for k in range(len(problems))]


# -------------------------------------------------------------------


_POLISHED = 2e4  # numbers in X up to which linear machines are polished beyond tol
_AIM = 0.7  # of tol, aimed at on values of float32, so that the certificate in float64 holds


class PathData(NamedTuple):
    """What an estimator is fitted to."""

    X: Any
    y: Any
    sample_weight: Any


class Step(NamedTuple):
    """A problem solved at one C: the result, and w·φ(x) of its variables.

    They are NaN where there was no time for them.
    """

    problem: Any
    result: Result
    scores: Floats


Answer = Callable[[list[Any]], list[Result]]


class _EnoughError(Exception):
    """The problems are stated: nothing more is wanted of the fit."""


def stated(estimator: Any, data: PathData) -> tuple[Any, list[Any]]:
    """Return a clone of the estimator, all its input checked, and its problems."""
    model = clone(estimator).set_params(warm_start=False)
    found: list[Any] = []

    def keep(problems: list[Any], _starts: list[Point], _budget: Budget) -> list[Result]:
        found.extend(problems)
        raise _EnoughError

    vars(model)["_solve"] = keep
    try:
        model.fit(data.X, data.y, sample_weight=data.sample_weight)
    except _EnoughError:
        pass
    finally:
        vars(model).pop("_solve", None)
    return model, found


def fitted(estimator: Any, C: float, data: PathData, answer: Answer) -> Any:
    """Return a clone of the estimator fitted at C, its problems solved by ``answer``.

    Everything else is the estimator's own: checks, classes and pairs, attributes.
    """
    model = clone(estimator).set_params(C=float(C), warm_start=False)
    vars(model)["_solve"] = lambda problems, _starts, _budget: answer(problems)
    try:
        with _quiet():
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
    finally:
        vars(model).pop("_solve", None)
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what fits say about solving: the path says it of every C."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="(?s).*not certified")
        yield


def at_cost(problem: Any, ratio: float) -> Any:
    """Return a problem with C times ``ratio``."""
    if isinstance(problem, MulticlassProblem):
        return replace(problem, cost=problem.cost * ratio)
    return replace(problem, loss=problem.loss.scaled(ratio))


class PathPoint(NamedTuple):
    """A solution at a C."""

    C: float
    point: Point


def start_from(problem: Any, C: float, last: PathPoint | None) -> Point:
    """Return where to start at C: the last weights, and its duals grown with C.

    So duals at their bounds stay there, and Σβ stays as it is.
    """
    if last is None:
        return Point()
    point = last.point
    if isinstance(problem, MulticlassProblem):
        return Point(None, point.b, point.beta)
    beta, low, high = point.beta * (C / last.C), problem.loss.low, problem.loss.high
    if isinstance(problem, KernelProblem):
        beta, _ = within_groups(problem.loss, beta, problem.groups, problem.totals)
        return Point(beta=snapped(beta, low, high))
    return Point(point.w, float(point.b), snapped(beta, low, high))


class Walker:
    """Solves the problems of one fit for one C after the other."""

    def __init__(self, problems: list[Any], C: float, settings: Settings, budget: Budget) -> None:
        self.problems, self.C, self.settings, self.budget = problems, C, settings, budget
        self.matrix: KernelValues | None = None
        if settings.callback is None and settings.max_time is None and not settings.verbose:
            self.matrix = KernelValues.of(problems)

    def walk(self, Cs: Floats, bar: Bar) -> list[list[Step]]:
        """Return the steps of each problem, one for each C (ascending)."""
        bar.update(total=len(self.problems) * len(Cs))
        if self.settings.max_time is None:
            steps = [self._walk(problem, Cs, bar) for problem in self.problems]
        else:
            steps = [self._walk_in_time(k, Cs, bar) for k in range(len(self.problems))]
        self.matrix = None  # gigabytes, maybe
        return steps

    def again(self, k: int, C: float, near: PathPoint | None = None) -> Step:
        """Return a step of one problem at one C, from a solution near it."""
        problem = at_cost(self.problems[k], C / self.C)
        start = start_from(problem, C, near)
        result = solve(problem, self.settings, self.budget, start)
        return Step(problem, result, scores_of(problem, result.point))

    def _walk(self, problem: Any, Cs: Floats, bar: Bar) -> list[Step]:
        problems = [at_cost(problem, C / self.C) for C in Cs]
        if self.matrix is not None:
            ratios, tol = Cs / self.C, _AIM * self.settings.tol
            attempts = self.matrix.solutions(problem, ratios, tol, self.settings.max_iter)
        else:
            attempts, last = [], None
            for C, here in zip(Cs.tolist(), problems, strict=True):
                attempts.append(self._attempt(here, start_from(here, C, last)))
                last = PathPoint(C, attempts[-1].point)
                bar.advance()
        if self.budget.ended is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted on the way along the path")
        judged, scores = problems, None
        if isinstance(problem, KernelProblem):
            judged, scores = with_products(problems, [attempt.point for attempt in attempts])
        steps = []
        for k, attempt in enumerate(attempts):
            certificate = certify(judged[k], attempt.point)
            result = self._accepted(problems[k], attempt, certificate)
            same = scores is not None and result.point.w is attempt.point.w
            known = scores[k] if scores is not None and same else None
            if known is None:
                known = scores_of(problems[k], result.point)
            steps.append(Step(problems[k], result, known))
            if self.matrix is not None:  # all solved at once, which takes less than the proofs
                bar.advance()
        return steps

    def _walk_in_time(self, which: int, Cs: Floats, bar: Bar) -> list[Step]:
        """Return the same where the points share ``max_time``, their certificates among it."""
        steps: list[Step] = []
        points = (len(self.problems) - which) * len(Cs)
        for k, C in enumerate(Cs.tolist()):
            here = at_cost(self.problems[which], C / self.C)
            self.budget.begin(here, points - k)
            near = PathPoint(float(Cs[k - 1]), steps[-1].result.point) if steps else None
            result = solve(here, self.settings, self.budget, start_from(here, C, near))
            if self.budget.ended is Status.INTERRUPTED:
                raise KeyboardInterrupt("interrupted on the way along the path")
            try:
                with clock.limited(self.budget.for_certificate):
                    scores = scores_of(here, result.point)
            except clock.OutOfTimeError:
                scores = np.full(len(here.loss.target), np.nan)
            steps.append(Step(here, result, scores))
            bar.advance()
        return steps

    def _attempt(self, problem: Any, start: Point) -> Attempt:
        settings = self.settings
        if not isinstance(problem, Problem) or problem.l1_ratio > 0:
            found = solve(problem, settings, self.budget, start)
            return Attempt(found.point, Run(found.status, found.iterations, found.seconds), [])
        attempt = run_solver(
            problem,
            self._chosen(problem),
            tol=settings.tol,
            max_iter=settings.max_iter,
            callback=settings.callback,
            verbose=settings.verbose,
            start=start,
            polish=_polish(problem),
        )
        if attempt.run.status in (Status.INTERRUPTED, Status.CALLBACK):
            self.budget.ended = attempt.run.status
        return attempt

    def _chosen(self, problem: Problem) -> Any:
        name, threads, seed = self.settings.solver, self.settings.threads, self.settings.seed
        if name == "auto":
            return choose(problem, threads=threads, seed=seed)
        return named(name, problem, threads=threads, seed=seed)

    def _accepted(self, problem: Any, attempt: Attempt, certificate: Certificate) -> Result:
        """Return the point if its certificate holds; otherwise go on from there."""
        name = "path" if self.matrix is None else "path on one Gram matrix"
        point, run = attempt.point, attempt.run
        status = Status.OPTIMAL if certificate.holds(self.settings.tol) else self.budget.ended
        if status is not None:
            return Result(point, certificate, status, run.iterations, run.seconds, name)
        kernel = isinstance(problem, KernelProblem)
        start = Point(None if kernel else point.w, point.b, point.beta)
        return solve(problem, self.settings, self.budget, start)


def _polish(problem: Problem) -> int:
    """Return how many iterations a small problem is worth beyond tol: digits cost little there."""
    size = problem.X.nnz if hasattr(problem.X, "nnz") else problem.X.size
    return 100 if size <= _POLISHED else 0


def scores_of(problem: Any, point: Point) -> Floats:
    """Return w·φ(x) of each variable of a problem; of classes together, a column each."""
    if not isinstance(problem, KernelProblem):
        columns = point.w[:, np.newaxis] if point.w.ndim == 1 else point.w
        scores = row_products(problem.X, np.ascontiguousarray(columns))
        return np.asarray(scores[:, 0] if point.w.ndim == 1 else scores)
    return expanded_scores(problem, point.w)


def expanded_scores(problem: KernelProblem, coefficients: Floats) -> Floats:
    """Return Σ aᵥ K(xᵥ, x) of each variable, in float64."""
    rows, at = np.unique(problem.rows, return_inverse=True)
    by_row = np.bincount(at, coefficients, minlength=len(rows)).astype(np.float64)
    used = np.flatnonzero(by_row)
    if not len(used):
        return np.zeros(len(at))
    prepared, gram = problem.gram.exact[rows], problem.gram
    column = by_row[used][:, np.newaxis]
    return np.asarray(gram.kernel.dot(prepared, prepared[used], column, gram.threads)[at, 0])
