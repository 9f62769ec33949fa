"""The separating plane of largest margin in the feature space of a kernel.

    min ½‖w‖²    s.t. y(w·φ(x) + b) ≥ 1

In coordinates Z of the rows (``FeatureRows``) it is the linear problem, and the nearest points of
the hulls give the duals; w = Σαyφ(x) and all that is said of it are then taken from kernel values.
These are rounded: hulls nearer to each other than rounding can tell, √(nε) of their size, count as
meeting, and the witness says how near they are.
"""

import numpy as np
import numpy.typing as npt

from maxmargin import clock, losses
from maxmargin.certify.hard import placed_scores
from maxmargin.certify.kernel_hard import certify_kernel_hard
from maxmargin.problem import Intercept, KernelProblem, Run, Solution, Status
from maxmargin.separability.answers import Overlap
from maxmargin.separability.feature_rows import FeatureRows
from maxmargin.separability.overlaps import fewest
from maxmargin.separability.search import common_scale, search
from maxmargin.separability.widest import ACCURACY, BUDGETS, REASONS, NoPlane, Widest
from maxmargin.solve import Callback
from maxmargin.solvers.hulls import Hulls
from maxmargin.solvers.nearest_points import Nearest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def widest_by_kernel(
    rows: FeatureRows,
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

    The parameters are those of ``widest``; the plane's w are the coefficients of the rows.
    """
    began = clock.now()
    positive, free = signs > 0, intercept is Intercept.FREE
    Z = rows.vectors
    left = None if max_time is None else max(max_time - (clock.now() - began), 0.0)
    found, run = search(
        Hulls.of(Z / common_scale(Z), positive, free),
        accuracy=min(ACCURACY, 0.1 * tol),
        max_iter=max_iter,
        max_time=left,
        callback=callback,
        verbose=verbose,
    )
    plane = _plane(found, rows, signs, intercept, tol, run)
    if plane is not None:
        return plane
    if run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if run.status in BUDGETS:
        return NoPlane(None, f"undecided: {REASONS[run.status]}", run)
    return _overlap(found, rows, Z, positive, intercept, run)


def hard_problem(rows: FeatureRows, signs: Floats, intercept: Intercept) -> KernelProblem:
    """Return what is solved."""
    free = intercept is Intercept.FREE
    groups = np.full(len(signs), 0 if free else -1)
    terms = losses.hard_margin(signs)
    return KernelProblem(rows.gram, terms, rows.places, groups, np.zeros(int(free)))


def _plane(
    found: Nearest, rows: FeatureRows, signs: Floats, intercept: Intercept, tol: float, run: Run
) -> Widest | None:
    """Return the plane of these weights, certified; None if it separates by rounding only."""
    beta = np.zeros(len(signs))
    beta[found.rows] = found.weights * signs[found.rows]
    placing = placed_scores(rows.K[:, found.rows] @ beta[found.rows], signs, intercept)
    if not placing.smallest > 0:
        return None
    a, b = beta / placing.smallest, placing.intercept / placing.smallest
    problem, point = hard_problem(rows, signs, intercept), Solution(a, b, a, run)
    certificate = certify_kernel_hard(problem, point, keep_intercept=True)
    if not (np.isfinite(certificate.primal) and np.isfinite(a).all()):
        return None
    if certificate.refuted:  # looked at more closely, it is no kernel
        raise rows.indefinite()
    stuck = Status.ROUNDING if certificate.is_rounding(tol) else Status.STALLED
    status = run.status if run.status in (*BUDGETS, Status.INTERRUPTED) else stuck
    if certificate.holds(tol) and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    ended = Run(status, run.iterations, run.seconds)
    return Widest(a, b, np.abs(a), certificate, ended)


def _overlap(
    found: Nearest,
    rows: FeatureRows,
    Z: Floats,
    positive: npt.NDArray[np.bool_],
    intercept: Intercept,
    run: Run,
) -> NoPlane:
    """Return the rows that meet, as nearly as kernel values can tell."""
    free = intercept is Intercept.FREE
    met, weights = fewest(found.rows, found.weights, Z, positive, free)
    K, sizes = rows.K[np.ix_(met, met)], rows.sizes[met]
    beta = np.where(positive[met], weights, -weights)
    size = float(weights @ sizes)
    apart = float(beta @ K @ beta)
    if apart > 4 * rows.precision * size**2:
        return NoPlane(None, "undecided at this precision", run)
    # No nearer than what may be rounding, which also makes squares negative.
    apart = float(np.sqrt(max(apart, 0.0) + 4 * rows.eps * size**2))
    point = K @ np.maximum(beta, 0.0) if free else np.zeros(len(met))
    witness = Overlap(met, weights, point, apart / max(float(sizes.max()), 1e-300), False)
    return NoPlane(witness, f"{apart / (1 + free):.2g}", run)


def conflicting(overlap: Overlap, rows: FeatureRows, signs: Floats, free: bool) -> NoPlane:
    """Return the pair of equal rows with its point in feature space."""
    i, j = overlap.rows
    one = i if signs[i] > 0 else j
    point = rows.K[overlap.rows, one] if free else np.zeros(2)
    witness = Overlap(overlap.rows, overlap.weights, point, 0.0, True)
    return NoPlane(witness, "", Run(Status.MEETING, 0, 0.0))
