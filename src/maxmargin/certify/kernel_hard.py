"""Certificates of hard margins with a kernel: w = Σ aᵥ φ(xᵥ), by its coefficients.

    scores Ka,   ‖w‖² = aᵀKa,   P = ½‖w‖²/(min y f)²,   D = ½(Σα)²/‖Σαyφ‖²

as in ``certify.hard``. Kernel values are rounded, and so scores are known to no more than
c = ε·√K(x, x)·Σ|a|√K(xᵥ, xᵥ): a plane that separates by less is taken to separate nothing.
"""

import numpy as np
import numpy.typing as npt

from maxmargin.certify.certificate import Certificate
from maxmargin.certify.hard import Duals, assembled, feasible, placed_scores, refused
from maxmargin.certify.kernel import _doubted, _products
from maxmargin.problem import Intercept, KernelProblem, Point

Floats = npt.NDArray[np.float64]

_ROUNDINGS = 4  # of a kernel value, and of sums of them, beside ε


def certify_kernel_hard(problem: KernelProblem, point: Point) -> Certificate:
    """Return the certificate of a point (w, b, beta) for the hard margin with a kernel.

    Parameters
    ----------
    problem : KernelProblem
        With the terms of ``losses.hard_margin``, one variable a row, and one group or none.
    point : Point
        Coefficients w, intercept and duals, in any scale. A free intercept is replaced by the best
        one; what the given one would cost is ``intercept_cost``.

    Returns
    -------
    Certificate
        A plane that does not separate by more than rounding has an infinite objective and gap; a
        kernel that is not positive semidefinite has no bound.
    """
    signs, kernel = problem.terms.target, problem.gram.kernel
    intercept = Intercept.FREE if len(problem.totals) else Intercept.NONE
    alpha, infeasibility = feasible(signs * point.beta, signs, intercept)
    a, beta = np.asarray(point.w, dtype=np.float64), alpha * signs
    bound = problem.gram.exact[problem.rows]
    scores, implied = _products(kernel, bound, np.column_stack([a, beta])).T
    placing = placed_scores(scores, signs, intercept)
    if placing.smallest <= rounding(a, kernel.diag(bound), bound.dtype):
        caveat = "the plane does not separate the classes by more than rounding"
        return refused(placing, infeasibility, caveat)

    def apart(p: float, q: float) -> float:
        return _root((p * a - q * beta) @ (p * scores - q * implied))

    own = float(np.ravel(point.b)[0]) if intercept is Intercept.FREE else placing.intercept
    duals = Duals(alpha, infeasibility, _root(beta @ implied))
    certificate = assembled(placing, own, _root(a @ scores), duals, apart)
    return _doubted(certificate, kernel, bound)


def rounding(a: Floats, diagonal: npt.NDArray[np.floating], dtype: npt.DTypeLike) -> float:
    """Return how much of a score may be rounding of kernel values."""
    sizes = np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0))
    eps = float(np.finfo(np.dtype(dtype)).eps)
    return float(_ROUNDINGS * eps * sizes.max(initial=0.0) * (np.abs(a) @ sizes))


def _root(square: float) -> float:
    return float(np.sqrt(max(float(square), 0.0)))
