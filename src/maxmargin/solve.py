"""The one loop: it draws iterates from a solver, counts, watches the clock, and decides to stop."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import (
    Bracket,
    Intercept,
    Iterate,
    KernelProblem,
    MulticlassProblem,
    Problem,
    Progress,
    Run,
    Solution,
    Start,
    Status,
)
from maxmargin.progress import Bar, progress
from maxmargin.solvers.kernel_variables import feasible_start

Step = TypeVar("Step", bound=Iterate)
StopRule = Callable[[Step], Status | None]
Callback = Callable[[Progress], Any]


_POLISH_LEAST = 20
_GLANCED_AT = 1000  # rows, where there is no time for more
_COMPARED = 20  # rows of a class that a kernel machine compares with, where there is no time


class Solver(Protocol):
    """A way to solve a problem: settings, and a generator of ever better iterates."""

    def iterates(self, problem: Any, start: Any) -> Iterator[Any]:
        """Yield brackets of the optimum until there is nothing left to gain."""
        ...


def solve(
    problem: Problem | MulticlassProblem | KernelProblem,
    solver: Solver,
    *,
    tol: float,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    start: Start | None = None,
    polish: int = 0,
    trace: bool = False,
    reserve: Callable[[Bracket], float] | None = None,
    bar: Bar | None = None,
    made: int = 0,
) -> Solution:
    """Solve a problem to a relative duality gap.

    Parameters
    ----------
    problem : Problem, MulticlassProblem or KernelProblem
        What to solve.
    solver : Solver
        How.
    tol : float
        Relative duality gap at which the answer is good enough.
    max_iter, max_time, callback, verbose :
        As in ``drive``.
    start : Start or None
        Where to start.
    polish : int
        How many more iterations to make at most after ``tol`` is reached, unless the optimality
        conditions hold to rounding before: fits then agree to many digits, whatever the order of
        rows. Beyond the first twenty, no more than it took to get there.
    trace : bool
        Whether to note seconds and gap after each iteration.
    reserve : callable or None
        Returns how many seconds of ``max_time`` to leave for what comes after an iterate.
    bar, made :
        As in ``drive``.

    Returns
    -------
    Solution
    """
    watch = _Watch(tol, polish)
    notes: list[tuple[float, float]] = []

    def told(progress: Progress) -> Any:
        if trace:
            notes.append((progress.seconds, progress.iterate.relative_gap))
        return None if callback is None else callback(progress)

    start = start or Start()
    ended = drive(
        watch.seen(solver.iterates(problem, start), max_time, reserve),
        rules=[watch],
        max_iter=max_iter,
        at_max_iter=Status.MAX_ITER,
        max_time=max_time,
        callback=told,
        verbose=verbose,
        tol=tol,
        bar=bar,
        made=made,
    )
    status = ended.status
    if watch.last is None and status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted before there was anything to keep")
    late = watch.late or status is Status.MAX_TIME
    if watch.last is None or (late and not watch.last.w.any()):
        begun = beginning(problem, start)
        return Solution(begun.w, begun.b, begun.beta, replace(ended, status=Status.MAX_TIME), notes)
    if watch.last.relative_gap <= tol and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    elif watch.late:
        status = Status.MAX_TIME
    elif watch.exhausted:
        status = Status.STALLED
    last = watch.last
    return Solution(last.w, last.b, last.beta, replace(ended, status=status), notes)


def beginning(problem: Problem | MulticlassProblem | KernelProblem, start: Start) -> Any:
    """Return a point (w, b, beta) that takes a moment: the start, or what the means of classes say.

    The scores of a linear machine are ±1 at the means of its classes, or lower for a class the
    further its mean is; a kernel machine compares a row with some of either class.
    """
    if isinstance(problem, KernelProblem):
        beta = _some_of_either(problem) if start.beta is None else start.beta
        return Start(beta, np.zeros(len(problem.totals)), beta)
    n, d = problem.X.shape
    several = (problem.n_classes,) if isinstance(problem, MulticlassProblem) else ()
    beta = np.zeros((n, *several)) if start.beta is None else start.beta
    if start.w is not None:
        b = np.broadcast_to(start.b, several) if several else start.b
        return Start(start.w, b, beta)
    some = slice(None, None, max(1, n // _GLANCED_AT))
    rows = problem.X[some]
    if isinstance(problem, MulticlassProblem):
        w, b = _between_means(rows, problem.labels[some], problem.n_classes)
    elif not np.isin(problem.loss.target[some], (-1.0, 1.0)).all():  # not labels, but numbers
        w, b = np.zeros((d, 1)), np.array([np.median(problem.loss.target[some])])
    else:
        w, b = _between_means(rows, (problem.loss.target[some] > 0).astype(np.int64), 2)
        w, b = w[:, 1:] - w[:, :1], b[1:] - b[:1]
    if problem.intercept is Intercept.NONE:
        b = np.zeros(len(b))
    return Start(w, b, beta) if several else Start(w[:, 0], float(b[0]), beta)


def _between_means(rows: Any, labels: Ints, n_classes: int) -> tuple[Floats, Floats]:
    """Return planes, one a class, whose score is the larger the nearer the mean of the class is.

    That is −‖x − m‖² but for what all classes share, in units of the distance between means.
    """
    counts = np.bincount(labels, minlength=n_classes)
    member = np.eye(n_classes)[:, labels] / np.maximum(counts, 1)[:, np.newaxis]
    means = np.asarray(rows.T.astype(np.float64) @ member.T)
    middle = means[:, counts > 0].mean(axis=1, keepdims=True)
    away = np.where(counts > 0, means - middle, 0.0)
    unit = float((away * away).sum(axis=0).max()) or 1.0
    w = away / unit
    b = -(0.5 * (away * away).sum(axis=0) / unit + middle[:, 0] @ w)
    return w, b


def _some_of_either(problem: KernelProblem) -> Floats:
    """Return a feasible point: where 0 is one, some variables of either sign have equal parts."""
    beta, terms = feasible_start(problem), problem.loss
    if beta.any() or not np.isin(terms.target, (-1.0, 1.0)).all():
        return beta
    sides = [np.flatnonzero(terms.high > 0), np.flatnonzero(terms.low < 0)]
    few = [side[:: max(1, len(side) // _COMPARED)] for side in sides]
    parts = [np.minimum(terms.high, 1.0)[few[0]], np.maximum(terms.low, -1.0)[few[1]]]
    least = min(len(part) * float(np.abs(part).min(initial=np.inf)) for part in parts)
    for chosen, sign in zip(few, (1.0, -1.0), strict=True):
        beta[chosen] = sign * min(least, 1.0) / max(len(chosen), 1)
    return beta


class _Watch:
    """The stop rule of ``solve``: the gap, stalling, and how much polishing follows."""

    _PATIENCE = 60  # iterations in which either bound must gain a hundredth of the gap

    def __init__(self, tol: float, polish: int) -> None:
        self.tol = tol
        self.polish = polish
        self.last: Bracket | None = None
        self.exhausted = self.late = False
        self._marks: list[tuple[float, float]] = []
        self._extra = 0

    def seen(
        self,
        iterates: Iterator[Bracket],
        max_time: float | None,
        reserve: Callable[[Bracket], float] | None,
    ) -> Iterator[Bracket]:
        """Pass iterates on, noting the last one, and whether the solver gave up by itself.

        A step that takes longer than there is time for is given up in the middle.
        """
        end = np.inf if max_time is None else clock.now() + max_time
        limit = clock.Limit(end, clock.limit())
        while True:
            try:
                with clock.under(limit):
                    clock.check()
                    self.last = next(iterates)
            except StopIteration:
                self.exhausted = True
                return
            except clock.OutOfTimeError:
                self.late = True
                return
            yield self.last
            if reserve is not None and max_time is not None:
                limit.end = min(limit.end, end - reserve(self.last))

    def __call__(self, iterate: Bracket) -> Status | None:
        gap = iterate.relative_gap
        if gap <= self.tol:
            self._extra += 1
            most = min(self.polish, max(_POLISH_LEAST, len(self._marks)))
            done = iterate.settled or self._extra > most
            return Status.OPTIMAL if done else None
        self._marks.append((iterate.primal, iterate.dual))
        if len(self._marks) <= self._PATIENCE:
            return None
        primal, dual = self._marks[-1 - self._PATIENCE]
        gained = max(primal - iterate.primal, iterate.dual - dual)
        still = gained <= 0.01 * (iterate.primal - iterate.dual)
        return Status.STALLED if still else None


def drive(
    iterates: Iterable[Step],
    *,
    rules: Sequence[StopRule[Step]] = (),
    max_iter: int,
    at_max_iter: Status,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    tol: float | None = None,
    bar: Bar | None = None,
    made: int = 0,
) -> Run:
    """Run a solver until a rule, a budget, the callback or Ctrl-C ends it.

    Parameters
    ----------
    iterates : iterable of Iterate
        The solver. Only iterates that are ``finished`` count as iterations.
    rules : sequence of callables
        Asked in order after each iteration; the first to return a Status ends the run.
    max_iter : int
        Number of iterations allowed; reaching it ends the run with ``at_max_iter``.
    max_time : float or None
        Seconds allowed, looked at after every iterate.
    callback : callable or None
        Called with a Progress after each iteration; returning True ends the run.
    verbose : bool
        Write one line per iteration to standard output.
    tol : float or None
        Relative gap at which a rule will end the run, so that the bar can say how far it is.
    bar : Bar or None
        The bar of the call that this run is one of several of; None: the run has its own.
    made : int
        Iterations that this bar has counted before.

    Returns
    -------
    Run
        Ctrl-C is reported as ``Status.INTERRUPTED``, so that the caller can keep what was reached
        before it raises KeyboardInterrupt itself.
    """
    start = clock.now()
    iterations = 0
    status = at_max_iter
    own = nullcontext(bar) if bar is not None else progress(
        "Solving", max_iter, unit="iteration", tol=tol, max_time=max_time, even=tol is not None,
        quiet=verbose,
    )  # fmt: skip
    try:
        with own as bar:
            for iterate in iterates:
                seconds = clock.now() - start
                if iterate.finished:
                    iterations += 1
                    if bar.watched:
                        bar.update(made + iterations, getattr(iterate, "relative_gap", None))
                    ended = _ended(Progress(iterations, seconds, iterate), rules, callback, verbose)
                    if ended or iterations >= max_iter:
                        status = ended or at_max_iter
                        break
                if max_time is not None and seconds > max_time:
                    status = Status.MAX_TIME
                    break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Run(status, iterations, clock.now() - start)


def _ended(
    progress: Progress,
    rules: Sequence[StopRule[Any]],
    callback: Callback | None,
    verbose: bool,
) -> Status | None:
    if verbose:
        sys.stdout.write(f"{progress.iteration:6d} {progress.seconds:8.2f} s  {progress.iterate}\n")
    answer = None if callback is None else callback(progress)
    stop_asked = isinstance(answer, bool | np.bool_) and bool(answer)
    for rule in rules:
        if ended := rule(progress.iterate):
            return ended
    return Status.CALLBACK if stop_asked else None
