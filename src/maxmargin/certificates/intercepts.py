"""The best intercept for given scores: the exact minimum of a convex piecewise function of b."""

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.loops.records import Loss
from maxmargin.problems import losses

_FLAT = 1e-12  # a slope below this part of all slopes is none: rounding of sums


def best_intercept(loss: Loss, scores: Floats, near: float, pull: float = 0.0) -> float:
    """Return the b that minimises Σ ℓ(s + b) + pull·b: the middle one where there are several.

    The sum is convex and piecewise linear or quadratic; its slope is found at the median of the
    kinks that are left until none is.
    """
    tiny = _FLAT * _slope_scale(loss, scores + near)
    total = _Total(loss, scores, pull)
    left, right = -np.inf, np.inf
    inside = total.kinks
    while len(inside):
        middle = float(np.partition(inside, len(inside) // 2)[len(inside) // 2])
        before, after = total.slopes(middle)
        if after < -tiny:
            left = middle
        elif before > tiny:
            right = middle
        else:
            return _middle_of_flat(total, middle, tiny)
        inside = inside[(inside > left) & (inside < right)]
    return _root_between(total, left, right)


class _Total:
    """Σ ℓ(s + b) as a function of b: each row pulls b up from below ``up``, down from above."""

    def __init__(self, loss: Loss, scores: Floats, pull: float) -> None:
        residual = loss.target - scores
        self.up, self.down = residual - loss.epsilon, residual + loss.epsilon
        self.kinks = np.concatenate([self.up[loss.high > 0], self.down[loss.low < 0]])
        self.loss, self.pull = loss, pull

    def slopes(self, b: float) -> tuple[float, float]:
        """Return the left and the right derivative."""
        loss = self.loss
        left, right = loops.intercepts.slopes(
            self.up, self.down, loss.low, loss.high, loss.quadratic, b
        )
        return float(left) + self.pull, float(right) + self.pull


def _middle_of_flat(total: _Total, at: float, tiny: float) -> float:
    """Return the middle of the stretch on which the sum does not change, given a kink of it."""
    right = total.kinks[total.kinks > at].min(initial=np.inf)
    left = total.kinks[total.kinks < at].max(initial=-np.inf)
    # Between kinks the slope is linear: zeros just beside the one and the other make a flat.
    after = total.slopes(at)[1], total.slopes(min(right, at + 1.0))[0]
    before = total.slopes(at)[0], total.slopes(max(left, at - 1.0))[1]
    if max(map(abs, after)) > tiny:
        right = at
    if max(map(abs, before)) > tiny:
        left = at
    return float(0.5 * (left + right)) if np.isfinite(left) and np.isfinite(right) else at


def _root_between(total: _Total, left: float, right: float) -> float:
    """Return where the slope, linear between neighbouring kinks, is 0."""
    if not np.isfinite(left):
        left = right - 1.0
    if not np.isfinite(right):
        right = left + 1.0
    low, high = total.slopes(left)[1], total.slopes(right)[0]
    if high <= low:
        return 0.5 * (left + right)
    return float(np.clip(left - low * (right - left) / (high - low), left, right))


def _slope_scale(loss: Loss, scores: Floats) -> float:
    total = float(np.abs(losses.best_duals(loss, scores)).sum())
    return max(total, 1e-300) if np.isfinite(total) else 1e-300
