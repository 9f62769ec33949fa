"""The separating plane of largest margin, from the nearest points of the hulls.

    min ½‖w‖²    s.t. y(w·x + b) ≥ 1

The nearest points p, q of the classes' hulls give it: w is a multiple of p − q, and b puts the
plane midway. Their convex weights are the dual variables, up to a factor. Nothing but a common
power of two is divided out: other scales of columns would make it another plane.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.certificates import Certificate
from maxmargin.certificates.hard import certify_hard, placed
from maxmargin.geometry import Hyperplane
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Point, Problem, Run, Status
from maxmargin.separability.decide import decide
from maxmargin.separability.overlap import conflict
from maxmargin.separability.result import Overlap, Separation
from maxmargin.separability.search import common_scale, origin, rescaled, search
from maxmargin.solve import Callback
from maxmargin.solvers.min_norm_point import Hulls, Nearest

ACCURACY = 1e-12  # how much lower than the nearest points the hulls may reach, relative
BUDGETS = (Status.MAX_TIME, Status.MAX_ITER, Status.CALLBACK)


@dataclass(frozen=True)
class Widest:
    """A plane with min y f = 1, its duals, what they prove, and how the search ended."""

    w: Floats
    b: float
    alpha: Floats
    certificate: Certificate
    run: Run


@dataclass(frozen=True)
class NoPlane:
    """Why there is no plane: the rows that prove it, or what kept the search from an answer."""

    witness: Overlap | None
    reason: str
    run: Run


def widest(
    X: Any,
    signs: Floats,
    intercept: Intercept,
    *,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Widest | NoPlane:
    """Return the plane of largest margin to a relative duality gap, or why there is none.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows.
    signs : ndarray of shape (n,)
        Labels −1 and +1.
    intercept : Intercept
        Free, or none.
    tol : float
        Relative duality gap.
    max_iter, max_time, callback, verbose
        As in ``drive``; an iteration ends when all rows were looked at.
    """
    began = clock.now()
    positive, free = signs > 0, intercept is Intercept.FREE
    overlap = conflict(X, positive, free)
    if overlap is not None:
        return NoPlane(overlap, "", Run(Status.MEETING, 0, 0.0))
    moved = rescaled(X, 1.0, origin(X) if free else np.zeros(X.shape[1]))
    scale = common_scale(moved)
    found, run = search(
        Hulls.of(moved / scale, positive, free),
        accuracy=min(ACCURACY, 0.1 * tol),
        max_iter=max_iter,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )
    plane = None
    if found.lowest > 0:
        plane = _plane(found.point, _duals(found, scale, len(signs)), X, signs, intercept, tol, run)
    if plane is None and run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if plane is None and run.status not in BUDGETS:
        left = None if max_time is None else max(max_time - (clock.now() - began), 0.01)
        every = np.arange(len(signs))
        answer = decide(X, positive, (-1, 1), every, free, left)
        return _second(answer, _duals(found, scale, len(signs)), X, signs, intercept, tol, run)
    return plane or NoPlane(None, f"undecided: {REASONS[run.status]}", run)


REASONS = {
    Status.MAX_TIME: "max_time ran out before a plane or a proof that there is none was found",
    Status.MAX_ITER: "max_iter was reached before a plane or a proof that there is none was found",
    Status.CALLBACK: "the callback ended the search before it found a plane or a proof that there "
    "is none",
}


def _second(
    answer: Separation,
    alpha: Floats,
    X: Any,
    signs: Floats,
    intercept: Intercept,
    tol: float,
    run: Run,
) -> Widest | NoPlane:
    """Return the answer of ``separate``, which may scale columns: a plane, if not the widest."""
    if isinstance(answer.witness, Overlap):
        return NoPlane(answer.witness, "", run)
    plane = None
    if isinstance(answer.witness, Hyperplane):
        plane = _plane(answer.witness.w, alpha, X, signs, intercept, tol, run)
    return plane or NoPlane(None, "undecided at this precision", run)


def _plane(
    w: Floats, alpha: Floats, X: Any, signs: Floats, intercept: Intercept, tol: float, run: Run
) -> Widest | None:
    """Return the plane with these weights, certified; None if rounding keeps it from separating."""
    placing = placed(X, signs, w, intercept)
    if not placing.smallest > 0:
        return None
    w, b = w / placing.smallest, placing.intercept / placing.smallest
    problem = Problem.linear(X, losses.hard_margin(signs), intercept)
    certificate = certify_hard(problem, Point(w, b, alpha * signs), keep_intercept=True)
    if not (np.isfinite(certificate.primal) and np.isfinite(w).all()):
        return None
    return Widest(w, b, alpha, certificate, judge_run(run, certificate, tol))


def judge_run(run: Run, certificate: Certificate, tol: float) -> Run:
    """Return how a search ended that found a plane with this certificate."""
    status = run.status
    if status not in (*BUDGETS, Status.INTERRUPTED):
        status = Status.ROUNDING if certificate.is_rounding(tol) else Status.STALLED
    if certificate.holds(tol) and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    return replace(run, status=status)


def _duals(found: Nearest, scale: float, n: int) -> Floats:
    """Return the convex weights as dual variables: scaled so that Σαyx = w."""
    norm = float(np.linalg.norm(found.point)) * scale
    alpha = np.zeros(n)
    alpha[found.rows] = found.weights
    return alpha * alpha.sum() / norm / norm if norm > 0 else alpha
