"""The sums of certificates, over rows and over dual variables, with what bounds their rounding.

Where bounds count on it, operations are made as they are written (``compiled_as_written``). Long
sums keep what each addition rounds off (Ogita, Rump & Oishi, 2005): such a sum of n numbers is off
by  ½ε|Σv| + (½nε)² Σ|v|  at most, but for products of these.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled, compiled_as_written
from maxmargin.loops.decomposition import add_rows
from maxmargin.loops.rows import row_shifted_axpy_size, row_shifted_dot_size

_EPS = float(np.finfo(np.float64).eps)


@compiled_as_written
def _plus(total: float, lost: float, value: float) -> Any:
    """Return a sum with one number more, and all that additions have rounded off."""
    more = total + value
    shown = more - total
    return more, lost + ((total - (more - shown)) + (value - shown))


@compiled_as_written
def add_up(values: Any, errors: Any) -> Any:
    """Return Σv, Σ|v|, Σ errors, and how many v are not 0."""
    total = lost = size = own = 0.0
    count = 0
    for k in range(values.shape[0]):
        total, lost = _plus(total, lost, values[k])
        size += abs(values[k])
        count += values[k] != 0.0
    for k in range(errors.shape[0]):
        own += errors[k]
    return total + lost, size, own, count


@compiled_as_written
def sum_groups(low: Any, high: Any, beta: Any, groups: Any, sums: Any) -> Any:
    """Set sums[0] to Σβ of each group, from what it is; return whether all β are within bounds.

    What additions round off is added up in sums[1], and Σ|β| in sums[2].
    """
    inside = True
    for k in range(beta.shape[0]):
        inside &= low[k] <= beta[k] <= high[k]
        g = groups[k]
        if g >= 0:
            sums[0, g], sums[1, g] = _plus(sums[0, g], sums[1, g], beta[k])
            sums[2, g] += abs(beta[k])
    return inside


@compiled_as_written
def bound_dual(loss: Any, beta: Any) -> Any:
    """Return Σ tβ − ε|β| − ½ quadratic β², the Σ| | of its terms, their errors, how many they are.

    Last comes max |β|.
    """
    total = lost = size = own = largest = 0.0
    count = 0
    for k in range(beta.shape[0]):
        if beta[k] == 0.0:
            continue
        gained, much = loss.target[k] * beta[k], abs(beta[k])
        paid = loss.epsilon * much + 0.5 * loss.quadratic[k] * beta[k] * beta[k]
        total, lost = _plus(total, lost, gained - paid)
        size += abs(gained - paid)
        own += 4.0 * _EPS * (abs(gained) + paid)
        largest = max(largest, much)
        count += 1
    return total + lost, size, own, count, largest


# ------------------------------------------------------------------- passes over rows


@compiled
def weigh(
    X: Any, i: Any, end: Any, most: Any, centre: Any, w: Any, beta: Any, scores: Any, sizes: Any,
    value: Any, size: Any,
) -> Any:  # fmt: skip
    """Set the scores (x − centre)·w of rows i…, add up β(x − centre), and both of absolute values.

    Return the row to go on from, and how many rows had a β that is not 0: it stops after ``most``.
    """
    added = 0
    while i < end and added < most:
        scores[i], sizes[i] = row_shifted_dot_size(X, i, centre, w)
        if beta[i] != 0.0:
            row_shifted_axpy_size(X, i, centre, beta[i], value, size)
            added += 1
        i += 1
    return i, added


@compiled
def multiply_halves(first: Any, cross: Any, second: Any, used: Any, weights: Any, runs: Any,
                    sums: Any) -> None:  # fmt: skip
    """Do sums[c] += Σ weights[c, j]·(row used[j] of a symmetric matrix), given by its blocks.

    ``cross`` is the block between the two runs of rows that the others, on the diagonal, belong to.
    ``used`` is ascending, and ``runs`` are all columns of either of those (see ``add_rows``).
    """
    cut = first.shape[0]
    count = inner = used.shape[0]
    while inner > 0 and used[inner - 1] >= cut:
        inner -= 1
    above, below = used[:inner], used[inner:] - cut
    for c in range(sums.shape[0]):
        left, right, own = sums[c, :cut], sums[c, cut:], weights[c, :inner]
        add_rows(first, above, own, runs[:1], left)
        add_rows(cross, above, own, runs[1:], right)
        add_rows(second, below, weights[c, inner:], runs[1:], right)
        for i in range(cut):
            row, total = cross[i], 0.0
            for j in range(inner, count):
                total += weights[c, j] * row[below[j - inner]]
            left[i] += total


# ------------------------------------------------------------------- losses
#
# A score is off by its own error, by the rounding of its sum with the intercept, and by that of the
# residual. ``stored`` is what a model of a ν-form is off by, as it is divided by its margin first.


@compiled_as_written
def _off(target: float, score: float, offset: float, error: float, stored: float) -> float:
    """Return what a residual is off by, given a score and the intercept that is added to it."""
    moved = score + offset
    off = error + _EPS * abs(target - moved) + stored * (abs(moved) + abs(offset))
    return off + _EPS * abs(moved) if score != 0.0 and offset != 0.0 else off


@compiled_as_written
def _side(excess: float, bound: float, quadratic: float) -> float:
    """Return max over 0 ≤ β ≤ bound of β·excess − ½ quadratic β²."""
    if not (excess > 0.0 and bound > 0.0):
        return 0.0 if excess == excess else excess
    if quadratic > 0.0:
        beta = min(bound, excess / quadratic)
        return beta * (excess - 0.5 * quadratic * beta)
    return bound * excess


@compiled_as_written
def _slope(reach: float, bound: float, quadratic: float) -> float:
    """Return the largest slope of a side that reaches so far beyond its kink."""
    if not reach > 0.0:
        return 0.0 if reach == reach else reach
    return min(bound, reach / quadratic) if quadratic > 0.0 else bound


@compiled_as_written
def _steepest(low: float, high: float, quadratic: float, epsilon: float, residual: float,
              off: float) -> float:  # fmt: skip
    """Return the largest slope of a loss whose residual is known up to ``off``."""
    above, below = residual - epsilon + off, -residual - epsilon + off
    return _slope(above, high, quadratic) + _slope(below, -low, quadratic)


@compiled_as_written
def bound_losses(loss: Any, row: Any, groups: Any, b: Any, scores: Any, errors: Any, unknown: Any,
                 stored: float, beta: Any, near: float) -> Any:  # fmt: skip
    """Return Σℓ, its errors, how many ℓ are not 0, and the worst violation of KKT.

    b has one entry more, for variables in no group. ``unknown`` scores may be that much higher or
    lower: the larger loss counts. A β within ``near`` of a bound, or of the kink at 0, counts as
    being there.
    """
    total = lost = own = violation = 0.0
    count = 0
    for k in range(row.shape[0]):
        i, offset = row[k], b[groups[k]]
        target, low, high = loss.target[k], loss.low[k], loss.high[k]
        quadratic, epsilon = loss.quadratic[k], loss.epsilon
        off = _off(target, scores[i], offset, errors[i], stored)
        moved, much = scores[i] + offset, unknown[i]
        residual = target - (moved + much)
        value = _side(residual - epsilon, high, quadratic)
        value += _side(-residual - epsilon, -low, quadratic)
        if much > 0.0:
            other = target - (moved - much)
            value = max(value, _side(other - epsilon, high, quadratic)
                        + _side(-other - epsilon, -low, quadratic))  # fmt: skip
        residual = target - moved
        steep = _steepest(low, high, quadratic, epsilon, residual, much + off)
        if steep > 0.0 or value != 0.0:
            total, lost = _plus(total, lost, value)
            own += steep * off + 4.0 * _EPS * value
            count += value != 0.0
        curve = quadratic * beta[k]
        if beta[k] > low + near:
            violation = max(violation, curve + (epsilon if beta[k] > near else -epsilon) - residual)
        if beta[k] < high - near:
            upper = curve + (epsilon if beta[k] >= -near else -epsilon)
            violation = max(violation, residual - upper)
    return total + lost, own, count, violation


@compiled_as_written
def mark_losses(loss: Any, row: Any, groups: Any, b: Any, scores: Any, errors: Any, stored: float,
                found: Any) -> None:  # fmt: skip
    """Set ``found`` for rows whose loss may be other than 0, as far as scores are known."""
    for k in range(row.shape[0]):
        i, offset = row[k], b[groups[k]]
        off = _off(loss.target[k], scores[i], offset, errors[i], stored)
        residual = loss.target[k] - (scores[i] + offset)
        steep = _steepest(
            loss.low[k], loss.high[k], loss.quadratic[k], loss.epsilon, residual, off
        )  # fmt: skip
        if not steep <= 0.0:
            found[i] = True
