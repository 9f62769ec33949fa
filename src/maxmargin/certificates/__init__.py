"""The proof that comes with a solution: bounds on the optimum from either side.

Everything is recomputed from the data, the weights and the duals; nothing a solver says is taken on
trust, and no solver is imported. Every sum comes with a bound on its rounding error, so that what
is proved holds in exact arithmetic. It is computed in float64, but for scores of rows that float32,
with such a bound, shows to be beyond the margin: these cost nothing, whatever their last digits.

    P(w)  the objective at w, minimised over b: no optimum is higher
    D(β)  the dual objective at β made feasible: no optimum is lower

so P − D bounds how far w is from optimal, and ‖w − w*‖ ≤ √(2(P − D)/μ) as the penalty contains
½μ‖w‖² (μ = 1, or 1 − l1_ratio; none for an ℓ1 penalty alone).
"""

from functools import singledispatch
from typing import Any

import numpy as np

from maxmargin.certificates.blocked import certify_blocked
from maxmargin.certificates.certificate import Certificate, together, unproved
from maxmargin.certificates.hard import certify_hard
from maxmargin.certificates.multiclass import certify_multiclass
from maxmargin.certificates.quadratic import certify_many
from maxmargin.certificates.sparse import certify_sparse
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import MulticlassProblem, Point

__all__ = ["Certificate", "certify", "certify_many", "certify_with_duals", "together", "unproved"]


def certify(problem: Any, point: Point, *, keep_intercept: bool = False) -> Certificate:
    """Return the certificate of a point (w, b, beta), whatever the problem.

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    return certify_with_duals(problem, point, keep_intercept=keep_intercept)[0]


@singledispatch
def certify_with_duals(
    problem: Any, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, Any]:
    """Return the certificate of a point, and the feasible duals that it is about.

    The problem's class decides how: a room that brings its own problem registers its certifier.
    """
    if problem.l1_ratio > 0:
        return certify_sparse(problem, point, keep_intercept=keep_intercept)
    loss = problem.loss
    if not loss.quadratic.any() and np.isinf(loss.high - loss.low).all():
        beta, _ = within_groups(loss, point.beta, problem.groups, problem.totals)
        return certify_hard(problem, point, keep_intercept=keep_intercept), beta
    [(certificate, evaluated)] = certify_many([problem], [point], keep_intercept=keep_intercept)
    return certificate, evaluated.beta


@certify_with_duals.register
def _(
    problem: MulticlassProblem, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, Any]:
    b = np.atleast_1d(point.b)
    return certify_multiclass(problem, point.w, b, point.beta, keep_intercept=keep_intercept)


certify_with_duals.register(BlockedProblem, certify_blocked)
