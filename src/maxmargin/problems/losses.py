"""Losses as arrays: every loss is a maximum over a bounded dual variable (see ``Loss``).

    loss                 target   low … high          ε       quadratic
    hinge                y        0 … C (times y)     0       0
    squared hinge        y        0 … ∞ (times y)     0       1/2C
    hard margin          y        0 … ∞ (times y)     0       0
    ε-insensitive        t        −C … C              ε       0
    its square           t        −∞ … ∞              ε       1/2C
    pinball              t        −C(1 − q) … Cq      0       0

The dual variable carries the sign of the label, β = yα, so that w = Σβx for all of them. C may
differ from row to row: that is what weights are.
"""

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.loops.records import Loss


def hinge(signs: Floats, cost: Floats) -> Loss:
    """Return C·max(0, 1 − y f) for labels y = ±1."""
    return _one_sided(signs, cost, np.zeros(len(signs)))


def squared_hinge(signs: Floats, cost: Floats) -> Loss:
    """Return C·max(0, 1 − y f)² for labels y = ±1."""
    return _one_sided(signs, np.full(len(signs), np.inf), 0.5 / cost)


def hard_margin(signs: Floats) -> Loss:
    """Return the constraint y f ≥ 1 as a loss: 0 where it holds, infinite elsewhere."""
    return _one_sided(signs, np.full(len(signs), np.inf), np.zeros(len(signs)))


def epsilon_insensitive(target: Floats, cost: Floats, epsilon: float) -> Loss:
    """Return C·max(0, |t − f| − ε)."""
    return Loss(target, -cost, cost, np.zeros(len(target)), float(epsilon))


def squared_epsilon_insensitive(target: Floats, cost: Floats, epsilon: float) -> Loss:
    """Return C·max(0, |t − f| − ε)²."""
    free = np.full(len(target), np.inf)
    return Loss(target, -free, free, 0.5 / cost, float(epsilon))


def pinball(target: Floats, cost: Floats, quantile: float) -> Loss:
    """Return C·q·(t − f) where t lies above f, and C·(1 − q)·(f − t) where it lies below."""
    none = np.zeros(len(target))
    return Loss(target, -(1.0 - quantile) * cost, quantile * cost, none, 0.0)


# By the names that estimators have for them.
CLASSIFYING = {"hinge": hinge, "squared_hinge": squared_hinge}
REGRESSING = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}


def _one_sided(signs: Floats, bound: Floats, quadratic: Floats) -> Loss:
    positive = signs > 0
    low = np.where(positive, 0.0, -bound)
    high = np.where(positive, bound, 0.0)
    return Loss(np.asarray(signs, dtype=np.float64), low, high, quadratic, 0.0)


def split_tube(loss: Loss) -> Loss:
    """Return the loss with two variables for each, one ≥ 0 and one ≤ 0, and no kink at 0."""
    target, low, high, quadratic, epsilon = loss
    return Loss(
        np.concatenate([target - epsilon, target + epsilon]),
        np.concatenate([np.maximum(low, 0.0), low]),
        np.concatenate([high, np.minimum(high, 0.0)]),
        np.tile(quadratic, 2),
        0.0,
    )


def values(loss: Loss, scores: Floats) -> Floats:
    """Return the loss of each row."""
    residual = loss.target - scores
    return _side(residual - loss.epsilon, loss.high, loss.quadratic) + _side(
        -residual - loss.epsilon, -loss.low, loss.quadratic
    )


def _side(excess: Floats, bound: Floats, quadratic: Floats) -> Floats:
    """Return max over 0 ≤ β ≤ bound of β·excess − ½ quadratic β²."""
    value = np.zeros(len(excess))
    inside = (excess > 0) & (bound > 0)
    if not quadratic.any():
        return np.multiply(bound, excess, out=value, where=inside)
    beta, curved = np.where(inside, bound, 0.0), quadratic > 0
    np.minimum(beta, excess / np.where(curved, quadratic, 1.0), out=beta, where=inside & curved)
    curve = 0.5 * quadratic * np.where(curved, beta, 0.0)
    return np.multiply(beta, excess - curve, out=value, where=inside)


def best_duals(loss: Loss, scores: Floats) -> Floats:
    """Return the β that attains each loss: minus its derivative in f (some choice at a kink)."""
    residual = loss.target - scores
    excess = np.sign(residual) * np.maximum(np.abs(residual) - loss.epsilon, 0.0)
    unbounded = np.where(excess == 0, 0.0, np.copysign(np.inf, excess))
    np.divide(excess, loss.quadratic, out=unbounded, where=loss.quadratic > 0)
    return np.clip(unbounded, loss.low, loss.high)


def dual_value(loss: Loss, beta: Floats) -> float:
    """Return Σ tβ − ε|β| − ½ quadratic β²: what the dual objective adds to −½‖w‖²."""
    each = loss.target * beta - loss.epsilon * np.abs(beta) - 0.5 * loss.quadratic * beta * beta
    return float(each.sum())


def residual_unit(loss: Loss) -> float:
    """Return the unit of residuals t − f: 1 for labels, the spread of the targets in regression."""
    if ((loss.low < 0) & (loss.high > 0)).any():
        return float(loss.target.std()) or 1.0
    return 1.0


# ------------------------------------------------------------------- kinds of support vectors


# Slack up to which a support vector counts as lying on the edge: of the margin, in units of f; of a
# tube, in spreads of the targets; of the region of a OneClassSVM, in units of ρ.
ON_EDGE = 1e-5


def support_kinds(slack: Floats, on_edge: float = ON_EDGE) -> npt.NDArray[np.str_]:
    """Return where support vectors of a classifier lie, by their slack ξ."""
    return np.select([slack <= on_edge, slack <= 1.0], ["margin", "inside"], "wrong side")
