"""Losses as arrays: every loss is a maximum over a bounded dual variable (see ``Terms``).

    loss                 target   low … high          slope   shift
    hinge                y        0 … C (times y)     0       0
    squared hinge        y        0 … ∞ (times y)     0       1/2C
    hard margin          y        0 … ∞ (times y)     0       0
    ε-insensitive        t        −C … C              ε       0
    its square           t        −∞ … ∞              ε       1/2C

The dual variable carries the sign of the label, β = yα, so that w = Σβx for all of them. C may
differ from row to row: that is what weights are.
"""

import numpy as np
import numpy.typing as npt

from maxmargin.loops.records import Terms

Floats = npt.NDArray[np.float64]


def hinge(signs: Floats, cost: Floats) -> Terms:
    """Return C·max(0, 1 − y f) for labels y = ±1."""
    return _one_sided(signs, cost, np.zeros(len(signs)))


def squared_hinge(signs: Floats, cost: Floats) -> Terms:
    """Return C·max(0, 1 − y f)² for labels y = ±1."""
    return _one_sided(signs, np.full(len(signs), np.inf), 0.5 / cost)


def hard_margin(signs: Floats) -> Terms:
    """Return the constraint y f ≥ 1 as a loss: 0 where it holds, infinite elsewhere."""
    return _one_sided(signs, np.full(len(signs), np.inf), np.zeros(len(signs)))


def epsilon_insensitive(target: Floats, cost: Floats, epsilon: float) -> Terms:
    """Return C·max(0, |t − f| − ε)."""
    return Terms(target, -cost, cost, np.zeros(len(target)), float(epsilon))


def squared_epsilon_insensitive(target: Floats, cost: Floats, epsilon: float) -> Terms:
    """Return C·max(0, |t − f| − ε)²."""
    free = np.full(len(target), np.inf)
    return Terms(target, -free, free, 0.5 / cost, float(epsilon))


def _one_sided(signs: Floats, bound: Floats, shift: Floats) -> Terms:
    positive = signs > 0
    low = np.where(positive, 0.0, -bound)
    high = np.where(positive, bound, 0.0)
    return Terms(np.asarray(signs, dtype=np.float64), low, high, shift, 0.0)


def values(terms: Terms, scores: Floats) -> Floats:
    """Return the loss of each row."""
    residual = terms.target - scores
    return _side(residual - terms.slope, terms.high, terms.shift) + _side(
        -residual - terms.slope, -terms.low, terms.shift
    )


def _side(excess: Floats, bound: Floats, shift: Floats) -> Floats:
    """Return max over 0 ≤ β ≤ bound of β·excess − ½ shift β²."""
    value = np.zeros(len(excess))
    inside = (excess > 0) & (bound > 0)
    if not shift.any():
        return np.multiply(bound, excess, out=value, where=inside)
    beta = np.where(inside, bound, 0.0)
    np.minimum(beta, excess / np.where(shift > 0, shift, 1.0), out=beta, where=inside & (shift > 0))
    curved = 0.5 * shift * np.where(shift > 0, beta, 0.0)
    return np.multiply(beta, excess - curved, out=value, where=inside)


def steepest(terms: Terms, scores: Floats, off: Floats) -> Floats:
    """Return the largest slope of each loss where a score is known up to ``off``."""
    residual = terms.target - scores
    above, below = residual - terms.slope + off, -residual - terms.slope + off
    return _steepest(above, terms.high, terms.shift) + _steepest(below, -terms.low, terms.shift)


def _steepest(reach: Floats, bound: Floats, shift: Floats) -> Floats:
    slope = np.where(reach > 0, bound, 0.0)
    if shift.any():
        np.minimum(slope, reach / np.where(shift > 0, shift, 1.0), out=slope,
                   where=(reach > 0) & (shift > 0))  # fmt: skip
    return slope


def best_duals(terms: Terms, scores: Floats) -> Floats:
    """Return the β that attains each loss: minus its derivative in f (some choice at a kink)."""
    residual = terms.target - scores
    excess = np.sign(residual) * np.maximum(np.abs(residual) - terms.slope, 0.0)
    unbounded = np.where(excess == 0, 0.0, np.copysign(np.inf, excess))
    np.divide(excess, terms.shift, out=unbounded, where=terms.shift > 0)
    return np.clip(unbounded, terms.low, terms.high)


def dual_value(terms: Terms, beta: Floats) -> float:
    """Return Σ tβ − slope|β| − ½ shift β²: what the dual objective adds to −½‖w‖²."""
    each = terms.target * beta - terms.slope * np.abs(beta) - 0.5 * terms.shift * beta * beta
    return float(each.sum())


def allowed_residuals(terms: Terms, beta: Floats, near: float = 0.0) -> tuple[Floats, Floats]:
    """Return between what limits t − f must lie for β to be optimal.

    A β within ``near`` of a bound, or of the kink at 0, counts as being there.
    """
    curve = terms.shift * beta
    upper = curve + np.where(beta >= -near, terms.slope, -terms.slope)
    lower = curve + np.where(beta > near, terms.slope, -terms.slope)
    upper[beta >= terms.high - near] = np.inf
    lower[beta <= terms.low + near] = -np.inf
    return lower, upper


def residual_unit(terms: Terms) -> float:
    """Return the unit of residuals t − f: 1 for labels, the spread of the targets in regression."""
    if ((terms.low < 0) & (terms.high > 0)).any():
        return float(terms.target.std()) or 1.0
    return 1.0
