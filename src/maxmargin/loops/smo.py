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

_FAR = 1e300
_LEAST_CURVATURE = 1e-12


@compiled
def directions(target: Any, low: Any, high: Any, shift: Any, group: Any, x: Any, row: Any, f: Any,
               up: Any, down: Any) -> None:  # fmt: skip
    """Set up = r where β may grow (else −∞), down = r where it may shrink (else ∞)."""
    for v in range(x.shape[0]):
        r = target[v] - f[row[v]] - shift[v] * x[v]
        up[v] = r if x[v] < high[v] else -np.inf
        down[v] = r if x[v] > low[v] else np.inf


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
             per_violation: float, per_curvature: float, gains: Any) -> Any:  # fmt: skip
    """Return the k with the most gain, (top − r[k])² / curvature, among those that may shrink.

    In float32, so that both are measured in units of their own.
    """
    least, twice = np.float32(_LEAST_CURVATURE), 2.0 * per_curvature
    for k in range(r.shape[0]):
        ahead = np.float32((top - r[k] - closed_down[k]) * per_violation)
        ahead = ahead if ahead > np.float32(0.0) else np.float32(0.0)
        curvature = own + curvatures[k] - np.float32(twice * row[k])
        curvature = curvature if curvature > least else least
        gains[k] = np.divide(ahead * ahead, curvature)
    best = np.int32(0)
    for k in range(r.shape[0]):
        best = max(best, np.float32(gains[k]).view(np.int32))
    at = np.int32(-1)
    for k in range(r.shape[0]):
        here = np.int32(k) if np.float32(gains[k]).view(np.int32) == best else np.int32(-1)
        at = max(at, here)
    return np.int64(at)


@compiled
def pairs(K: Any, diagonal: Any, r: Any, x: Any, low: Any, high: Any, ends: Any, tol: float,
          steps: int) -> int:  # fmt: skip
    """Solve the block, whose groups end where ``ends`` says; return how many steps were made.

    The diagonal, with the shift, is given apart; r and x change in place.
    """
    q = x.shape[0]
    closed_up, closed_down = np.empty(q), np.empty(q)
    curvatures, gains = np.empty(q, np.float32), np.empty(q, np.float32)
    largest = 0.0
    for k in range(q):
        _close(k, x, low, high, closed_up, closed_down)
        largest = max(largest, diagonal[k])
    scale = 1.0 / largest if largest > 0.0 else 1.0
    flat = _LEAST_CURVATURE / scale
    for k in range(q):
        curvatures[k] = scale * diagonal[k]
    for made in range(steps):
        worst = top = 0.0  # of the group with the largest violation
        first = stop = begin = 0
        for g in range(ends.shape[0]):
            end = ends[g]
            most, least = _extremes(r[begin:end], closed_up[begin:end], closed_down[begin:end])
            if most - least > worst and most > -0.5 * _FAR and least < 0.5 * _FAR:
                worst, top, first, stop = most - least, most, begin, end
            begin = end
        if worst <= tol:
            return made
        i = first + _where(r[first:stop], closed_up[first:stop], top)
        j = first + _partner(
            r[first:stop], closed_down[first:stop], K[i, first:stop], curvatures[first:stop],
            curvatures[i], top, 1.0 / worst, scale, gains,
        )  # fmt: skip
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], flat)
        room_i, room_j = high[i] - x[i], x[j] - low[j]
        step = min((top - r[j]) / curvature, room_i, room_j)
        x[i] = high[i] if step == room_i else x[i] + step
        x[j] = low[j] if step == room_j else x[j] - step
        row_i, row_j = K[i], K[j]
        for k in range(q):
            r[k] -= step * (row_i[k] - row_j[k])
        r[i] += step * (K[i, i] - diagonal[i])
        r[j] -= step * (K[j, j] - diagonal[j])
        _close(i, x, low, high, closed_up, closed_down)
        _close(j, x, low, high, closed_up, closed_down)
    return steps


@compiled
def _close(k: int, x: Any, low: Any, high: Any, closed_up: Any, closed_down: Any) -> None:
    """Move the directions that a bound closes out of the way."""
    closed_up[k] = 0.0 if x[k] < high[k] else -_FAR
    closed_down[k] = 0.0 if x[k] > low[k] else _FAR


@compiled
def singles(K: Any, diagonal: Any, r: Any, x: Any, low: Any, high: Any, tol: float,
            steps: int) -> int:  # fmt: skip
    """Solve a block of variables that are in no group, each by itself; return the steps made."""
    largest = 1e-300
    for k in range(x.shape[0]):
        largest = max(largest, diagonal[k])
    flat = _LEAST_CURVATURE * largest
    made = 0
    while made < steps:
        best = 0.0
        k = -1
        worst = 0.0
        for j in range(x.shape[0]):
            value = (
                r[j] if (r[j] > 0.0 and x[j] < high[j]) or (r[j] < 0.0 and x[j] > low[j]) else 0.0
            )
            gain = value * value / max(diagonal[j], flat)
            worst = max(worst, abs(value))
            if gain > best:
                best = gain
                k = j
        if worst <= tol or k < 0:
            break
        made += 1
        value = x[k] + r[k] / max(diagonal[k], flat)
        value = min(max(value, low[k]), high[k])
        step = value - x[k]
        x[k] = value
        for j in range(x.shape[0]):
            r[j] -= step * K[k, j]
        r[k] += step * (K[k, k] - diagonal[k])
    return made


@compiled
def accumulate(values: Any, slots: Any, steps: Any, begin: int, end: int, f: Any) -> None:
    """Do f[begin:end] += Σ steps[k] · values[slots[k], begin:end], a stretch of f at a time."""
    width = 1024
    count = slots.shape[0]
    for start in range(begin, end, width):
        stop = min(start + width, end)
        k = 0
        while k + 4 <= count:
            a, b, c, d = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
            row_a, row_b = values[slots[k]], values[slots[k + 1]]
            row_c, row_d = values[slots[k + 2]], values[slots[k + 3]]
            for j in range(start, stop):
                f[j] += (a * row_a[j] + b * row_b[j]) + (c * row_c[j] + d * row_d[j])
            k += 4
        while k < count:
            step = steps[k]
            row = values[slots[k]]
            for j in range(start, stop):
                f[j] += step * row[j]
            k += 1


@compiled
def gap_terms(target: Any, low: Any, high: Any, shift: Any, group: Any, x: Any, row: Any, f: Any,
              b: Any, loss: Any, slopes: Any) -> float:  # fmt: skip
    """Set what each variable adds to the duality gap at intercepts b, and return the sum.

    ``slopes`` gets the derivative in each b of the losses, from the right.
    """
    total = 0.0
    for g in range(slopes.shape[0]):
        slopes[g] = 0.0
    for v in range(x.shape[0]):
        g = group[v]
        rest = target[v] - f[row[v]]
        if g >= 0:
            rest -= b[g]
        if shift[v] > 0.0:
            best = min(max(rest / shift[v], low[v]), high[v])
            term = (best - x[v]) * rest - 0.5 * shift[v] * (best * best - x[v] * x[v])
        elif rest > 0.0:
            best = high[v]
            term = (high[v] - x[v]) * rest if x[v] < high[v] else 0.0
        else:
            best = low[v]
            term = (low[v] - x[v]) * rest if x[v] > low[v] and rest < 0.0 else 0.0
        loss[v] = term
        total += term
        if g >= 0:
            slopes[g] -= best
    return total


@compiled
def gather_block(values: Any, slots: Any, positions: Any, here: Any, known: Any, missing: Any,
                 inner: Any, out: Any) -> None:  # fmt: skip
    """Assemble a square of the matrix from rows that are here and the block of the missing ones.

    Rows that are known but not here are in it already.
    """
    for a in range(here.shape[0]):
        i = here[a]
        row = values[slots[i]]
        for j in range(positions.shape[0]):
            out[i, j] = row[positions[j]]
    for a in range(missing.shape[0]):
        i = missing[a]
        for c in range(known.shape[0]):
            out[i, known[c]] = out[known[c], i]
        for c in range(missing.shape[0]):
            out[i, missing[c]] = inner[a, c]


@compiled
def compact(values: Any, stays: Any, keep: Any, buffer: Any) -> None:
    """Move rows ``stays``, columns ``keep`` (both ascending) to the front of the buffer."""
    to = 0
    for a in range(stays.shape[0]):
        row = values[stays[a]]
        for k in range(keep.shape[0]):
            buffer[to] = row[keep[k]]
            to += 1


@compiled
def merge(values: Any, rows: Any, place: Any, rest: Any, added: Any, out: Any) -> None:
    """Spread rows over wider ones, with what the added columns have."""
    for a in range(rows.shape[0]):
        row, to = values[rows[a]], out[a]
        for k in range(place.shape[0]):
            to[place[k]] = row[k]
        for k in range(added.shape[0]):
            to[added[k]] = rest[a, k]


@compiled
def take(values: Any, rows: Any, columns: Any, out: Any) -> None:
    """Do out = values[rows][:, columns], runs of consecutive columns at a time."""
    count = columns.shape[0]
    starts = np.empty(count + 1, np.int64)
    runs = 0
    for k in range(count):
        if k == 0 or columns[k] != columns[k - 1] + 1:
            starts[runs] = k
            runs += 1
    starts[runs] = count
    for i in range(rows.shape[0]):
        row, to = values[rows[i]], out[i]
        for run in range(runs):
            first, length = starts[run], starts[run + 1] - starts[run]
            source = row[columns[first] : columns[first] + length]
            target = to[first : first + length]
            for k in range(target.shape[0]):
                target[k] = source[k]


@compiled
def with_sum(x: Any, low: Any, high: Any, total: float) -> Any:
    """Return clip(x − λ, low, high) for the λ with which it has this sum, found by bisection."""
    size = abs(total) + 1.0
    left, right = np.inf, -np.inf
    for k in range(x.shape[0]):
        size = max(size, abs(x[k]))
        left, right = min(left, x[k] - high[k]), max(right, x[k] - low[k])
    left, right = max(left, -2.0 * size), min(right, 2.0 * size)
    for _ in range(60):
        middle = 0.5 * (left + right)
        reached = 0.0
        for k in range(x.shape[0]):
            reached += min(max(x[k] - middle, low[k]), high[k])
        if reached > total:
            left = middle
        else:
            right = middle
    out = np.empty(x.shape[0])
    for k in range(x.shape[0]):
        out[k] = min(max(x[k] - 0.5 * (left + right), low[k]), high[k])
    return out
