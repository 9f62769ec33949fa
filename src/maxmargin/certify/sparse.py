"""Certificates of linear machines with an ℓ1 or elastic-net penalty.

    P(w) = ratio·‖w‖₁ + (1 − ratio)/2·‖w‖² + Σ ℓᵢ(w·xᵢ + b)
    D(β) = Σ tβ − slope|β| − ½ shift β² − Σⱼ max(|vⱼ| − ratio, 0)²/(2(1 − ratio)),    v = Xᵀβ

For ratio = 1 the last sum is the constraint |vⱼ| ≤ ratio: β is scaled down until it holds. A
penalized intercept b = lift·(weight of a column of value lift) is one more weight, and one more v.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin.certify.arithmetic import (
    Dual,
    Primal,
    assembled,
    feasible,
    imbalances,
)
from maxmargin.certify.certificate import Certificate
from maxmargin.certify.linear import Seen, imbalance_cost
from maxmargin.certify.rounding import EPS, Bounded, Combination, squared_norm, total
from maxmargin.problem import Point, Problem

Floats = npt.NDArray[np.float64]

_UNBALANCED = 256  # ε: the part of the duals by which they may still be out of balance


class _Penalty(NamedTuple):
    l1: float
    l2: float

    def value(self, w: Floats, error: Floats) -> Bounded:
        """Return the penalty of weights."""
        sizes, squares = total(np.abs(w), error), squared_norm(w, error)
        value = self.l1 * sizes.value + 0.5 * self.l2 * squares.value
        return Bounded(value, self.l1 * sizes.error + 0.5 * self.l2 * squares.error + EPS * value)

    def conjugate(self, v: Floats, error: Floats) -> Bounded:
        """Return max over w of v·w − value(w), taking |v| ≤ l1 for granted where l2 is 0."""
        if self.l2 == 0:
            return Bounded(0.0, 0.0)
        excess = np.maximum(np.abs(v) - self.l1, 0.0)
        off = np.where(np.abs(v) + error > self.l1, error + EPS * (np.abs(v) + self.l1), 0.0)
        squares = squared_norm(excess, off)
        return Bounded(0.5 * squares.value / self.l2, 0.6 * squares.error / self.l2)

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
    penalty = _Penalty(problem.l1_ratio, 1.0 - problem.l1_ratio)
    seen = Seen.of(problem, point)
    beta, implied, infeasibility = _feasible(seen, penalty)
    # ``assembled`` takes half of these, as it would of squared norms.
    paid = penalty.value(seen.weights, seen.weights_error)
    owed = penalty.conjugate(implied.value, implied.error)
    groups, totals = seen.groups, np.zeros(int(seen.free))
    off = float(imbalances(beta, groups, totals).sum())
    dual = Dual(
        beta,
        infeasibility,
        Bounded(2 * owed.value, 2 * owed.error),
        penalty.drift(seen.weights, implied.value),
        imbalance_cost(problem, beta, implied, off) / (penalty.l2 or 1.0),
    )
    certificate = assembled(
        problem.terms, groups, totals,
        Primal(seen.scores, Bounded(2 * paid.value, 2 * paid.error), seen.b), dual,
        keep_intercept=keep_intercept, stored=seen.stored,
    )  # fmt: skip
    bound = certificate.distance_bound / np.sqrt(penalty.l2) if penalty.l2 > 0 else np.inf
    return replace(
        certificate,
        distance_bound=float(bound),
        intercept=seen.intercept(certificate),
        intercepts=(),
    )


def feasible_duals(problem: Problem, point: Point) -> Floats:
    """Return duals as the certificate takes them."""
    penalty = _Penalty(problem.l1_ratio, 1.0 - problem.l1_ratio)
    return _feasible(Seen.of(problem, point), penalty)[0]


def _feasible(seen: Seen, penalty: _Penalty) -> tuple[Floats, Combination, float]:
    """Return feasible duals with what they imply, and the change made.

    Where l2 is 0, no |v| may be above l1, also not by what it may be off.
    """
    beta, infeasibility = feasible(seen.problem.terms, seen.point.beta, seen.problem.intercept)
    implied = seen.combination(beta)
    off = implied.error + _UNBALANCED * EPS * implied.size
    largest = float((np.abs(implied.value) + off).max(initial=0.0))
    if penalty.l2 > 0 or largest <= penalty.l1:
        return beta, implied, infeasibility
    down = penalty.l1 / largest * (1 - 8 * EPS)
    scaled = Combination(*(down * part for part in implied))
    return down * beta, scaled, infeasibility + 1 - down
