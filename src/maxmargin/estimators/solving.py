"""From a problem to a certified answer: solve, check, and go on if the check says so."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import clock
from maxmargin.certify import Certificate, certify, feasible_duals
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.problem import (
    KernelProblem,
    MulticlassProblem,
    Problem,
    Progress,
    Run,
    Solution,
    Start,
    Status,
)
from maxmargin.progress import progress
from maxmargin.solve import Callback, Solver, solve
from maxmargin.solvers.block_smo import BlockSMO
from maxmargin.solvers.choice import SOLVERS, choose, named
from maxmargin.solvers.factor_newton import FactorNewton
from maxmargin.solvers.newton import Newton

_POLISHED = 2e5  # numbers in X up to which an answer is polished beyond tol
_POLISHED_DUALS = 1000  # the same of a kernel machine, by its dual variables
_ATTEMPTS = 3
_SINGLE_MARGIN = 0.6  # of tol, aimed at by float32, so that the certificate in float64 holds
_MARGIN = 0.97  # of tol, aimed at by linear machines, so that there is room for rounding
_LOOKS = 50  # that pairs have at a small problem before Newton's method takes over
_UNEVEN = 1e3  # ratio of sizes beyond which columns are named
_FINAL = (Status.MAX_TIME, Status.CALLBACK, Status.INTERRUPTED)
_ENDS = (Status.OPTIMAL, Status.STATIONARY, Status.ROUNDING, *_FINAL)


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
    """The time and patience left for a fit that solves several problems one after the other."""

    def __init__(self, max_time: float | None) -> None:
        self._end = None if max_time is None else clock.now() + max_time
        self.ended: Status | None = None

    @property
    def left(self) -> float | None:
        """Seconds left, 0 once anything has ended the fit; None: no limit."""
        if self.ended is not None:
            return 0.0
        return None if self._end is None else max(0.0, self._end - clock.now())


def solved(problem: AnyProblem, settings: Settings, budget: Budget, start: Start) -> Outcome:
    """Return the solution of a problem with its certificate.

    The status is OPTIMAL only if the certificate, recomputed from the data, says so: a solver that
    believes to be there and is not must go on, and one that stalls hands over to another. BLAS
    stays on one thread: ours share out the rows, and its own would wait for each other.
    """
    with one_blas_thread():
        return _solved(problem, settings, budget, start)


def all_solved(
    problems: list[Any], starts: list[Start], settings: Settings, budget: Budget
) -> list[Outcome]:
    """Return the solutions of independent problems, one after the other within one budget.

    Side by side, a thread each, they took longer: Python's lock is held too often.
    """
    if len(problems) == 1:  # whose own bar says more
        return [solved(problems[0], settings, budget, starts[0])]
    outcomes = []
    with progress("Fitting", len(problems), unit="problem", quiet=settings.verbose) as bar:
        for problem, start in zip(problems, starts, strict=True):
            outcomes.append(solved(problem, settings, budget, start))
            bar.advance()
    return outcomes


def _solved(
    problem: AnyProblem,
    settings: Settings,
    budget: Budget,
    start: Start,
) -> Outcome:
    used: list[str] = []
    made = Run(Status.MAX_ITER, 0, 0.0)
    tol = settings.tol * (_SINGLE_MARGIN if isinstance(problem, KernelProblem) else _MARGIN)
    trace: list[tuple[float, float]] = []
    best: tuple[Solution, Certificate] | None = None
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
        )
        trace += [(made.seconds + at, gap) for at, gap in solution.trace]
        best = _better(problem, solution, best)
        status = _judged(solution.run.status, best[1], settings.tol)
        made = Run(
            status,
            made.iterations + solution.run.iterations,
            made.seconds + solution.run.seconds,
        )
        if status in _ENDS or made.iterations >= settings.max_iter:
            break
        start, tol = Start(best[0].w, best[0].b, best[0].beta), 0.1 * tol
    assert best is not None
    if made.status in _FINAL:
        budget.ended = made.status
    names = " and ".join(dict.fromkeys(used))
    return Outcome(replace(best[0], run=made, trace=trace), best[1], names)


def _better(
    problem: AnyProblem,
    solution: Solution,
    before: tuple[Solution, Certificate] | None,
) -> tuple[Solution, Certificate]:
    """Return the solution with its certificate, or what is better of an earlier one.

    The duals are those of the certificate. A kernel machine has but one vector: its weights are the
    ones that its duals imply. Of a linear machine the better weights and the better duals are kept.
    """
    beta = feasible_duals(problem, solution)
    if isinstance(problem, KernelProblem):
        solution = replace(solution, w=beta, beta=beta)
        certificate = certify(problem, solution)
        if before is not None and _rank(before[1]) < _rank(certificate):
            return before
        return solution, certificate
    certificate = certify(problem, solution)
    solution = replace(solution, beta=beta)
    if before is None or certificate.gap <= 0:
        return solution, certificate
    last, known = before
    if known.primal <= certificate.primal and known.dual >= certificate.dual:
        return before
    if known.primal < certificate.primal:
        solution = replace(solution, w=last.w, b=last.b)
    if known.dual > certificate.dual:
        solution = replace(solution, beta=last.beta)
    return solution, certify(problem, solution)


def recertified(problem: AnyProblem, outcome: Outcome, b: Any, tol: float) -> Outcome:
    """Return a solution with other intercepts, certified with these."""
    solution = replace(outcome.solution, b=b)
    certificate = certify(problem, solution, keep_intercept=True)
    status = _judged(solution.run.status, certificate, tol)
    run = replace(solution.run, status=status)
    return Outcome(replace(solution, run=run), certificate, outcome.solver)


def _rank(certificate: Certificate) -> tuple[float, float]:
    """Return what is smaller for the better certificate: what is proved, then the objective."""
    return certificate.proved_gap, certificate.primal


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
    if FactorNewton.takes(problem):
        return [BlockSMO(settings.tol, looks=_LOOKS), FactorNewton(settings.threads)]
    # What float32 cannot settle float64 goes on with.
    return [
        BlockSMO(settings.tol),
        BlockSMO(0.1 * settings.tol, precise=True),
        BlockSMO(0.01 * settings.tol, precise=True),
    ]


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
    return f" The columns are of size {sizes[largest]:.1g} (column {name(largest)}): scale them."
