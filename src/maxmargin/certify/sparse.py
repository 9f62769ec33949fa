"""Certificates of linear machines with an ℓ1 or elastic-net penalty.

    P(w) = ratio·‖w‖₁ + (1 − ratio)/2·‖w‖² + Σ ℓᵢ(w·xᵢ + b)
    D(β) = Σ tβ − slope|β| − ½ shift β² − Σⱼ max(|vⱼ| − ratio, 0)²/(2(1 − ratio)),    v = Xᵀβ

For ratio = 1 the last sum is the constraint |vⱼ| ≤ ratio: β is scaled down until it holds. A
penalized intercept b = lift·(weight of a column of value lift) is one more weight, and one more v.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.certify.arithmetic import feasible, kkt_violation
from maxmargin.certify.certificate import Certificate
from maxmargin.certify.intercepts import best_intercept
from maxmargin.certify.linear import _centre, _combination, _scores
from maxmargin.problem import Intercept, Point, Problem

Floats = npt.NDArray[np.float64]


class _Penalty(NamedTuple):
    l1: float
    l2: float

    def value(self, w: Floats) -> float:
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def conjugate(self, v: Floats) -> float:
        """Return max over w of v·w − value(w), taking |v| ≤ l1 for granted where l2 is 0."""
        excess = np.maximum(np.abs(v) - self.l1, 0.0)
        return 0.5 * float(excess @ excess) / self.l2 if self.l2 > 0 else 0.0

    def drift(self, w: Floats, v: Floats) -> float:
        """Return how far weights are from those the duals imply, relative to their size.

        Where l2 is 0 the duals imply no weights, but that v = ±l1 with the sign of each weight
        that is not 0: then it is the part of the penalty that the duals do not account for.
        """
        if self.l2 > 0:
            implied = np.sign(v) * np.maximum(np.abs(v) - self.l1, 0.0) / self.l2
            size, away = float(np.linalg.norm(w)), float(np.linalg.norm(w - implied))
        else:
            size = self.l1 * float(np.abs(w).sum())
            away = size - float(w @ v)
        return away / size if size > 0 else away


def certify_sparse(problem: Problem, point: Point, *, keep_intercept: bool = False) -> Certificate:
    """Return the certificate of a point (w, b, beta) for a problem with l1_ratio > 0.

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    terms, intercept = problem.terms, problem.intercept
    penalty = _Penalty(problem.l1_ratio, 1.0 - problem.l1_ratio)
    centre = _centre(problem)
    shift = float(centre @ point.w)  # w·x + b = w·(x − centre) + (b + shift)
    scores = _scores(problem.X, point.w, centre)
    b = 0.0 if intercept is Intercept.NONE else point.b + shift
    best = best_intercept(terms, scores, b) if intercept is Intercept.FREE else b
    own = b if keep_intercept else best
    weights, beta, v, infeasibility = _feasible(problem, point, penalty, centre)

    def objective(b: float) -> float:
        return penalty.value(weights) + float(losses.values(terms, scores + b).sum())

    value, least = objective(own), objective(best)
    bound = losses.dual_value(terms, beta) - penalty.conjugate(v)
    gap = max(min(value, least) - bound, 0.0)
    return Certificate(
        value,
        bound,
        infeasibility,
        penalty.drift(weights, v),
        kkt_violation(terms, scores + own, beta),
        float(np.sqrt(2 * gap / penalty.l2)) if penalty.l2 > 0 else np.inf,
        best - shift,
        intercept_cost=max(value - least, 0.0),
    )


def _feasible(
    problem: Problem, point: Point, penalty: _Penalty, centre: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Return all weights that are penalized, feasible duals with their v, and the change made."""
    beta, infeasibility = feasible(problem.terms, point.beta, problem.intercept)
    v = _combination(problem.X, beta, centre)
    weights = point.w
    if problem.intercept is Intercept.PENALIZED:
        v = np.append(v, problem.lift * float(beta.sum()))
        weights = np.append(weights, point.b / problem.lift)
    largest = float(np.abs(v).max(initial=0.0))
    if penalty.l2 > 0 or largest <= penalty.l1:
        return weights, beta, v, infeasibility
    down = penalty.l1 / largest
    return weights, down * beta, down * v, infeasibility + 1 - down
