"""The proof that comes with a solution: bounds on the optimum from either side.

Everything is recomputed in float64 from the data, the weights and the duals; nothing a solver says
is taken on trust, and no solver is imported.

    P(w)  the objective at w, minimised over b: no optimum is higher
    D(β)  the dual objective at β made feasible: no optimum is lower

so P − D bounds how far w is from optimal, and ‖w − w*‖ ≤ √(2(P − D)/μ) as the penalty contains
½μ‖w‖² (μ = 1, or 1 − l1_ratio; none for an ℓ1 penalty alone).
"""

from dataclasses import replace

import numpy as np

from maxmargin.certify.certificate import Certificate, together
from maxmargin.certify.hard import certify_hard
from maxmargin.certify.kernel import certify_kernel
from maxmargin.certify.kernel_hard import certify_kernel_hard
from maxmargin.certify.linear import certify as certify_ridge
from maxmargin.certify.multiclass import certify_multiclass
from maxmargin.certify.sparse import certify_sparse
from maxmargin.loops.records import Terms
from maxmargin.problem import KernelProblem, MulticlassProblem, Point, Problem

__all__ = ["Certificate", "certify", "together"]


def certify(
    problem: Problem | MulticlassProblem | KernelProblem,
    point: Point,
    *,
    keep_intercept: bool = False,
) -> Certificate:
    """Return the certificate of a point (w, b, beta), whatever the problem.

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    if isinstance(problem, KernelProblem):
        if _is_hard(problem.terms):
            return _kept(certify_kernel_hard(problem, point), keep_intercept)
        return certify_kernel(problem, point, keep_intercept=keep_intercept)
    if isinstance(problem, MulticlassProblem):
        return certify_multiclass(problem, point.w, np.atleast_1d(point.b), point.beta)
    if _is_hard(problem.terms):
        signs = problem.terms.target
        hard = certify_hard(
            problem.X, signs, point.w, point.b, signs * point.beta, problem.intercept
        )
        return _kept(hard, keep_intercept)
    by_penalty = certify_sparse if problem.l1_ratio > 0 else certify_ridge
    return by_penalty(problem, point, keep_intercept=keep_intercept)


def _is_hard(terms: Terms) -> bool:
    return not terms.shift.any() and bool(np.isinf(terms.high - terms.low).all())


def _kept(hard: Certificate, keep_intercept: bool) -> Certificate:
    """Return the certificate with the primal at the plane's own intercept, if that is kept."""
    return replace(hard, primal=hard.primal + hard.intercept_cost) if keep_intercept else hard
