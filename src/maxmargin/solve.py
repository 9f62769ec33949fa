"""The one loop: it draws iterates from a solver, counts, watches the clock, and decides to stop."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, certify, feasible_duals, unproved
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.problems.problem import (
    Finishable,
    Intercept,
    Iterate,
    KernelProblem,
    MulticlassProblem,
    Point,
    Problem,
    Progress,
    Run,
    Status,
)
from maxmargin.progress import Bar, progress
from maxmargin.solvers.crammer_singer import SequentialDual
from maxmargin.solvers.decomposition import Decomposition, feasible_start
from maxmargin.solvers.dual_cd import DualCDThenNewton
from maxmargin.solvers.factor_newton import MOST_ROWS, FactorNewton
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.proximal_newton import WorkingSets
from maxmargin.solvers.subgradient import Subgradient

# ------------------------------------------------------------------- choice
#
# Which solver for which data.


_MANY_COLUMNS = 2000
_FEW_ROWS = 2000

AnySolver = (
    Newton
    | DualCDThenNewton
    | Subgradient
    | WorkingSets
    | SequentialDual
    | Decomposition
    | FactorNewton
)


SOLVERS: dict[str, type[AnySolver]] = {
    "newton": Newton,
    "dual_cd": DualCDThenNewton,
    "subgradient": Subgradient,
    "working_sets": WorkingSets,
    "sequential_dual": SequentialDual,
    "block_smo": Decomposition,
    "factor_newton": FactorNewton,
}


def choose(
    problem: Problem | MulticlassProblem, *, threads: int | None = None, seed: int = 0
) -> Any:
    """Return the solver for a problem, by its penalty and the shape of its data.

    Newton's method wins unless both rows and columns are many: then coordinate descent comes first.
    """
    n, d = problem.X.shape
    wide = d > _MANY_COLUMNS and n > _FEW_ROWS
    return named("dual_cd" if wide else "newton", problem, threads=threads, seed=seed)


def named(
    name: str,
    problem: Problem | MulticlassProblem,
    *,
    threads: int | None = None,
    seed: int = 0,
) -> Any:
    """Return a solver by its name; ℓ1 penalties and joint classes have only one each."""
    if isinstance(problem, MulticlassProblem):
        return SequentialDual(seed)
    if problem.l1_ratio > 0:
        return WorkingSets()
    if name == "newton":
        return Newton(threads)
    if name == "dual_cd":
        return DualCDThenNewton(seed, threads)
    return Subgradient(seed)


# -------------------------------------------------------------------


Step = TypeVar("Step", bound=Finishable)
StopRule = Callable[[Step], Status | None]
Callback = Callable[[Progress], Any]


_POLISH_LEAST = 20
_GLANCED_AT = 1000  # rows, where there is no time for more
_COMPARED = 20  # rows of a class that a kernel machine compares with, where there is no time


class Attempt(NamedTuple):
    """How far one solver got: a point, how the run ended, and its course if asked for."""

    point: Point
    run: Run
    trace: list[tuple[float, float]]  # seconds, relative gap


class Solver(Protocol):
    """A way to solve a problem: settings, and a generator of ever better iterates."""

    def iterates(self, problem: Any, start: Any) -> Iterator[Any]:
        """Yield ever better iterates until there is nothing left to gain."""
        ...


def run_solver(
    problem: Problem | MulticlassProblem | KernelProblem,
    solver: Solver,
    *,
    tol: float,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    start: Point | None = None,
    polish: int = 0,
    trace: bool = False,
    reserve: Callable[[Iterate], float] | None = None,
    bar: Bar | None = None,
    made: int = 0,
) -> Attempt:
    """Let one solver solve a problem to a relative duality gap.

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
    start : Point or None
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
    Attempt
    """
    watch = _Watch(tol, polish)
    notes: list[tuple[float, float]] = []

    def told(progress: Progress) -> Any:
        if trace:
            notes.append((progress.seconds, progress.iterate.relative_gap))
        return None if callback is None else callback(progress)

    start = start or Point()
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
        return Attempt(begun, replace(ended, status=Status.MAX_TIME), notes)
    if watch.last.relative_gap <= tol and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    elif watch.late:
        status = Status.MAX_TIME
    elif watch.exhausted:
        status = Status.STALLED
    last = watch.last
    return Attempt(Point(last.w, last.b, last.beta), replace(ended, status=status), notes)


def beginning(problem: Problem | MulticlassProblem | KernelProblem, start: Point) -> Point:
    """Return a point (w, b, beta) that takes a moment: the start, or what the means of classes say.

    The scores of a linear machine are ±1 at the means of its classes, or lower for a class the
    further its mean is; a kernel machine compares a row with some of either class.
    """
    if isinstance(problem, KernelProblem):
        beta = _some_of_either(problem) if start.beta is None else start.beta
        return Point(beta, np.zeros(len(problem.totals)), beta)
    n, d = problem.X.shape
    several = (problem.n_classes,) if isinstance(problem, MulticlassProblem) else ()
    beta = np.zeros((n, *several)) if start.beta is None else start.beta
    if start.w is not None:
        b = np.broadcast_to(start.b, several) if several else start.b
        return Point(start.w, b, beta)
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
    return Point(w, b, beta) if several else Point(w[:, 0], float(b[0]), beta)


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
    """The stop rule of ``run_solver``: the gap, stalling, and how much polishing follows."""

    _PATIENCE = 60  # iterations in which either bound must gain a hundredth of the gap

    def __init__(self, tol: float, polish: int) -> None:
        self.tol = tol
        self.polish = polish
        self.last: Iterate | None = None
        self.exhausted = self.late = False
        self._marks: list[tuple[float, float]] = []
        self._extra = 0

    def seen(
        self,
        iterates: Iterator[Iterate],
        max_time: float | None,
        reserve: Callable[[Iterate], float] | None,
    ) -> Iterator[Iterate]:
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

    def __call__(self, iterate: Iterate) -> Status | None:
        gap = iterate.relative_gap
        if gap <= self.tol:
            self._extra += 1
            most = min(self.polish, max(_POLISH_LEAST, len(self._marks)))
            done = iterate.converged or self._extra > most
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
        Seconds allowed; the clock is read after every iterate.
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


# ------------------------------------------------------------------- solving
#
# From a problem to a certified answer: solve, check, and go on if the check says so.


_POLISHED = 2e5  # numbers in X up to which an answer is polished beyond tol
_POLISHED_DUALS = 1000  # the same of a kernel machine, by its dual variables
_ATTEMPTS = 3
_SINGLE_MARGIN = 0.6  # of tol, aimed at by float32, so that the certificate in float64 holds
_MARGIN = 0.97  # of tol, aimed at by linear machines, so that there is room for rounding
_HIDDEN = 0.01  # of what rounding may hide: a gap below that need not be closed any further
_VACUOUS = 0.9  # of the objective: a gap that is no smaller proves nothing worth having
_MOST_FACTORISED = 2 * MOST_ROWS  # variables: beyond that nobody need count rows
_CHECKS = 50  # that pairs have at a small problem before Newton's method takes over
_FEW_CHECKS = 8  # the same if Newton's method is likely to be better
_UNEVEN = 1e3  # ratio of sizes beyond which columns are named
_GRACE_PART, _GRACE = 0.2, 0.5  # of max_time, and seconds, that certificates may take after it
_RESERVED = 0.5  # of max_time, kept free for certificates at most
_PROBE = 256, 2048  # rows and columns on which kernel values are timed
_PROBE_PART = 0.05  # of the rows of a linear machine, if that is more
_FINAL = (Status.MAX_TIME, Status.CALLBACK, Status.INTERRUPTED)
_ENDS = (Status.OPTIMAL, Status.STATIONARY, *_FINAL)


AnyProblem = Problem | MulticlassProblem | KernelProblem


@dataclass(frozen=True)
class Settings:
    """What an estimator's parameters say about solving."""

    solver: str
    tol: float
    max_iter: int
    max_time: float | None
    callback: Callback | None
    verbose: bool
    trace: bool
    threads: int | None
    seed: int


@dataclass(frozen=True)
class Result:
    """What solving a problem gave: a point, its certificate, and how the run ended."""

    point: Point
    certificate: Certificate
    status: Status
    iterations: int
    seconds: float
    solver: str  # or solvers, if one went on where another had stopped
    trace: list[tuple[float, float]] = field(default_factory=list)  # seconds, relative gap


class Budget:
    """The time and patience left for a fit that solves several problems one after the other.

    Problems have equal shares of what is left: what one does not use is for those after it.
    Certificates may take a fifth of ``max_time`` and half a second longer: what they would take
    beyond that is kept free for them, up to half of ``max_time``.
    """

    def __init__(self, max_time: float | None) -> None:
        self._end = None if max_time is None else clock.now() + max_time
        self._grace = 0.0 if max_time is None else _GRACE_PART * max_time + _GRACE
        self._last = None if self._end is None else self._end + self._grace  # for certificates
        self._each: float | None = None  # seconds that a kernel value takes
        self._row: float | None = None  # seconds that a certificate takes for a row, at least
        self._share = self._end, self._last  # of the problem that is being solved
        self.ended: Status | None = None

    def interrupt(self) -> None:
        """End the fit for Ctrl-C: certificates have a moment left."""
        if self.ended is not Status.INTERRUPTED:
            self.ended, self._last = Status.INTERRUPTED, clock.now() + _GRACE
            self._share = self._end, self._last

    def begin(self, problem: "AnyProblem", problems: int) -> None:
        """Give a problem its share, where so many are still to be solved, this one among them."""
        if self._last is None:
            return
        now = clock.now()
        rest, end = max(0.0, self._last - now), self._end
        if end is not None:
            left = max(0.0, end - now)
            proofs = problems * self._foreseen(problem)
            end = now + max((1 - _RESERVED) * left, min(left, rest - proofs)) / problems
        self._share = end, now + rest / problems

    @property
    def left(self) -> float | None:
        """Seconds left, 0 once anything has ended the fit; None: no limit."""
        if self.ended is not None:
            return 0.0
        end = self._share[0]
        return None if end is None else max(0.0, end - clock.now())

    @property
    def for_certificate(self) -> float | None:
        """Seconds left for a certificate; None: no limit."""
        last = self._share[1]
        return None if last is None else max(0.0, last - clock.now())

    def affords(self, problem: "AnyProblem") -> bool:
        """Return whether there is time for a certificate, as far as that can be foreseen."""
        left = self.for_certificate
        return left is None or self._foreseen(problem) <= left

    def _foreseen(self, problem: "AnyProblem") -> float:
        """Return the seconds that a certificate will take; of a kernel machine, at least."""
        if self._row is None and not isinstance(problem, KernelProblem):
            self._row = _seconds_per_row(problem)
        return (self._row or 0.0) * _n_rows(problem)

    def certified(self, problem: "AnyProblem", seconds: float) -> None:
        """Note how long a certificate took."""
        each = seconds / _n_rows(problem)
        kernel = isinstance(problem, KernelProblem)  # most of it may be for kernel values
        self._row = min(each, self._row or each) if kernel else each

    def reserve(self, problem: "AnyProblem") -> Callable[[Iterate], float] | None:
        """Return how the time that the certificate of an iterate will take is foreseen."""
        left, after = self.left, self.for_certificate
        if not left or after is None or not isinstance(problem, KernelProblem):
            return None
        n_rows = np.count_nonzero(np.bincount(problem.rows))
        if self._each is None:  # the problems of a fit share their kernel
            self._each = _seconds_per_value(problem)
        each, grace, most = self._each, after - left, _RESERVED * left

        def reserved(iterate: Iterate) -> float:
            values = n_rows * np.count_nonzero(iterate.beta)
            return float(np.clip(values * each - grace, 0.0, most))

        return reserved


def _n_rows(problem: "AnyProblem") -> int:
    return len(problem.rows) if isinstance(problem, KernelProblem) else int(problem.X.shape[0])


def _seconds_per_row(problem: Problem | MulticlassProblem) -> float:
    """Return what a row takes in the certificate of a linear machine, as seen on some of them."""
    few = _first(problem, max(_PROBE[1], int(_PROBE_PART * _n_rows(problem))))
    point, taken = beginning(few, Point()), []
    for _ in range(2):  # what comes first takes longer
        started = clock.now()
        certify(few, point)
        taken.append(clock.now() - started)
    return min(taken) / _n_rows(few)


def _first(problem: Problem | MulticlassProblem, count: int) -> Problem | MulticlassProblem:
    """Return the problem of the first rows."""
    X = problem.X[:count]
    if isinstance(problem, MulticlassProblem):
        return replace(problem, X=X, labels=problem.labels[:count], cost=problem.cost[:count])
    return replace(problem, X=X, loss=problem.loss.take(np.arange(X.shape[0])))


def _seconds_per_value(problem: KernelProblem) -> float:
    """Return what a kernel value takes in a certificate, as seen on some of the rows."""
    few, many = (problem.gram.exact[problem.rows[:count]] for count in _PROBE)
    started = clock.now()
    problem.gram.kernel.dot_with_magnitudes(few, many, np.ones((len(many), 1)))
    return (clock.now() - started) / (len(few) * len(many))


def solve(problem: AnyProblem, settings: Settings, budget: Budget, start: Point) -> Result:
    """Return the solution of a problem with its certificate.

    The status is OPTIMAL only if the certificate, recomputed from the data, says so: a solver that
    wrongly believes that it has converged must go on, and one that stalls hands over to another.
    BLAS stays on one thread: ours share out the rows, and its own would wait for each other.
    """
    bar = progress(
        "Solving", settings.max_iter, unit="iteration", tol=settings.tol, max_time=budget.left,
        quiet=settings.verbose,
    )  # fmt: skip
    with one_blas_thread(), bar:  # of all attempts: it never goes back
        return _attempt_all(problem, settings, budget, start, bar)


def solve_all(
    problems: list[Any], starts: list[Point], settings: Settings, budget: Budget
) -> list[Result]:
    """Return the solutions of independent problems, one after the other within one budget.

    Side by side, a thread each, they took longer: Python's lock is held too often.
    """
    if len(problems) == 1:  # whose own bar says more
        budget.begin(problems[0], 1)
        return [solve(problems[0], settings, budget, starts[0])]
    results = []
    with progress("Fitting", len(problems), unit="problem", quiet=settings.verbose) as bar:
        for k, (problem, start) in enumerate(zip(problems, starts, strict=True)):
            budget.begin(problem, len(problems) - k)
            results.append(solve(problem, settings, budget, start))
            bar.advance()
    return results


_Proved = tuple[Point, Certificate]


def _attempt_all(
    problem: AnyProblem, settings: Settings, budget: Budget, start: Point, bar: Bar
) -> Result:
    """Let one solver after the other go on until the certificate holds or a limit is reached."""
    used: list[str] = []
    made = Run(Status.MAX_ITER, 0, 0.0)
    tol = settings.tol * (_SINGLE_MARGIN if isinstance(problem, KernelProblem) else _MARGIN)
    trace: list[tuple[float, float]] = []
    best: _Proved | None = None
    reserve = budget.reserve(problem)
    for solver in _attempts(problem, settings):
        used.append(_name(solver))
        attempt = run_solver(
            problem,
            solver,
            tol=tol,
            max_iter=max(1, settings.max_iter - made.iterations),
            max_time=budget.left,
            callback=_going_on(settings.callback, made),
            verbose=settings.verbose,
            start=start,
            polish=_polish(problem),
            trace=settings.trace,
            reserve=reserve,
            bar=bar,
            made=made.iterations,
        )
        trace += [(made.seconds + at, gap) for at, gap in attempt.trace]
        best = _checked(problem, attempt, best, budget)
        point, certificate = best
        status = _judged(budget.ended or attempt.run.status, certificate, settings.tol)
        if status not in _ENDS and budget.left == 0.0:  # for another attempt
            status = Status.MAX_TIME
        made = Run(
            status, made.iterations + attempt.run.iterations, made.seconds + attempt.run.seconds
        )
        hidden = certificate.relative_gap <= _HIDDEN * certificate.rounding
        if status in _ENDS or (hidden and status is Status.ROUNDING):
            break
        if made.iterations >= settings.max_iter:
            break
        start, tol = point, 0.1 * tol
    if made.status is Status.CALLBACK:
        budget.ended = made.status
    names = " and ".join(dict.fromkeys(used))
    return Result(point, certificate, made.status, made.iterations, made.seconds, names, trace)


def _checked(
    problem: AnyProblem, attempt: Attempt, before: _Proved | None, budget: Budget
) -> _Proved:
    """Return the better of two points with its certificate, in the time there is for it.

    After Ctrl-C, which may come in the middle of this, what was reached is kept with a certificate
    that takes a moment.
    """
    if attempt.run.status is Status.INTERRUPTED:
        budget.interrupt()
    try:
        return _in_time(problem, attempt.point, before, budget)
    except KeyboardInterrupt:
        budget.interrupt()
        return _in_time(problem, attempt.point, before, budget)


def _in_time(problem: AnyProblem, point: Point, before: _Proved | None, budget: Budget) -> _Proved:
    """Return the better point; without any proof if there is no time for one."""
    if not budget.affords(problem):
        return before or _unproved(problem, point)
    started = clock.now()
    try:
        with clock.limited(budget.for_certificate):
            found = _better(problem, point, before)
    except clock.OutOfTimeError:
        return before or _unproved(problem, point)
    budget.certified(problem, clock.now() - started)
    return found


def _unproved(problem: AnyProblem, point: Point) -> _Proved:
    """Return a point of which nothing is proved, for want of time; duals need a proof."""
    if not isinstance(problem, KernelProblem):
        point = replace(point, beta=np.zeros(point.beta.shape))
    return point, unproved(point)


def _better(problem: AnyProblem, point: Point, before: _Proved | None) -> _Proved:
    """Return the point with its certificate, or what is better of an earlier one.

    The duals are those of the certificate. A kernel machine has but one vector: its weights are
    the ones that its duals imply. Of a linear machine the better weights and the better duals are
    kept.
    """
    if isinstance(problem, KernelProblem):
        beta = feasible_duals(problem, point)
        point = replace(point, w=beta, beta=beta)
        certificate = certify(problem, point)
        if before is not None and _rank(before[1]) < _rank(certificate):
            return before
        return point, certificate
    certificate = certify(problem, point)
    if before is not None and certificate.gap > 0:
        last, known = before
        if known.primal <= certificate.primal and known.dual >= certificate.dual:
            return before
        if known.primal < certificate.primal:
            point = replace(point, w=last.w, b=last.b)
        if known.dual > certificate.dual:
            point = replace(point, beta=last.beta)
        certificate = certify(problem, point)
    return replace(point, beta=feasible_duals(problem, point)), certificate


def recertified(problem: AnyProblem, result: Result, b: Any, tol: float) -> Result:
    """Return a result with other intercepts, certified with these.

    Where the time was over already the bounds are those that take a moment; or there are none.
    """
    if np.isinf(result.certificate.primal):
        return result
    point = replace(result.point, b=b)
    over = result.status in (Status.MAX_TIME, Status.INTERRUPTED)
    with clock.limited(0.0 if over else None):
        certificate = certify(problem, point, keep_intercept=True)
    status = _judged(result.status, certificate, tol)
    return replace(result, point=point, certificate=certificate, status=status)


def _rank(certificate: Certificate) -> tuple[bool, float, float]:
    """Return what is smaller for the better certificate: what is proved, else how KKT holds.

    A proof that the best is anywhere between nothing and the objective does not count.
    """
    proved = certificate.proved_gap
    if proved < _VACUOUS * certificate.size:
        return False, proved, certificate.primal
    return True, certificate.max_kkt_violation, certificate.primal


def _going_on(callback: Callback | None, made: Run) -> Callback | None:
    """Return a callback that counts on from what was made before."""
    if callback is None or made.iterations == 0:
        return callback

    def tell(progress: Progress) -> Any:
        iteration, seconds = made.iterations + progress.iteration, made.seconds + progress.seconds
        return callback(Progress(iteration, seconds, progress.iterate))

    return tell


def _attempts(problem: AnyProblem, settings: Settings) -> list[Solver]:
    """Return the solvers to try in turn."""
    if isinstance(problem, KernelProblem):
        return _kernel_attempts(problem, settings)
    if settings.solver == "auto":
        first = choose(problem, threads=settings.threads, seed=settings.seed)
    else:
        first = named(settings.solver, problem, threads=settings.threads, seed=settings.seed)
    return [first, first, *_others(first, problem, settings)][:_ATTEMPTS]


def _kernel_attempts(problem: KernelProblem, settings: Settings) -> list[Solver]:
    newton, pairs = FactorNewton(settings.threads), Decomposition(settings.tol, checks=_CHECKS)
    if FactorNewton.suits(problem):
        if problem.loss.target.any():
            return [newton, pairs, replace(pairs, precise=True)]
        # Pairs soon see where the best w is 0; of what they do not, Newton's method makes an end.
        return [replace(pairs, checks=_FEW_CHECKS), newton, replace(pairs, precise=True)]
    if len(problem.rows) <= _MOST_FACTORISED and FactorNewton.takes(problem):
        return [pairs, newton, *([replace(pairs, precise=True)] if problem.totals.any() else [])]
    # What float32 cannot close float64 goes on with; where all is float64 once more is enough.
    attempts: list[Solver] = [
        Decomposition(settings.tol),
        Decomposition(0.1 * settings.tol, precise=True),
        Decomposition(0.01 * settings.tol, precise=True),
    ]
    return attempts[:2] if problem.gram.tiles is problem.gram.exact else attempts


def _name(solver: Solver) -> str:
    return next(name for name, kind in SOLVERS.items() if isinstance(solver, kind))


def _others(first: Any, problem: Problem | MulticlassProblem, settings: Settings) -> list[Solver]:
    if isinstance(problem, MulticlassProblem) or problem.l1_ratio > 0:
        return [first]
    other = "dual_cd" if isinstance(first, Newton) else "newton"
    return [named(other, problem, threads=settings.threads, seed=settings.seed)]


def _polish(problem: AnyProblem) -> int:
    if isinstance(problem, KernelProblem):
        return 100 if len(problem.rows) <= _POLISHED_DUALS else 0
    size = problem.X.nnz if hasattr(problem.X, "nnz") else problem.X.size
    return 100 if size <= _POLISHED else 0


def _judged(status: Status, certificate: Certificate, tol: float) -> Status:
    if status is Status.INTERRUPTED:
        return status
    if certificate.holds(tol):
        return Status.OPTIMAL
    ended = status in (Status.OPTIMAL, Status.STALLED)
    if certificate.refuted and ended:
        return Status.STATIONARY if status is Status.OPTIMAL else status
    if ended and certificate.is_rounding(tol):
        return Status.ROUNDING
    return Status.STALLED if status is Status.OPTIMAL else status


def gap_left(certificate: Certificate, tol: float) -> str:
    """Return the sentence on what separates an answer from ``tol``: its gap, or rounding."""
    parts = certificate.parts or (certificate,)
    gap = max(part.relative_gap for part in parts)
    rounding = max(part.rounding for part in parts)
    if not np.isfinite(rounding):
        return f" Rounding hides what the relative duality gap is, tol={tol:g}."
    if gap <= tol:
        return f" Rounding may hide a relative duality gap of up to {rounding:.3g}, tol={tol:g}."
    return f" The relative duality gap is {gap:.3g}, tol={tol:g}."


def ill_scaled(X: Any, names: Any) -> str:
    """Return a clause that names columns of very different size, or far from 0; or nothing."""
    squares = X.multiply(X) if hasattr(X, "multiply") else np.multiply(X, X, dtype=np.float64)
    sizes = np.sqrt(np.asarray(squares.mean(axis=0), dtype=np.float64).ravel())
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    used = np.flatnonzero(sizes > 0)
    if not len(used):
        return ""

    def name(column: int) -> str:
        return f"{column}" if names is None else f"{column} ({names[column]!r})"

    largest, smallest = used[sizes[used].argmax()], used[sizes[used].argmin()]
    if sizes[largest] > _UNEVEN * sizes[smallest]:
        return (
            f" Column {name(largest)} is {sizes[largest] / sizes[smallest]:.1g} times the size of "
            f"column {name(smallest)}: scaling them would help."
        )
    spreads = np.sqrt(np.maximum(sizes**2 - means**2, 0.0))
    far = used[(spreads[used] * _UNEVEN < sizes[used]) & (spreads[used] > 0)]
    if len(far):
        return f" Column {name(far[0])} is far from 0 beside its spread: centring it would help."
    if 1 / _UNEVEN < sizes[largest] < _UNEVEN:
        return ""
    return f" The columns are of size {sizes[largest]:.1g} (column {name(largest)}): scale them."
