"""The best intercept for given scores: the exact minimum of a convex piecewise function of b."""

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.loops.records import Terms

Floats = npt.NDArray[np.float64]

_FLAT = 1e-12  # a slope below this part of all slopes is none: rounding of sums


def best_intercept(terms: Terms, scores: Floats, near: float) -> float:
    """Return the b that minimises Σ ℓ(s + b): the middle one where there are several.

    The sum is convex and piecewise linear or quadratic; its slope is found at the median of the
    kinks that are left until none is.
    """
    total = _slope_scale(terms, scores + near)
    residual = terms.target - scores
    kinks = np.concatenate([residual[terms.high > 0] - terms.slope,
                            residual[terms.low < 0] + terms.slope])  # fmt: skip
    left, right = -np.inf, np.inf
    inside = kinks
    while len(inside):
        middle = float(np.partition(inside, len(inside) // 2)[len(inside) // 2])
        before, after = _slopes(terms, residual - middle)
        if after < -_FLAT * total:
            left = middle
        elif before > _FLAT * total:
            right = middle
        else:
            return _middle_of_flat(kinks, middle, before, after, _FLAT * total)
        inside = inside[(inside > left) & (inside < right)]
    return _root_between(terms, residual, left, right)


def _middle_of_flat(kinks: Floats, at: float, before: float, after: float, tiny: float) -> float:
    """Return the middle of the kinks between which the sum does not change, given one of them."""
    right = kinks[kinks > at].min(initial=np.inf) if abs(after) <= tiny else at
    left = kinks[kinks < at].max(initial=-np.inf) if abs(before) <= tiny else at
    if not (np.isfinite(left) and np.isfinite(right)):
        return at
    return float(0.5 * (left + right))


def _root_between(terms: Terms, residual: Floats, left: float, right: float) -> float:
    """Return where the slope, linear between neighbouring kinks, is 0."""
    if not np.isfinite(left):
        left = right - 1.0
    if not np.isfinite(right):
        right = left + 1.0
    low, high = _slopes(terms, residual - left)[1], _slopes(terms, residual - right)[0]
    if high <= low:
        return 0.5 * (left + right)
    return float(np.clip(left - low * (right - left) / (high - low), left, right))


def _slopes(terms: Terms, residual: Floats) -> tuple[float, float]:
    """Return the left and right derivative in b of Σ ℓ, where t − f is the residual."""
    up, down = residual - terms.slope, -residual - terms.slope
    curved = terms.shift > 0
    scale = np.where(curved, terms.shift, 1.0)
    rising = np.where(curved, np.minimum(np.maximum(up, 0.0) / scale, terms.high), 0.0)
    falling = np.where(curved, np.minimum(np.maximum(down, 0.0) / scale, -terms.low), 0.0)
    smooth = float((falling - rising).sum())
    high, low = np.where(curved, 0.0, terms.high), np.where(curved, 0.0, terms.low)
    left = -float(high[up >= 0].sum()) - float(low[down > 0].sum())
    right = -float(high[up > 0].sum()) - float(low[down >= 0].sum())
    return smooth + left, smooth + right


def _slope_scale(terms: Terms, scores: Floats) -> float:
    total = float(np.abs(losses.best_duals(terms, scores)).sum())
    return max(total, 1e-300) if np.isfinite(total) else 1e-300
