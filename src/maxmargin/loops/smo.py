"""Sequential minimal optimisation on a block of variables, and what carries its result to all rows.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ fixed within each group

With r = t − Kβ − shift·β the derivative of the objective, two variables of a group can gain from
β(up) += δ, β(down) −= δ  as long as r(up) > r(down), up below its upper and down above its lower
bound. Fan, Chen & Lin (JMLR 2005) choose the pair by its gain to second order. The reductions have
no branches: closed directions are moved out of the way by ±1e300, so that LLVM vectorises them.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled

FAR = 1e300
LEAST_CURVATURE = 1e-12


# Reductions over floats are not vectorised where NaN must keep its meaning; over integers they are.
# The bits of a float, all but the sign turned round where it is negative, are ordered as it is.
_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


@compiled
def _extremes(r: Any, closed_up: Any, closed_down: Any) -> Any:
    """Return max(r + closed_up) and min(r + closed_down)."""
    most, least = -_BUT_SIGN, _BUT_SIGN
    for k in range(r.shape[0]):
        up = np.float64(r[k] + closed_up[k]).view(np.int64)
        most = max(most, up ^ ((up >> np.int64(63)) & _BUT_SIGN))
        down = np.float64(r[k] + closed_down[k]).view(np.int64)
        least = min(least, down ^ ((down >> np.int64(63)) & _BUT_SIGN))
    most ^= (most >> np.int64(63)) & _BUT_SIGN
    least ^= (least >> np.int64(63)) & _BUT_SIGN
    return np.int64(most).view(np.float64), np.int64(least).view(np.float64)


@compiled
def _where(r: Any, closed: Any, value: float) -> Any:
    """Return the last k with r[k] + closed[k] = value."""
    at = np.int64(-1)
    for k in range(r.shape[0]):
        here = np.int64(k) if r[k] + closed[k] == value else np.int64(-1)
        at = max(at, here)
    return at


@compiled
def _partner(r: Any, closed_down: Any, row: Any, curvatures: Any, own: Any, top: float,
             per_violation: float, per_curvature: float) -> Any:  # fmt: skip
    """Return the k with the most gain, (top − r[k])² / curvature, among those that may shrink.

    In float32, so that both are measured in units of their own. The bits of a gain, which is not
    negative, and k after them, are ordered as the gain is.
    """
    least, twice, best = np.float32(LEAST_CURVATURE), 2.0 * per_curvature, np.int64(0)
    for k in range(r.shape[0]):
        ahead = np.float32((top - r[k] - closed_down[k]) * per_violation)
        ahead = ahead if ahead > np.float32(0.0) else np.float32(0.0)
        curvature = own + curvatures[k] - np.float32(twice * row[k])
        curvature = curvature if curvature > least else least
        gain = np.float32(np.divide(ahead * ahead, curvature)).view(np.int32)
        best = max(best, (np.int64(gain) << np.int64(32)) | np.int64(k))
    return best & np.int64(0xFFFFFFFF)


@compiled
def pairs(K: Any, diagonal: Any, r: Any, x: Any, low: Any, high: Any, ends: Any, tol: float,
          steps: int) -> int:  # fmt: skip
    """Solve the block, whose groups end where ``ends`` says; return how many steps were made.

    The diagonal, with the shift, is given apart; r and x change in place. A last variable without
    bounds, whose row is zero, makes the sum of the others free.
    """
    q = x.shape[0]
    closed_up, closed_down = np.empty(q), np.empty(q)
    curvatures = np.empty(q, np.float32)
    largest = 0.0
    for k in range(q):
        _close(k, x, low, high, closed_up, closed_down)
        largest = max(largest, diagonal[k])
    scale = 1.0 / largest if largest > 0.0 else 1.0
    flat = LEAST_CURVATURE / scale
    for k in range(q):
        curvatures[k] = scale * diagonal[k]
    for made in range(steps):
        worst = top = 0.0  # of the group with the largest violation
        first = stop = begin = 0
        for g in range(ends.shape[0]):
            end = ends[g]
            most, least = _extremes(r[begin:end], closed_up[begin:end], closed_down[begin:end])
            if most - least > worst and most > -0.5 * FAR and least < 0.5 * FAR:
                worst, top, first, stop = most - least, most, begin, end
            begin = end
        if worst <= tol:
            return made
        i = first + _where(r[first:stop], closed_up[first:stop], top)
        row_i = K[i]
        j = first + _partner(
            r[first:stop], closed_down[first:stop], row_i[first:stop], curvatures[first:stop],
            curvatures[i], top, 1.0 / worst, scale,
        )  # fmt: skip
        row_j = K[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], flat)
        room_i, room_j = high[i] - x[i], x[j] - low[j]
        step = min((top - r[j]) / curvature, room_i, room_j)
        x[i] = high[i] if step == room_i else x[i] + step
        x[j] = low[j] if step == room_j else x[j] - step
        for k in range(q):
            r[k] -= step * (row_i[k] - row_j[k])
        r[i] += step * (row_i[i] - diagonal[i])
        r[j] -= step * (row_j[j] - diagonal[j])
        _close(i, x, low, high, closed_up, closed_down)
        _close(j, x, low, high, closed_up, closed_down)
    return steps


@compiled
def _close(k: int, x: Any, low: Any, high: Any, closed_up: Any, closed_down: Any) -> None:
    """Move the directions that a bound closes out of the way."""
    closed_up[k] = 0.0 if x[k] < high[k] else -FAR
    closed_down[k] = 0.0 if x[k] > low[k] else FAR
