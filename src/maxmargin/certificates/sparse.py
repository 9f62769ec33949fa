"""Certificates of linear machines with an ℓ1 or elastic-net penalty.

    P(w) = ratio·‖w‖₁ + (1 − ratio)/2·‖w‖² + Σ ℓᵢ(w·xᵢ + b)
    D(β) = Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − ratio, 0)²/(2(1 − ratio)),    v = Xᵀβ

For ratio = 1 the last sum is the constraint |vⱼ| ≤ ratio. Where rounding keeps it from holding,
free duals move by as little; otherwise β is scaled down until it does. A penalised intercept is the
weight of a constant feature: one more weight, and one more v.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.quadratic import Claim, Dual, LinearEvaluation, conclude, evaluate
from maxmargin.problems.duality import imbalances, within_groups
from maxmargin.problems.problem import Intercept, LinearProblem, Point
from maxmargin.problems.rounding import (
    EPS,
    Bounded,
    Combination,
    exact_sum,
    squared_norm,
    total,
)

_TRIES = 12  # to scale duals down until they are feasible as they are stored
_PULLS = 2  # of free duals, before that
_WORTH_PULLING = 1e-11  # part of D that scaling down would lose, with the slack that it leaves
_NEAR = 64 * EPS  # of Σ|βx|: v that are so near to their limit are kept from it
_MOST_PULLED = 1000  # columns
_MOST_EXACT = 2 * 10**7  # products that are summed exactly: seconds


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


def certify_sparse(
    problem: LinearProblem, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, Floats]:
    """Return the certificate of a point (w, b, beta) if l1_ratio > 0, and its feasible duals.

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    penalty = _Penalty(problem.l1_ratio, 1.0 - problem.l1_ratio)
    evaluated, beta, implied, infeasibility = _feasible(problem, point, penalty)
    # ``conclude`` takes half of these, as it would of squared norms.
    paid = penalty.value(evaluated.weights, evaluated.weights_error)
    owed = penalty.conjugate(implied.value, implied.error)
    off = imbalances(problem.loss, beta, problem.groups, problem.totals)
    evaluated = replace(evaluated, beta=beta, implied=implied)
    dual = Dual(
        infeasibility,
        Bounded(2 * owed.value, 2 * owed.error),
        penalty.drift(evaluated.weights, implied.value),
        evaluated.imbalance_cost(off) / (penalty.l2 or 1.0),
    )
    twice = Bounded(2 * paid.value, 2 * paid.error)
    certificate = conclude(evaluated, twice, dual, keep_intercept=keep_intercept)
    bound = certificate.distance_bound / np.sqrt(penalty.l2) if penalty.l2 > 0 else np.inf
    return replace(certificate, distance_bound=float(bound)), beta


def _feasible(
    problem: LinearProblem, point: Point, penalty: _Penalty
) -> tuple[LinearEvaluation, Floats, Combination, float]:
    """Return the point, feasible duals with what they imply, and the change made.

    Where l2 is 0, no |v| may be above l1, also not by what it may be off.
    """
    beta, infeasibility = within_groups(problem.loss, point.beta, problem.groups, problem.totals)
    if penalty.l2 > 0:
        evaluated = _evaluate(problem, point, beta)
        return evaluated, beta, evaluated.implied, infeasibility
    beta = _rebalance(problem, beta)
    evaluated = _evaluate(problem, point, beta)
    implied, margin = evaluated.implied, 8 * EPS
    for tried in range(_TRIES):
        implied = _sharpened(problem, beta, implied, penalty)
        off = implied.error + _unbalanced(problem, beta) * implied.size
        largest = float((np.abs(implied.value) + off).max(initial=0.0))
        if largest <= penalty.l1:
            return evaluated, beta, implied, infeasibility
        lost = largest / penalty.l1 - 1 + 2 * EPS * float(implied.size.max())
        if tried < _PULLS and lost > _WORTH_PULLING:
            pulled = _rebalance(problem, _pulled_in(problem, beta, implied, penalty))
            infeasibility += float(np.abs(pulled - beta).sum() / np.abs(beta).sum())
            beta, evaluated = pulled, _evaluate(problem, point, pulled)
            implied = evaluated.implied
            continue
        # Scaled duals are rounded, and what they imply changes with that: leave ever more slack.
        down = penalty.l1 / largest * (1 - margin)
        margin = min(4 * margin + 2 * EPS * float(implied.size.max()), 0.5)
        scaled = down * beta
        beta = _rebalance(problem, scaled)
        value, error, size = (down * part for part in implied)
        error = error + 4 * EPS * size + _moved(evaluated, beta - scaled)
        implied = Combination(value, error, size)
        infeasibility += 1 - down
    none = np.zeros(len(beta))
    return _evaluate(problem, point, none), none, Combination(*np.zeros((3, len(size)))), 1.0


def _evaluate(problem: LinearProblem, point: Point, beta: Floats) -> LinearEvaluation:
    evaluated: LinearEvaluation = evaluate(problem.features, [Claim(problem, point, beta)])[0]
    return evaluated


def _rebalance(problem: LinearProblem, beta: Floats) -> Floats:
    """Return duals of which one has taken up what rounding left of Σβ: a small one rounds least."""
    if problem.intercept is not Intercept.FREE:
        return beta
    rest, size = math.fsum(beta.tolist()), np.abs(beta)
    inside = (beta - rest > problem.loss.low) & (beta - rest < problem.loss.high)
    free = np.flatnonzero(inside & (size > 2 * abs(rest)))
    if rest and len(free):
        beta = beta.copy()
        beta[free[size[free].argmin()]] -= rest
    return beta


def _pulled_in(
    problem: LinearProblem, beta: Floats, implied: Combination, penalty: _Penalty
) -> Floats:
    """Return duals of which some free ones have moved until rounding leaves no |v| above l1.

    To scale all duals down loses the part of D by which |v| is off: much of it where columns are
    of 1e8. To pull v in by as much loses that times the weight of the column, which is small then.
    """
    size, l1, loss = implied.size, penalty.l1, problem.loss
    at = np.flatnonzero(np.abs(implied.value) + _NEAR * size > l1)
    aim = np.minimum(np.abs(implied.value), l1 - 4 * EPS * size) * np.sign(implied.value)
    room = np.minimum(np.minimum(beta - loss.low, loss.high - beta), np.abs(beta))
    if len(at) > _MOST_PULLED or not room.any():
        return beta
    rows = np.argsort(-room)[: 4 * len(at) + 50]
    X, room = problem.features.X[rows], room[rows]
    X = np.asarray(X.todense() if sp.issparse(X) else X, np.float64)
    X = np.column_stack([X, np.full(len(rows), problem.features.constant)])[:, at] / size[at]
    wanted = (aim - implied.value)[at] / size[at]
    if problem.intercept is Intercept.FREE:
        X, wanted = np.column_stack([X, np.full(len(rows), 1 / room.sum())]), np.append(wanted, 0.0)
    parts = np.linalg.lstsq(X.T * room, wanted, rcond=None)[0]
    pulled = beta.copy()
    if (np.abs(parts) < 1).all():
        pulled[rows] += room * parts
    return pulled


def _moved(evaluated: LinearEvaluation, change: Floats) -> Floats:
    """Return how far, at most, a change of one dual moves what duals imply."""
    move = np.zeros(len(evaluated.implied.value))
    for i in np.flatnonzero(change):
        row = evaluated.problem.features.X[[i]]
        row = np.ravel(row.toarray() if sp.issparse(row) else row) - evaluated.centre
        move[: len(row)] += 1.01 * abs(change[i]) * np.abs(row)
    return move


def _unbalanced(problem: LinearProblem, beta: Floats) -> float:
    """Return the part of the duals by which they may still be out of balance."""
    if problem.intercept is not Intercept.FREE:
        return 0.0
    rest = abs(math.fsum(beta.tolist()))
    lighter = min(float(beta[beta > 0].sum()), -float(beta[beta < 0].sum()))
    return 1.01 * rest / lighter if lighter > 0 else 0.0


def _sharpened(
    problem: LinearProblem, beta: Floats, implied: Combination, penalty: _Penalty
) -> Combination:
    """Return what duals imply with exact sums where rounding might put it out of range."""
    value, error = implied.value.copy(), implied.error.copy()
    X, constant, d = problem.features.X, problem.features.constant, problem.features.X.shape[1]
    columns = np.flatnonzero((np.abs(value) + error > penalty.l1)[:d])
    rows = np.flatnonzero(beta)
    if len(columns) * len(rows) > _MOST_EXACT:
        return implied
    some = X[rows][:, columns].astype(np.float64)
    if sp.issparse(some):
        some = some.tocsc()
    for k, j in enumerate(columns):
        if sp.issparse(some):
            entries = slice(some.indptr[k], some.indptr[k + 1])
            value[j] = exact_sum(0.0, some.data[entries], beta[rows[some.indices[entries]]])
        else:
            value[j] = exact_sum(0.0, some[:, k], beta[rows])
        error[j] = EPS * abs(value[j])
    if constant:
        value[d] = constant * math.fsum(beta.tolist())
        error[d] = EPS * abs(value[d])
    return Combination(value, error, implied.size)
