"""Primal and dual points of a problem: duals made feasible, and the best intercept for scores."""

from functools import partial

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.data.blocks import RowsInMemory
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.rounding import EPS, total

_BALANCED = 64 * EPS  # of the duals: sums that are off by no more are left as they are
_AT_BOUND = 1e-9  # duals within this part of the largest of their bound are taken to be there
_SNAPPED = 1e-12  # of the distance of its bounds, by which a dual may miss one through rounding
_MANY = 500  # points between pieces, of which those near the best known intercept come first
_FIRST_STEP, _LONGER, _STEPS = 1e-6, 100.0, 5  # from where the best intercept is looked for
_MANY_ROWS = 1 << 16  # whose slopes are summed in threads
_FLAT = 1e-12  # a slope below this part of all slopes is rounding of sums


def best_intercept(loss: Loss, scores: Floats, near: float, pull: float = 0.0) -> float:
    """Return the b that minimises Σ ℓ(s + b) + pull·b: the middle one where there are several.

    The sum is convex and piecewise linear or quadratic; its slope is found at the median of the
    points between pieces that are left until none is. Those around ``near`` come first.
    """
    total = _Total(loss, loss.target - scores, pull)
    slopes = total.slopes(near)[2]
    tiny = _FLAT * max(slopes if np.isfinite(slopes) else 0.0, 1e-300)
    left, right, inside = -np.inf, np.inf, total.kinks
    if len(inside) > _MANY:
        left, right = _bracket(total, near, tiny)
        total = total.between(left, right)
        inside = total.kinks[(total.kinks > left) & (total.kinks < right)]
    while len(inside):
        middle = float(np.partition(inside, len(inside) // 2)[len(inside) // 2])
        before, after, _ = total.slopes(middle)
        if after < -tiny:
            left = middle
        elif before > tiny:
            right = middle
        else:
            return _middle_of_flat(total, middle, tiny)
        inside = inside[(inside > left) & (inside < right)]
    return _root_between(total, left, right)


def _bracket(total: "_Total", near: float, tiny: float) -> tuple[float, float]:
    """Return two points with the best b between them, not much further apart than it is away."""
    before, after, _ = total.slopes(near)
    if not (after < -tiny or before > tiny):
        kinks = total.kinks
        return kinks[kinks < near].max(initial=-np.inf), kinks[kinks > near].min(initial=np.inf)
    sign, last, step = 1.0 if after < -tiny else -1.0, near, _FIRST_STEP * max(1.0, abs(near))
    for _ in range(_STEPS):
        further = last + sign * step
        before, after, _ = total.slopes(further)
        if sign * (before if sign > 0 else after) > tiny:
            return min(last, further), max(last, further)
        if not sign * (after if sign > 0 else before) < -tiny:
            break
        last, step = further, step * _LONGER
    return (last, np.inf) if sign > 0 else (-np.inf, last)


class _Total:
    """Σ ℓ(s + b) as a function of b: each row pulls b up from below ``up``, down from above."""

    def __init__(self, loss: Loss, residual: Floats, pull: float) -> None:
        self.residual = residual
        self.up, self.down = residual - loss.epsilon, residual + loss.epsilon
        kinks = [self.up[loss.high > 0], self.down[loss.low < 0]]
        if loss.quadratic.any():
            # Where a curved loss meets a bound of its dual its slope is constant again.
            for begin, bound in ((self.up, loss.high), (self.down, loss.low)):
                ends = (loss.quadratic > 0) & np.isfinite(bound) & (bound != 0)
                kinks.append(begin[ends] - loss.quadratic[ends] * bound[ends])
        self.kinks = np.concatenate(kinks)
        self.loss, self.pull = loss, pull
        self.known: dict[float, list[float]] = {}

    def slopes(self, b: float) -> tuple[float, float, float]:
        """Return the left and the right derivative, and the sum of all pulls on b."""
        if b not in self.known:
            loss, count = self.loss, len(self.up)
            sums = partial(
                loops.loss.slopes, self.up, self.down, loss.low, loss.high, loss.quadratic, b
            )
            many = count >= _MANY_ROWS
            parts = RowsInMemory(self.up).map(sums, 5 * count) if many else [sums(0, count)]
            self.known[b] = np.array(parts).sum(axis=0).tolist()
        left, right, pulls = self.known[b]
        return left + self.pull, right + self.pull, pulls

    def between(self, left: float, right: float) -> "_Total":
        """Return the same for b from one point to another: rows without a kink there only pull."""
        loss, (_, pull, pulls) = self.loss, self.slopes(left)
        if not np.isfinite(right - left) or not np.isfinite(pulls) or loss.quadratic.any():
            return self
        some = np.flatnonzero(
            ((self.up >= left) & (self.up <= right)) | ((self.down >= left) & (self.down <= right))
        )
        few = _Total(loss.take(some), self.residual[some], 0.0)
        few.pull = pull - few.slopes(left)[1]
        return few


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
    """Return where the slope, linear between neighbouring kinks, is 0; the middle if all of it is.

    Of a stretch without end, that is the end it has.
    """
    begin = left if np.isfinite(left) else right - 1.0
    end = right if np.isfinite(right) else begin + 1.0
    low, high = total.slopes(begin)[1], total.slopes(end)[0]
    if high > low:
        return float(np.clip(begin - low * (end - begin) / (high - low), begin, end))
    if np.isfinite(left) and np.isfinite(right):
        return 0.5 * (left + right)
    return left if np.isfinite(left) else right


# ------------------------------------------------------------------- feasible duals


def feasible_start(loss: Loss, groups: Ints, totals: Floats) -> Floats:
    """Return feasible duals: 0, or the first variables of each group sum to its total."""
    beta = np.zeros(len(loss.target))
    for g in np.flatnonzero(totals):
        members, wanted = np.flatnonzero(groups == g), totals[g]
        bound = loss.high[members] if wanted >= 0 else -loss.low[members]
        before = np.cumsum(bound) - bound
        beta[members] = np.sign(wanted) * np.clip(abs(wanted) - before, 0.0, bound)
    return beta


def within_groups(loss: Loss, beta: Floats, groups: Ints, totals: Floats) -> tuple[Floats, float]:
    """Return β clipped to its box with the right sum in every group; and the change.

    Where the sum is too large in one direction, by more than rounding, the variables of that
    direction are scaled down; where there is nothing to scale down they share in the slack that is
    left.
    """
    size = float(np.abs(beta).sum())
    finite = beta if np.isfinite(size) else np.nan_to_num(beta, posinf=0.0, neginf=0.0)
    clipped = np.minimum(np.maximum(finite, loss.low), loss.high)
    for g, wanted in enumerate(totals):
        own = groups == g
        members = slice(None) if own.all() else np.flatnonzero(own)
        low, high = loss.low[members], loss.high[members]
        clipped[members] = _summing_to(float(wanted), clipped[members], low, high)
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / size if size > 0 else float(change > 0)


def _summing_to(wanted: float, beta: Floats, low: Floats, high: Floats) -> Floats:
    excess = total(beta).value - wanted
    sign = 1.0 if excess > 0 else -1.0
    heavier = sign * beta > 0
    weight, others = float(np.abs(beta[heavier]).sum()), float(np.abs(beta[~heavier]).sum())
    if abs(excess) <= _BALANCED * (weight + others):
        return beta  # scaling would move duals off their bounds to mend mere rounding
    if weight * (1 + _BALANCED) >= abs(excess):  # both are rounded sums
        beta[heavier] *= max(sign * wanted + others, 0.0) / weight
        return beta
    slack = beta - low if excess > 0 else high - beta
    finite = float(slack.sum())
    if np.isfinite(finite) and finite > 0:
        beta -= sign * slack * min(1.0, abs(excess) / finite)
    return beta


def snapped(x: Floats, low: Floats, high: Floats) -> Floats:
    """Return x within its limits, and at a limit where rounding alone keeps it from that.

    It would pass for free otherwise, and set the intercept.
    """
    near = _SNAPPED * (high - low)
    near[~np.isfinite(near)] = 0.0
    return np.where(x >= high - near, high, np.where(x <= low + near, low, x))


def imbalances(beta: Floats, groups: Ints, totals: Floats) -> Floats:
    """Return by how much, at most, the sum of each group is not what it should be."""
    off = np.zeros(len(totals))
    for g, wanted in enumerate(totals):
        own = groups == g
        members = beta if own.all() else beta[own]
        summed = total(np.append(members, -wanted) if wanted else members)
        off[g] = abs(summed.value) + summed.error
    return off


def by_variable(groups: Ints, b: Floats) -> Floats:
    """Return the intercept of each variable: 0 for those in no group."""
    return np.asarray(np.append(b, 0.0)[groups])


def kkt_violation(loss: Loss, scores: Floats, beta: Floats, largest: float) -> float:
    """Return by how much, at worst, a residual t − f is outside what its β allows.

    ``largest`` is the largest |β| of all, by which it is decided what is at a bound.
    """
    near = _AT_BOUND * largest
    lower, upper = losses.allowed_residuals(loss, beta, near)
    residual = loss.target - scores
    outside = np.maximum(lower - residual, residual - upper)
    return float(np.max(outside, initial=0.0))
