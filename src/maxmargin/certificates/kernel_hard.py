"""Certificates of hard margins with a kernel: w = Σ aᵥ φ(xᵥ), by its coefficients.

    scores Ka,   ‖w‖² = aᵀKa,   P = ½‖w‖²/(min y f)²,   D = ½(Σα)²/‖Σαyφ‖²

as in ``certify.hard``.
"""

import numpy as np

from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.hard import (
    Duals,
    Plane,
    assembled,
    balance,
    feasible,
    placed_scores,
    root,
)
from maxmargin.certificates.kernel import doubted, expansions
from maxmargin.problems.problem import Intercept, KernelProblem, Point
from maxmargin.problems.rounding import Bounded


def certify_kernel_hard(
    problem: KernelProblem, point: Point, *, keep_intercept: bool = False
) -> Certificate:
    """Return the certificate of a point (w, b, beta) for the hard margin with a kernel.

    Parameters
    ----------
    problem : KernelProblem
        With the loss of ``losses.hard_margin``, one variable a row, and one group or none.
    point : Point
        Coefficients w, intercept and duals, in any scale. A free intercept is replaced by the best
        one, unless it is to be kept; what the given one would cost is ``intercept_cost``.

    Returns
    -------
    Certificate
        A plane that does not separate by more than rounding has an infinite objective and gap; a
        kernel that is not positive semidefinite has no prepared.
    """
    signs, kernel = problem.loss.target, problem.gram.kernel
    intercept = Intercept.FREE if len(problem.totals) else Intercept.NONE
    alpha, infeasibility = feasible(signs * point.beta, signs, intercept)
    a, beta = np.asarray(point.w, dtype=np.float64), alpha * signs
    prepared = problem.gram.exact[problem.rows]
    weights, implied = expansions(kernel, prepared, np.column_stack([a, beta]))
    placing = placed_scores(weights.scores.value, signs, intercept)
    lengths = root(weights.norm2), root(implied.norm2)

    def apart(p: float, q: float) -> float:
        mixed = (p * a - q * beta) @ (p * weights.scores.value - q * implied.scores.value)
        return float(np.sqrt(max(float(mixed), 0.0)))

    own = float(np.ravel(point.b)[0]) if intercept is Intercept.FREE else placing.intercept
    # Σαy = 0 exactly after a move of so much: it changes ‖Σαyφ‖ by no more than this.
    moved = balance(alpha, signs, intercept) * implied.longest
    duals = Duals(alpha, infeasibility, Bounded(lengths[1].value, lengths[1].error + moved))
    plane = Plane(placing, weights.scores.error, own, lengths[0])
    certificate = assembled(plane, duals, apart, keep_intercept=keep_intercept)
    return doubted(certificate, kernel, prepared, problem.gram.prepared.dtype)
