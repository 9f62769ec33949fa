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
def directions(target: Any, shift: Any, x: Any, low: Any, high: Any, row: Any, f: Any,
               up: Any, down: Any) -> None:  # fmt: skip
    """Set up = r where β may grow (else −∞), down = r where it may shrink (else ∞)."""
    for v in range(x.shape[0]):
        r = target[v] - f[row[v]] - shift[v] * x[v]
        up[v] = r if x[v] < high[v] else -np.inf
        down[v] = r if x[v] > low[v] else np.inf


@compiled
def pairs(K: Any, diagonal: Any, r: Any, x: Any, low: Any, high: Any, ends: Any, tol: float,
          steps: int) -> int:  # fmt: skip
    """Solve the block, whose groups end where ``ends`` says; return how many steps were made.

    The diagonal, with the shift, is given apart; r and x change in place.
    """
    q = x.shape[0]
    closed_up = np.empty(q)
    closed_down = np.empty(q)
    curvatures = np.empty(q, np.float32)
    for k in range(q):
        closed_up[k] = 0.0 if x[k] < high[k] else -_FAR
        closed_down[k] = 0.0 if x[k] > low[k] else _FAR
        curvatures[k] = diagonal[k]
    gains = np.empty(q, np.float32)
    made = 0
    while made < steps:
        # The group with the largest violation.
        worst = top = 0.0
        first = stop = begin = 0
        for g in range(ends.shape[0]):
            most, least = -_FAR, _FAR
            for k in range(begin, ends[g]):
                most = max(most, r[k] + closed_up[k])
                least = min(least, r[k] + closed_down[k])
            if most - least > worst and most > -0.5 * _FAR and least < 0.5 * _FAR:
                worst, top, first, stop = most - least, most, begin, ends[g]
            begin = ends[g]
        if worst <= tol:
            break
        made += 1
        at = np.int32(-1)
        for k in range(first, stop):
            at = max(at, np.int32(k) if r[k] + closed_up[k] == top else np.int32(-1))
        i = np.int64(at)
        # Its partner: the most gain, (r(i) − r(k))² / curvature, among those that may shrink.
        own = curvatures[i]
        best = np.float32(0.0)
        for k in range(first, stop):
            ahead = np.float32(max(top - r[k] - closed_down[k], 0.0))
            curvature = own + curvatures[k] - np.float32(2.0) * np.float32(K[i, k])
            gain = np.divide(ahead * ahead, max(curvature, np.float32(_LEAST_CURVATURE)))
            gains[k] = gain
            best = max(best, gain)
        at = np.int32(-1)
        for k in range(first, stop):
            at = max(at, np.int32(k) if gains[k] == best else np.int32(-1))
        j = np.int64(at)
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], _LEAST_CURVATURE)
        room_i, room_j = high[i] - x[i], x[j] - low[j]
        step = min((top - r[j]) / curvature, room_i, room_j)
        x[i] = high[i] if step == room_i else x[i] + step
        x[j] = low[j] if step == room_j else x[j] - step
        for k in range(q):
            r[k] -= step * (K[i, k] - K[j, k])
        r[i] += step * (K[i, i] - diagonal[i])
        r[j] -= step * (K[j, j] - diagonal[j])
        for k in (i, j):
            closed_up[k] = 0.0 if x[k] < high[k] else -_FAR
            closed_down[k] = 0.0 if x[k] > low[k] else _FAR
    return made


@compiled
def singles(K: Any, diagonal: Any, r: Any, x: Any, low: Any, high: Any, tol: float,
            steps: int) -> int:  # fmt: skip
    """Solve a block of variables that are in no group, each by itself; return the steps made."""
    made = 0
    while made < steps:
        best = 0.0
        k = -1
        worst = 0.0
        for j in range(x.shape[0]):
            value = (
                r[j] if (r[j] > 0.0 and x[j] < high[j]) or (r[j] < 0.0 and x[j] > low[j]) else 0.0
            )
            gain = value * value / max(diagonal[j], _LEAST_CURVATURE)
            worst = max(worst, abs(value))
            if gain > best:
                best = gain
                k = j
        if worst <= tol or k < 0:
            break
        made += 1
        value = x[k] + r[k] / max(diagonal[k], _LEAST_CURVATURE)
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
def gap_terms(target: Any, low: Any, high: Any, shift: Any, x: Any, row: Any, group: Any, f: Any,
              b: Any, terms: Any, slopes: Any) -> float:  # fmt: skip
    """Set what each variable adds to the duality gap at intercepts b, and return the sum.

    ``slopes`` gets the derivative in each b of the losses, from the right.
    """
    total = 0.0
    slopes[:] = 0.0
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
        terms[v] = term
        total += term
        if g >= 0:
            slopes[g] -= best
    return total


@compiled
def gather_block(values: Any, slots: Any, positions: Any, known: Any, missing: Any, inner: Any,
                 out: Any) -> None:  # fmt: skip
    """Assemble a square of the matrix from rows that are there and a block of those that are not."""
    for a in range(known.shape[0]):
        i = known[a]
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
