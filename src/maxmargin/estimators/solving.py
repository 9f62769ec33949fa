"""From a problem to a certified answer: solve, check, and go on if the check says so."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import clock
from maxmargin.certificates import Certificate, certify, feasible_duals, unproved
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.problems.problem import (
    Bracket,
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
from maxmargin.solve import Callback, Solver, beginning, solve
from maxmargin.solvers.block_smo import BlockSMO
from maxmargin.solvers.choice import SOLVERS, choose, named
from maxmargin.solvers.factor_newton import MOST_ROWS, FactorNewton
from maxmargin.solvers.newton import Newton

_POLISHED = 2e5  # numbers in X up to which an answer is polished beyond tol
_POLISHED_DUALS = 1000  # the same of a kernel machine, by its dual variables
_ATTEMPTS = 3
_SINGLE_MARGIN = 0.6  # of tol, aimed at by float32, so that the certificate in float64 holds
_MARGIN = 0.97  # of tol, aimed at by linear machines, so that there is room for rounding
_HIDDEN = 0.01  # of what rounding may hide: a gap below that need not be closed any further
_VACUOUS = 0.9  # of the objective: a gap that is no smaller proves nothing worth having
_MOST_FACTORISED = 2 * MOST_ROWS  # variables: beyond that nobody need count rows
_LOOKS = 50  # that pairs have at a small problem before Newton's method takes over
_FEW_LOOKS = 8  # the same if Newton's method is likely to be better
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
class Outcome:
    """A solution, its certificate, and which solvers it took."""

    solution: Solution
    certificate: Certificate
    solver: str


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

    def reserve(self, problem: "AnyProblem") -> Callable[[Bracket], float] | None:
        """Return how the time that the certificate of an iterate will take is foreseen."""
        left, after = self.left, self.for_certificate
        if not left or after is None or not isinstance(problem, KernelProblem):
            return None
        n_rows = np.count_nonzero(np.bincount(problem.rows))
        if self._each is None:  # the problems of a fit share their kernel
            self._each = _seconds_per_value(problem)
        each, grace, most = self._each, after - left, _RESERVED * left

        def reserved(iterate: Bracket) -> float:
            values = n_rows * np.count_nonzero(iterate.beta)
            return float(np.clip(values * each - grace, 0.0, most))

        return reserved


def _n_rows(problem: "AnyProblem") -> int:
    return len(problem.rows) if isinstance(problem, KernelProblem) else int(problem.X.shape[0])


def _seconds_per_row(problem: Problem | MulticlassProblem) -> float:
    """Return what a row takes in the certificate of a linear machine, as seen on some of them."""
    few = _first(problem, max(_PROBE[1], int(_PROBE_PART * _n_rows(problem))))
    point, taken = beginning(few, Start()), []
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
    fewer = problem.loss.take(np.arange(X.shape[0]))  # there may be fewer than asked for
    return replace(problem, X=X, loss=fewer)


def _seconds_per_value(problem: KernelProblem) -> float:
    """Return what a kernel value takes in a certificate, as seen on some of the rows."""
    few, many = (problem.gram.exact[problem.rows[:count]] for count in _PROBE)
    started = clock.now()
    problem.gram.kernel.dot_with_magnitudes(few, many, np.ones((len(many), 1)))
    return (clock.now() - started) / (len(few) * len(many))


def solved(problem: AnyProblem, settings: Settings, budget: Budget, start: Start) -> Outcome:
    """Return the solution of a problem with its certificate.

    The status is OPTIMAL only if the certificate, recomputed from the data, says so: a solver that
    believes to be there and is not must go on, and one that stalls hands over to another. BLAS
    stays on one thread: ours share out the rows, and its own would wait for each other.
    """
    bar = progress(
        "Solving", settings.max_iter, unit="iteration", tol=settings.tol, max_time=budget.left,
        quiet=settings.verbose,
    )  # fmt: skip
    with one_blas_thread(), bar:  # of all attempts: it never goes back
        return _solved(problem, settings, budget, start, bar)


def all_solved(
    problems: list[Any], starts: list[Start], settings: Settings, budget: Budget
) -> list[Outcome]:
    """Return the solutions of independent problems, one after the other within one budget.

    Side by side, a thread each, they took longer: Python's lock is held too often.
    """
    if len(problems) == 1:  # whose own bar says more
        budget.begin(problems[0], 1)
        return [solved(problems[0], settings, budget, starts[0])]
    outcomes = []
    with progress("Fitting", len(problems), unit="problem", quiet=settings.verbose) as bar:
        for k, (problem, start) in enumerate(zip(problems, starts, strict=True)):
            budget.begin(problem, len(problems) - k)
            outcomes.append(solved(problem, settings, budget, start))
            bar.advance()
    return outcomes


def _solved(
    problem: AnyProblem,
    settings: Settings,
    budget: Budget,
    start: Start,
    bar: Bar,
) -> Outcome:
    used: list[str] = []
    made = Run(Status.MAX_ITER, 0, 0.0)
    tol = settings.tol * (_SINGLE_MARGIN if isinstance(problem, KernelProblem) else _MARGIN)
    trace: list[tuple[float, float]] = []
    best: tuple[Solution, Certificate] | None = None
    reserve = budget.reserve(problem)
    for solver in _attempts(problem, settings):
        used.append(_name(solver))
        solution = solve(
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
        trace += [(made.seconds + at, gap) for at, gap in solution.trace]
        best = _checked(problem, solution, best, budget)
        status = _judged(budget.ended or solution.run.status, best[1], settings.tol)
        if status not in _ENDS and budget.left == 0.0:  # for another attempt
            status = Status.MAX_TIME
        made = Run(
            status,
            made.iterations + solution.run.iterations,
            made.seconds + solution.run.seconds,
        )
        hidden = best[1].relative_gap <= _HIDDEN * best[1].rounding and status is Status.ROUNDING
        if status in _ENDS or hidden or made.iterations >= settings.max_iter:
            break
        start, tol = Start(best[0].w, best[0].b, best[0].beta), 0.1 * tol
    assert best is not None
    if made.status is Status.CALLBACK:
        budget.ended = made.status
    names = " and ".join(dict.fromkeys(used))
    return Outcome(replace(best[0], run=made, trace=trace), best[1], names)


def _checked(
    problem: AnyProblem,
    solution: Solution,
    before: tuple[Solution, Certificate] | None,
    budget: Budget,
) -> tuple[Solution, Certificate]:
    """Return the better of two solutions with its certificate, in the time there is for it.

    After Ctrl-C, which may come in the middle of this, what was reached is kept with a certificate
    that takes a moment.
    """
    if solution.run.status is Status.INTERRUPTED:
        budget.interrupt()
    try:
        return _in_time(problem, solution, before, budget)
    except KeyboardInterrupt:
        budget.interrupt()
        return _in_time(problem, solution, before, budget)


def _in_time(
    problem: AnyProblem,
    solution: Solution,
    before: tuple[Solution, Certificate] | None,
    budget: Budget,
) -> tuple[Solution, Certificate]:
    """Return the better solution; without any proof if there is no time for one."""
    if not budget.affords(problem):
        return before or _unproved(problem, solution)
    started = clock.now()
    try:
        with clock.limited(budget.for_certificate):
            found = _better(problem, solution, before)
    except clock.OutOfTimeError:
        return before or _unproved(problem, solution)
    budget.certified(problem, clock.now() - started)
    return found


def _unproved(problem: AnyProblem, solution: Solution) -> tuple[Solution, Certificate]:
    """Return a solution of which nothing is proved, for want of time; duals need a proof."""
    if not isinstance(problem, KernelProblem):
        solution = replace(solution, beta=np.zeros(solution.beta.shape))
    return solution, unproved(solution)


def _better(
    problem: AnyProblem,
    solution: Solution,
    before: tuple[Solution, Certificate] | None,
) -> tuple[Solution, Certificate]:
    """Return the solution with its certificate, or what is better of an earlier one.

    The duals are those of the certificate. A kernel machine has but one vector: its weights are
    the ones that its duals imply. Of a linear machine the better weights and the better duals are
    kept.
    """
    if isinstance(problem, KernelProblem):
        beta = feasible_duals(problem, solution)
        solution = replace(solution, w=beta, beta=beta)
        certificate = certify(problem, solution)
        if before is not None and _rank(before[1]) < _rank(certificate):
            return before
        return solution, certificate
    raw, certificate = solution, certify(problem, solution)
    if before is not None and certificate.gap > 0:
        last, known = before
        if known.primal <= certificate.primal and known.dual >= certificate.dual:
            return before
        if known.primal < certificate.primal:
            raw = replace(raw, w=last.w, b=last.b)
        if known.dual > certificate.dual:
            raw = replace(raw, beta=last.beta)
        certificate = certify(problem, raw)
    return replace(raw, beta=feasible_duals(problem, raw)), certificate


def recertified(problem: AnyProblem, outcome: Outcome, b: Any, tol: float) -> Outcome:
    """Return a solution with other intercepts, certified with these.

    Where the time was over already the bounds are those that take a moment; or there are none.
    """
    if np.isinf(outcome.certificate.primal):
        return outcome
    solution = replace(outcome.solution, b=b)
    over = solution.run.status in (Status.MAX_TIME, Status.INTERRUPTED)
    with clock.limited(0.0 if over else None):
        certificate = certify(problem, solution, keep_intercept=True)
    status = _judged(solution.run.status, certificate, tol)
    run = replace(solution.run, status=status)
    return Outcome(replace(solution, run=run), certificate, outcome.solver)


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
    newton, pairs = FactorNewton(settings.threads), BlockSMO(settings.tol, looks=_LOOKS)
    if FactorNewton.suits(problem):
        if problem.loss.target.any():
            return [newton, pairs, replace(pairs, precise=True)]
        # Pairs soon see where the best w is 0; of what they do not, Newton's method makes an end.
        return [replace(pairs, looks=_FEW_LOOKS), newton, replace(pairs, precise=True)]
    if len(problem.rows) <= _MOST_FACTORISED and FactorNewton.takes(problem):
        return [pairs, newton, *([replace(pairs, precise=True)] if problem.totals.any() else [])]
    # What float32 cannot close float64 goes on with; where all is float64 once more is enough.
    attempts: list[Solver] = [
        BlockSMO(settings.tol),
        BlockSMO(0.1 * settings.tol, precise=True),
        BlockSMO(0.01 * settings.tol, precise=True),
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
