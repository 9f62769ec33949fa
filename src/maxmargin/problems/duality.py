"""Primal and dual points of a problem: duals made feasible, and the best intercept for scores."""

from typing import Any

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems.rounding import EPS, sum_error, total

BALANCED = 64 * EPS  # of the duals: sums that are off by no more are left as they are
_LITTLE = 1e-9  # of the duals: sums that are off by no more are mended by free duals alone
_MOST_OF_ROOM = 0.5  # of the room that those have, at most
SNAPPED = 1e-12  # of its bound, and of the largest: rounding may keep a dual from a limit by that
NOTHING = 1e-11  # of terms that cancel: rounding leaves less than four digits of what is below


def best_intercept(loss: Loss, scores: Floats, near: float, pull: float = 0.0) -> float:
    """Return the b that minimises Σ ℓ(s + b) + pull·b: the middle one where there are several.

    The sum is convex and piecewise linear or quadratic. It is looked for around ``near`` first.
    """
    low, high, quadratic = loss.low, loss.high, loss.quadratic
    residual = loss.target - scores
    up, down = (
        residual - loss.epsilon,
        residual + loss.epsilon,
    )  # b is pulled up to up, down to down
    kinks = [up[high > 0], down[low < 0]]
    if quadratic.any():
        # Where a curved loss meets a bound of its dual its slope is constant again.
        for begin, bound in ((up, high), (down, low)):
            ends = (quadratic > 0) & np.isfinite(bound) & (bound != 0)
            kinks.append(begin[ends] - quadratic[ends] * bound[ends])
    every = np.concatenate(kinks)
    return float(loops.loss.best_intercept(up, down, low, high, quadratic, every, near, pull))


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


def within_groups(
    loss: Loss, beta: Floats, groups: Ints, totals: Floats, *, by_free: bool = False
) -> tuple[Floats, float]:
    """Return β clipped to its box with the right sum in every group; and the change.

    Where the sum is too large in one direction, by more than rounding, the variables of that
    direction are scaled down, or those between 0 and a bound make up for it alone, if ``by_free``
    and it is little. The same where there is nothing to scale down, or else all share in the slack.
    """
    sums, inside = _group_sums(loss, beta, groups, totals)
    if inside and (np.abs(sums[0] + sums[1]) <= BALANCED * sums[2]).all():
        return beta.copy(), 0.0  # scaling would move duals off their bounds to mend mere rounding
    size = float(np.abs(beta).sum())
    finite = beta if np.isfinite(size) else np.nan_to_num(beta, posinf=0.0, neginf=0.0)
    clipped = np.minimum(np.maximum(finite, loss.low), loss.high)
    for g, wanted in enumerate(totals):
        members = np.flatnonzero(groups == g)
        low, high = loss.low[members], loss.high[members]
        clipped[members] = _summing_to(float(wanted), clipped[members], low, high, by_free)
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / size if size > 0 else float(change > 0)


def _group_sums(loss: Loss, beta: Floats, groups: Ints, totals: Floats) -> tuple[Floats, bool]:
    """Return Σβ less what it should be, what that rounds off, and Σ|β|; whether β is in its box."""
    sums = np.zeros((3, len(totals)))
    sums[0] -= totals
    return sums, bool(loops.rounding.sum_groups(loss.low, loss.high, beta, groups, sums))


def _summing_to(wanted: float, beta: Floats, low: Floats, high: Floats, by_free: bool) -> Floats:
    excess = total(beta).value - wanted
    sign = 1.0 if excess > 0 else -1.0
    heavier = sign * beta > 0
    weight, others = float(np.abs(beta[heavier]).sum()), float(np.abs(beta[~heavier]).sum())
    if abs(excess) <= BALANCED * (weight + others):
        return beta
    # What is 0 or at a bound stays there, as long as what is free has room.
    size, end = np.abs(beta), low if excess > 0 else high
    room = np.where(heavier, size, np.minimum(size, np.abs(end - beta)))
    room[(beta == low) | (beta == high)] = 0.0
    free, scalable = float(room.sum()), weight * (1 + BALANCED) >= abs(excess)  # rounded sums
    little = by_free and abs(excess) <= _LITTLE * (weight + others)
    if (little or not scalable) and abs(excess) <= _MOST_OF_ROOM * free:
        return np.asarray(beta - sign * room * (abs(excess) / free))
    if scalable:
        beta[heavier] *= max(sign * wanted + others, 0.0) / weight
        return beta
    slack = beta - low if excess > 0 else high - beta
    finite = float(slack.sum())
    if np.isfinite(finite) and finite > 0:
        beta -= sign * slack * min(1.0, abs(excess) / finite)
    return beta


def snapped(x: Floats, low: Floats, high: Floats) -> Floats:
    """Return x within its limits, and at a limit or 0 where rounding alone keeps it from that.

    It would pass for free otherwise, and set the intercept.
    """
    x = np.minimum(np.maximum(x, low), high)
    size, bound = np.abs(x), np.where(x > 0, high, low)
    near = SNAPPED * np.minimum(np.abs(bound), size.max(initial=0.0))
    return np.where(size <= near, 0.0, np.where(size >= (1 - SNAPPED) * np.abs(bound), bound, x))


def size_of_terms(sizes: Floats, lengths: Floats) -> float:
    """Return ½(Σ|β|‖φ‖)², what ½‖Σβφ‖² would be if nothing cancelled."""
    return 0.5 * float(sizes @ lengths) ** 2


def imbalances(loss: Loss, beta: Floats, groups: Ints, totals: Floats) -> Floats:
    """Return by how much, at most, the sum of each group is not what it should be."""
    (found, lost, size), _ = _group_sums(loss, beta, groups, totals)
    return imbalance(found + lost, size + np.abs(totals), len(beta) + 1)


def imbalance(found: Any, size: Any, terms: int) -> Floats:
    """Return what a sum of numbers that should be 0 is at most, given what was found, and Σ| |."""
    return np.asarray(np.abs(found) + sum_error(found, size, 0.0, terms, size > 0))
