"""The one driver: it plans solvers, runs them, watches the clock, decides to stop, certifies."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.budget import Budget
from maxmargin.certificates import Certificate, certify, certify_with_duals, unproved
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.features import KernelFeatures, LinearFeatures
from maxmargin.problems.problem import (
    AnyProblem,
    Finishable,
    Iterate,
    MulticlassProblem,
    Point,
    Problem,
    Progress,
    Run,
    Status,
)
from maxmargin.rows.reading import describe_reading
from maxmargin.runtime import clock
from maxmargin.runtime.progress import Bar, progress
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads
from maxmargin.solvers.crammer_singer import SequentialDual
from maxmargin.solvers.decomposition import Decomposition
from maxmargin.solvers.dual_cd import BlockDualCD, DualCDThenNewton
from maxmargin.solvers.factor_newton import MOST_ROWS, FactorNewton
from maxmargin.solvers.linear_program import LinearProgram
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.proximal_newton import ProximalNewton
from maxmargin.solvers.rare_class import RareClass
from maxmargin.solvers.side_by_side import SideBySide
from maxmargin.solvers.subgradient import Subgradient

Callback = Callable[[Progress], Any]


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that concern solving."""

    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    max_time: float | None = None
    callback: Callback | None = None
    verbose: bool = False
    trace: bool = False
    threads: int | None = None
    seed: int = 0
    cyclic: bool = False  # whether coordinate descent visits rows in the order given
    polish: bool = True  # small problems are solved to more digits than tol asks for


# ------------------------------------------------------------------- which solvers


_MANY_COLUMNS = 2000  # and rows, beyond both of which coordinate descent comes before Newton
_FEW_ROWS = 2000
_POLISHED = 2e5  # numbers in X up to which an answer is polished beyond tol
_POLISHED_DUALS = 1000  # the same of a kernel machine, by its dual variables
_POLISH = 100  # iterations
_SINGLE_MARGIN = 0.6  # of tol, aimed at by float32, so that the certificate in float64 holds
_MARGIN = 0.97  # of tol, aimed at by linear machines, which leaves a margin for rounding
_PATIENCE = 60  # iterations in which either bound must gain a hundredth of the gap
_MOST_FACTORISED = 2 * MOST_ROWS  # variables, beyond which rows are not even counted
_NU_ON_MATRIX = 3000  # rows of a ν-form up to which its matrix is computed first of all
_CHECKS = 50  # that pairs have at a small problem before Newton's method takes over
_FEW_CHECKS = 8  # the same if Newton's method is likely to be better


class Solver(Protocol):
    """A way to solve a problem: settings, and a generator of ever better iterates."""

    def iterates(self, problem: Any, start: Any) -> Iterator[Any]:
        """Yield ever better iterates until there is nothing left to gain."""
        ...


SOLVERS: dict[type[Any], str] = {
    Newton: "newton",
    RareClass: "working_set",
    DualCDThenNewton: "dual_cd",
    BlockDualCD: "dual_cd",
    Subgradient: "subgradient",
    ProximalNewton: "working_sets",
    LinearProgram: "linear_program",
    SequentialDual: "sequential_dual",
    Decomposition: "block_smo",
    FactorNewton: "factor_newton",
}


class Plan(NamedTuple):
    """Solvers to try in turn, and how far they are to go."""

    solvers: list[Any]
    aim: float  # of tol
    polish: int  # iterations beyond that
    tied: bool = False  # weights are those that the duals imply, so that neither goes alone
    patience: float = _PATIENCE


@singledispatch
def plan(problem: Any, settings: Settings) -> Plan:
    """Return how a problem is to be solved, by its penalty, its features and their shape.

    The problem's class decides first: a room that brings its own problem registers its plan here,
    and the name of its solver in ``SOLVERS``.
    """
    return plan_for(problem.features, problem, settings)


@plan.register
def _(problem: MulticlassProblem, settings: Settings) -> Plan:
    sweeps = [SequentialDual(settings.seed)] * _ATTEMPTS
    return Plan(sweeps, _MARGIN, polishing(problem.features.size))


@plan.register
def _(problem: BlockedProblem, settings: Settings) -> Plan:
    polish = polishing(problem.blocks.numbers)
    newton = Newton(settings.threads)
    descent = BlockDualCD(settings.seed, settings.threads, settings.cyclic)
    wide = problem.blocks.d > _MANY_COLUMNS and problem.blocks.n > _FEW_ROWS
    first = {"auto": descent if wide else newton, "newton": newton, "dual_cd": descent}
    return Plan([first[settings.solver], newton], _MARGIN, polish)


@singledispatch
def plan_for(features: Any, problem: Problem[Any], settings: Settings) -> Plan:
    """Return how a problem with such features is to be solved."""
    raise TypeError(f"no solver is known for {type(features).__name__}")


@plan_for.register
def _(features: LinearFeatures, problem: Any, settings: Settings) -> Plan:
    """Newton's method wins unless both rows and columns are many."""
    polish = polishing(features.size)
    if problem.l1_ratio > 0:
        sparse = ProximalNewton(settings.threads)
        second = LinearProgram() if LinearProgram.takes(problem) else sparse
        return Plan([sparse, second, sparse], _MARGIN, polish)
    if settings.solver == "subgradient":  # whoever asks for it wants to see what it does
        return Plan([Subgradient(settings.seed)], _MARGIN, 0, patience=np.inf)
    newton = Newton(settings.threads)
    descent = DualCDThenNewton(settings.seed, settings.threads, settings.cyclic)
    n, d = features.X.shape
    wide = d > _MANY_COLUMNS and n > _FEW_ROWS
    first: Solver = {
        "auto": descent if wide else newton,
        "newton": newton,
        "dual_cd": descent,
    }[settings.solver]
    rare = RareClass(settings.threads)
    if settings.solver == "auto" and not wide and len(rare.rare(problem)):
        return Plan([rare, newton, descent], _MARGIN, polish)
    return Plan([first, first, descent if first is newton else newton], _MARGIN, polish)


@plan_for.register
def _(features: KernelFeatures, problem: Any, settings: Settings) -> Plan:
    """Pairs of duals come first, but where the rows are a thin factor of the Gram matrix."""
    newton, variables = FactorNewton(settings.threads), len(problem.row)
    rounds = Decomposition(settings.tol)
    if problem.totals.any():
        rounds = replace(rounds, most_on_matrix=_NU_ON_MATRIX)
    pairs = replace(rounds, checks=_CHECKS)
    # Where the duals of a ν-form are free by the thousand, it takes many checks that close a gap.
    precise = replace(rounds, precise=True, checks=None if problem.totals.any() else _CHECKS)
    solvers: list[Any]
    if FactorNewton.suits(problem):
        # Without targets the best w may be 0: pairs soon see that, Newton's method does not.
        few = replace(pairs, checks=_FEW_CHECKS)
        solvers = [newton, pairs] if problem.loss.target.any() else [few, newton]
        solvers.append(precise)
    elif variables <= _MOST_FACTORISED and FactorNewton.takes(problem):
        solvers = [pairs, newton, *([precise] if problem.totals.any() else [])]
    else:
        # If rounding in float32 shows, it starts again from scores in float64. What that does not
        # close float64 goes on with; where all is float64 once more is enough.
        solvers = [
            rounds,
            replace(rounds, wanted=0.1 * settings.tol, exact_start=True),
            replace(rounds, wanted=0.01 * settings.tol, precise=True),
        ][: 2 if features.gram.tiles is features.gram.exact else 3]
    polish = _POLISH if variables <= _POLISHED_DUALS else 0
    return Plan(solvers, _SINGLE_MARGIN, polish, tied=True)


def polishing(numbers: float) -> int:
    """Return how many iterations polish the answer of data with so many numbers."""
    return _POLISH if numbers <= _POLISHED else 0


# ------------------------------------------------------------------- one solver


Step = TypeVar("Step", bound=Finishable)
StopRule = Callable[[Step], Status | None]
Trace = list[tuple[float, float]]  # seconds, relative gap


_POLISH_LEAST = 20


class Attempt(NamedTuple):
    """How far one solver got: a point, how the run ended, and its course if asked for.

    Where it was in the middle of an iteration, an earlier point may be better.
    """

    point: Point
    run: Run
    trace: Trace
    earlier: tuple[Point, ...] = ()


def run_solver(
    problem: Any,
    solver: Solver,
    *,
    tol: float,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    start: Point | None = None,
    polish: int = 0,
    patience: float = _PATIENCE,
    trace: bool = False,
    reserve: Callable[[Iterate], float] | None = None,
    bar: Bar | None = None,
    before: Run | None = None,
) -> Attempt:
    """Let one solver solve a problem to a relative duality gap.

    Parameters
    ----------
    problem : Problem or MulticlassProblem
        What to solve.
    solver : Solver
        How.
    tol : float
        Relative duality gap at which the answer is good enough.
    max_iter, max_time, callback, verbose, bar, before :
        As in ``drive``.
    start : Point or None
        Where to start.
    polish : int
        How many more iterations to make at most after ``tol`` is reached, unless the optimality
        conditions hold to rounding before: fits then agree to many digits, whatever the order of
        rows. Beyond the first twenty, no more than it took to get there.
    patience : float
        Iterations without progress after which the solver has stalled.
    trace : bool
        Whether to note seconds and gap after each iteration.
    reserve : callable or None
        Returns how many seconds of ``max_time`` to leave for what comes after an iterate.

    Returns
    -------
    Attempt
    """
    watch = _GapRule(tol, polish, patience, trace)
    start = start or Point()
    ended = drive(
        watch.seen(solver.iterates(problem, start), max_time, reserve),
        rules=[watch],
        max_iter=max_iter,
        at_max_iter=Status.MAX_ITER,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        tol=tol,
        bar=bar,
        before=before,
    )
    status, last = ended.status, watch.last
    if last is None and status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted before there was anything to keep")
    late = watch.late or status is Status.MAX_TIME
    if last is None or (late and not last.w.any()):
        return Attempt(problem.guess(start), replace(ended, status=Status.MAX_TIME), watch.trace)
    if last.relative_gap <= tol and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    elif watch.late:
        status = Status.MAX_TIME
    elif watch.exhausted:
        status = Status.STALLED
    point = Point(last.w, last.b, last.beta)
    earlier = () if last is watch.settled else watch.earlier(problem, start)
    return Attempt(point, replace(ended, status=status), watch.trace, earlier)


class _GapRule:
    """The stop rule of ``run_solver``: the gap, stalling, and how much polishing follows."""

    def __init__(self, tol: float, polish: int, patience: float, traced: bool) -> None:
        self.tol, self.polish, self.patience = tol, polish, patience
        self.traced = traced
        self.last: Iterate | None = None
        self.settled: Iterate | None = None  # the last that was no iterate in the middle of others
        self.exhausted = self.late = False
        self.trace: Trace = []
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
        start = clock.now()
        end = np.inf if max_time is None else start + max_time
        limit = clock.Limit(end)
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
            if self.last.finished or self.last.settled:
                self.settled = self.last
            if self.traced and self.last.finished:
                self.trace.append((clock.now() - start, self.last.relative_gap))
            yield self.last
            if reserve is not None and max_time is not None:
                limit.end = min(limit.end, end - reserve(self.last))

    def earlier(self, problem: Any, start: Point) -> tuple[Point, ...]:
        """Return what may be better than the last iterate, if rounds of a kernel machine go on.

        The dual objective rises from round to round, but what is minimised may rise as well.
        """
        of_kernel = isinstance(problem, Problem) and isinstance(problem.features, KernelFeatures)
        if not of_kernel or problem.totals.any():
            return ()
        if self.settled is None:
            return (problem.guess(start),)
        return (Point(self.settled.w, self.settled.b, self.settled.beta),)

    def __call__(self, iterate: Iterate) -> Status | None:
        gap = iterate.relative_gap
        if gap <= self.tol:
            self._extra += 1
            most = min(self.polish, max(_POLISH_LEAST, len(self._marks)))
            done = iterate.converged or self._extra > most
            return Status.OPTIMAL if done else None
        self._marks.append((iterate.primal, iterate.dual))
        if len(self._marks) <= self.patience:
            return None
        primal, dual = self._marks[-1 - int(self.patience)]
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
    before: Run | None = None,
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
    before : Run or None
        What was made before this run: bar and callback go on counting from there.

    Returns
    -------
    Run
        Ctrl-C is reported as ``Status.INTERRUPTED``, so that the caller can keep what was reached
        before it raises KeyboardInterrupt itself.
    """
    start, iterations, status = clock.now(), 0, at_max_iter
    before = before or Run(at_max_iter, 0, 0.0)
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
                    count, time = before.iterations + iterations, before.seconds + seconds
                    if bar.watched:
                        gap = getattr(iterate, "relative_gap", None)
                        bar.update(count, gap, note=describe_reading() or None)
                    if verbose:
                        facts = filter(None, (str(iterate), describe_reading()))
                        line = f"{iterations:6d} {seconds:8.2f} s  {'  '.join(facts)}"
                        sys.stdout.write(f"{line}\n")
                    answer = None if callback is None else callback(Progress(count, time, iterate))
                    stop_asked = isinstance(answer, bool | np.bool_) and bool(answer)
                    ended = Status.CALLBACK if stop_asked else None
                    for rule in rules:
                        if found := rule(iterate):
                            ended = found
                            break
                    if ended or iterations >= max_iter:
                        status = ended or at_max_iter
                        break
                if max_time is not None and seconds > max_time:
                    status = Status.MAX_TIME
                    break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Run(status, iterations, clock.now() - start)


# ------------------------------------------------------------------- to a certified answer


_ATTEMPTS = 3
_HIDDEN = 0.01  # of what rounding may hide: a gap below that need not be closed any further
_VACUOUS = 0.9  # of the objective: a gap that is no smaller proves nothing worth having
_UNEVEN = 1e3  # ratio of sizes beyond which columns are named
_PARTS = (0.0, 1 / 4, 1 / 16, 1 / 64)  # of weights, tried where they are worse than none
_SIDE_BY_SIDE = 0.5  # of the time left, for problems that are solved in threads
_FINAL = (Status.MAX_TIME, Status.CALLBACK, Status.INTERRUPTED)
_PROVED = (Status.OPTIMAL, Status.NO_MARGIN)
_ENDS = (*_PROVED, Status.STATIONARY, Status.INEXACT, *_FINAL)


@dataclass(frozen=True)
class Result:
    """What solving a problem gave: a point, its certificate, and how the run ended."""

    point: Point
    certificate: Certificate
    status: Status
    iterations: int
    seconds: float
    solver: str  # or solvers, if one went on where another had stopped
    trace: Trace = field(default_factory=list)


def solve(problem: AnyProblem, settings: Settings, budget: Budget, start: Point) -> Result:
    """Return the solution of a problem with its certificate.

    One solver after the other goes on until the certificate holds or a limit is reached. The status
    is OPTIMAL only if the certificate, recomputed from the data, says so: a solver that wrongly
    believes that it has converged must go on, and one that stalls hands over to another. BLAS stays
    on one thread: ours share out the rows, and its own would wait for each other.
    """
    planned = plan(problem, settings)
    made, tol, used, trace = Run(Status.MAX_ITER, 0, 0.0), planned.aim * settings.tol, [], []
    best: _Proved | None = None
    reserve = budget.reserve(problem)
    own = progress(
        "Solving", settings.max_iter, unit="iteration", tol=settings.tol, max_time=budget.left,
        quiet=settings.verbose,
    )  # fmt: skip
    with one_blas_thread(), own as bar:  # of all attempts: it never goes back
        for solver in planned.solvers:
            used.append(SOLVERS[type(solver)])
            attempt = run_solver(
                problem,
                solver,
                tol=tol,
                max_iter=max(1, settings.max_iter - made.iterations),
                max_time=budget.left,
                callback=settings.callback,
                verbose=settings.verbose,
                start=start,
                polish=planned.polish if settings.polish else 0,
                patience=planned.patience,
                trace=settings.trace,
                reserve=reserve,
                bar=bar,
                before=made,
            )
            if settings.trace:
                trace += [(made.seconds + at, gap) for at, gap in attempt.trace]
            best = _certified(problem, attempt, best, budget, planned.tied)
            start, certificate = best
            status = _decide_status(budget.ended or attempt.run.status, certificate, settings.tol)
            if status not in _ENDS and budget.left == 0.0:  # for another attempt
                status = Status.MAX_TIME
            run = attempt.run
            made = Run(status, made.iterations + run.iterations, made.seconds + run.seconds)
            hidden = certificate.relative_gap <= _HIDDEN * certificate.rounding
            done = status in _ENDS or (hidden and status is Status.ROUNDING)
            if done or made.iterations >= settings.max_iter:
                break
            tol = 0.1 * tol
        if made.status is not Status.OPTIMAL and not planned.tied:
            start, certificate = _shortened(problem, (start, certificate), made, budget)
    if made.status is Status.CALLBACK:
        budget.ended = made.status
    names = " and ".join(dict.fromkeys(used))
    return Result(start, certificate, made.status, made.iterations, made.seconds, names, trace)


def solve_all(
    problems: list[Any],
    starts: list[Point],
    settings: Settings,
    budget: Budget,
) -> list[Result]:
    """Return the solutions of independent problems within one budget.

    Those with a kernel that are not large are solved side by side; what that leaves open, one after
    the other.
    """
    if len(problems) == 1:  # whose own bar says more
        budget.begin(problems[0], 1)
        return [solve(problems[0], settings, budget, starts[0])]
    with progress("Fitting", len(problems), unit="problem", quiet=settings.verbose) as bar:
        known = _solve_side_by_side(problems, starts, settings, budget, bar)
        solved = sum(result.status in _PROVED for result in known.values())
        results, left = [], len(problems) - solved
        for k in range(len(problems)):
            result = known.get(k)
            if result is None or result.status not in _PROVED:
                budget.begin(problems[k], left)
                start = starts[k] if result is None else result.point
                result = solve(problems[k], settings, budget, start)
                bar.advance()
                left -= 1
            results.append(result)
    return results


def _solve_side_by_side(
    problems: list[Any],
    starts: list[Point],
    settings: Settings,
    budget: Budget,
    bar: Bar,
) -> dict[int, Result]:
    """Return what was solved and certified in threads, by the number of the problem.

    Nobody watches: with a callback, lines or a trace problems come one after the other.
    """
    found: dict[int, Result] = {}
    watched = settings.callback is not None or settings.verbose or settings.trace
    in_blocks = isinstance(problems[0], BlockedProblem)
    if watched or settings.max_iter < _CHECKS or in_blocks:
        return found
    fits = SideBySide.of(problems, settings.threads or usual_threads())
    if fits is None or not isinstance(plan(problems[0], settings).solvers[0], Decomposition):
        return found

    def solve_one(k: int) -> None:
        began = clock.now()
        reached, checks = fits.solve(k, starts[k], _SINGLE_MARGIN * settings.tol)
        run = Run(Status.OPTIMAL, checks, clock.now() - began)
        point, status = Point(reached.w, reached.b, reached.beta), Status.STALLED
        certificate = unproved(point)
        if reached.relative_gap <= settings.tol:
            attempt = Attempt(point, run, [])
            point, certificate = _certified(problems[k], attempt, None, budget, tied=True)
            status = _decide_status(run.status, certificate, settings.tol)
        name = SOLVERS[Decomposition]
        found[k] = Result(point, certificate, status, checks, run.seconds, name)
        if status in _PROVED:
            bar.advance()

    seconds = None if budget.left is None else _SIDE_BY_SIDE * budget.left
    try:
        with one_blas_thread(), clock.limited(seconds), suppress(clock.OutOfTimeError):
            todo = deque(fits.longest_first)
            fits.prepare(todo)
            if todo:
                solve_one(todo.popleft())  # alone: it compiles the loops
            share_work(solve_one, todo, fits.threads)
    except KeyboardInterrupt:
        budget.interrupt()
    return found


_Proved = tuple[Point, Certificate]


def _certified(
    problem: AnyProblem, attempt: Attempt, before: _Proved | None, budget: Budget, tied: bool
) -> _Proved:
    """Return the better of two points with its certificate; no proof if there is no time for one.

    After Ctrl-C, which may come in the middle of this, what was reached is kept with a certificate
    that takes a moment.
    """
    if attempt.run.status is Status.INTERRUPTED:
        budget.interrupt()
    point, started, left = attempt.point, clock.now(), budget.for_certificate
    if attempt.earlier:
        point = attempt.earlier[0]  # unless there is time to see that the last is better
    try:
        if left is not None and budget.foresee(problem) > left:
            raise clock.OutOfTimeError
        with clock.limited(left):
            if attempt.earlier and isinstance(problem, Problem):
                point = problem.best_of([*attempt.earlier, attempt.point])
            found = (_better_tied if tied else _better)(problem, point, before)
    except KeyboardInterrupt:
        budget.interrupt()
        return _certified(problem, attempt, before, budget, tied)
    except clock.OutOfTimeError:
        if before is not None:
            return before
        if not tied:  # duals of their own need a proof
            point = problem.without_duals(point)
        return point, unproved(point)
    if left is not None:
        budget.certified(problem, found[0].beta, clock.now() - started)
    return found


def _shortened(problem: AnyProblem, best: _Proved, made: Run, budget: Budget) -> _Proved:
    """Return what is no worse than the best constant: if need be, weights that are shorter.

    What ends early may be worse than no weights at all. A part of them is better than none then,
    and keeps the order of the rows.
    """
    point, known = best
    for part in _PARTS:
        shorter = replace(point, w=part * point.w, b=part * point.b)
        best = _certified(problem, Attempt(shorter, made, []), best, budget, tied=False)
        if not best[1].primal < known.primal:
            break
    return best


def _better_tied(problem: Any, point: Point, before: _Proved | None) -> _Proved:
    """Return the weights that the duals imply with their certificate, or an earlier point."""
    beta = problem.settled(point.beta)
    point = replace(point, w=problem.features.combine(problem.by_row(beta)), beta=beta)
    certificate, _ = certify_with_duals(problem, point)
    if before is not None and _rank(before[1]) < _rank(certificate):
        return before
    return point, certificate


def _better(problem: AnyProblem, point: Point, before: _Proved | None) -> _Proved:
    """Return the better weights and the better duals of two points, with their certificate.

    The duals are those of the certificate.
    """
    if isinstance(problem, Problem | MulticlassProblem):
        point = replace(point, beta=problem.settled(point.beta))
    certificate, beta = certify_with_duals(problem, point)
    if before is not None and certificate.gap > 0:
        last, known = before
        if known.primal <= certificate.primal and known.dual >= certificate.dual:
            return before
        if known.primal < certificate.primal:
            point = replace(point, w=last.w, b=last.b)
        if known.dual > certificate.dual:
            point = replace(point, beta=last.beta)
        certificate, beta = certify_with_duals(problem, point)
    return replace(point, beta=beta), certificate


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
    return with_certificate(replace(result, point=point), certificate, tol)


def with_certificate(result: Result, certificate: Certificate, tol: float) -> Result:
    """Return a result with another certificate, and the status that it proves."""
    status = _decide_status(result.status, certificate, tol)
    return replace(result, certificate=certificate, status=status)


def _rank(certificate: Certificate) -> tuple[bool, float, float]:
    """Return what is smaller for the better certificate: what is proved, else how KKT holds.

    A proof that the best is anywhere between nothing and the objective does not count.
    """
    proved = certificate.proved_gap
    if proved < _VACUOUS * certificate.size:
        return False, proved, certificate.primal
    return True, certificate.max_kkt_violation, certificate.primal


def _decide_status(status: Status, certificate: Certificate, tol: float) -> Status:
    if status is Status.INTERRUPTED:
        return status
    if certificate.terms:
        return Status.NO_MARGIN
    if certificate.holds(tol):
        return Status.OPTIMAL
    ended = status in (Status.OPTIMAL, Status.STALLED)
    if certificate.refuted and ended:
        return certificate.stationary if status is Status.OPTIMAL else status
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
    return describe_scales(sizes, means, names)


def describe_scales(sizes: Floats, means: Floats, names: Any) -> str:
    """Return the same clause, given the root mean square and the mean of each column."""
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
