"""One problem at rising costs, on a matrix of kernel values that is there.

    max  Σ tβ − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = 0 if there is an intercept

A round solves the block of the variables that violate most (``smo.pairs``) and carries the moves to
the scores of all rows. Once few variables become free or stop being so, the free ones leap to where
their equations say. What can still move is copied together, so that it stays in the cache.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.loops import leaps, smo
from maxmargin.loops.compiled import compiled

_BINS = 128
_BLOCK = 128  # variables that are new in a block; those of the round before stay
_STEPS = 20  # in a block, for each of its variables
_INNER = 0.1  # part of the violation down to which a block is solved
_COMPACT = 0.6  # part of the rows that may be active for these to be copied together
_FULL_ROUNDS = 8  # between two looks at what is active, where that is nearly all
_FALL, _AIM = 0.1, 0.5  # of the gap, of the goal: where the active ones are solved
_STABLE = 0.1  # part of the free variables that may change in a round before a leap
_PACE = 0.1  # work of rounds, as part of that of a leap, between two leaps
_MOST_FREE = 1500
_STILL, _STUCK = 3, 30  # rounds in which nothing moves, looks at which nothing is better


class Variables(NamedTuple):
    """The variables of a problem: their limits, their rows, and the scores of the rows."""

    target: Any
    low: Any
    high: Any
    at: Any
    x: Any
    f: Any


@compiled
def add_rows(K: Any, runs: Any, moved: Any, steps: Any, f: Any) -> None:
    """Do f += Σ steps[k] · K[moved[k]] at the rows of the problem.

    A run is (first and last place in f, first row of the matrix).
    """
    count = moved.shape[0]
    for run in range(runs.shape[0]):
        begin, end, there = runs[run, 0], runs[run, 1], runs[run, 2]
        part = f[begin:end]
        width = end - begin
        k = 0
        while k + 4 <= count:
            a, b, c, d = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
            row_a = K[moved[k], there : there + width]
            row_b = K[moved[k + 1], there : there + width]
            row_c = K[moved[k + 2], there : there + width]
            row_d = K[moved[k + 3], there : there + width]
            for j in range(part.shape[0]):
                part[j] += (a * row_a[j] + b * row_b[j]) + (c * row_c[j] + d * row_d[j])
            k += 4
        while k < count:
            step = steps[k]
            row = K[moved[k], there : there + width]
            for j in range(part.shape[0]):
                part[j] += step * row[j]
            k += 1


# ------------------------------------------------------------------- what violates what


@compiled
def _look(v: Any, free: bool, up: Any, down: Any) -> Any:
    """Set the directions; return their extremes, the intercept, the gap there and the dual."""
    most, least = -np.inf, np.inf
    if not free:
        most = least = 0.0
    for k in range(v.x.shape[0]):
        r = v.target[k] - v.f[v.at[k]]
        up[k] = r if v.x[k] < v.high[k] else -np.inf
        down[k] = r if v.x[k] > v.low[k] else np.inf
        most, least = max(most, up[k]), min(least, down[k])
    b = 0.0
    if free:
        b = 0.5 * (most + least)
        if most == -np.inf:
            b = least if least < np.inf else 0.0
        elif least == np.inf:
            b = most
    gap = dual = 0.0
    for k in range(v.x.shape[0]):
        score = v.f[v.at[k]]
        dual += v.x[k] * (v.target[k] - 0.5 * score)
        rest = v.target[k] - score - b
        gap += (v.high[k] - v.x[k]) * rest if rest > 0.0 else (v.low[k] - v.x[k]) * rest
    return most, least, b, gap, dual


@compiled
def _violators(values: Any, sign: float, limit: float, most: float, chosen: Any, taken: int,
               stamp: Any, mark: int, counts: Any) -> int:  # fmt: skip
    """Append the variables with the largest sign·value above ``limit``; return how many are taken.

    Half a block of them, found by counting how many are in each of some bins.
    """
    scale = _BINS / max(most - limit, 1e-300)
    counts[:] = 0
    for v in range(values.shape[0]):
        ahead = sign * values[v] - limit
        if ahead > 0.0:
            counts[min(_BINS - 1, int(ahead * scale))] += 1
    above = 0
    edge = _BINS - 1
    while edge > 0 and above + counts[edge] < _BLOCK // 2:
        above += counts[edge]
        edge -= 1
    spare = _BLOCK // 2 - above
    for v in range(values.shape[0]):
        ahead = sign * values[v] - limit
        if ahead > 0.0:
            bin_ = min(_BINS - 1, int(ahead * scale))
            if bin_ < edge or (bin_ == edge and spare <= 0):
                continue
            if bin_ == edge:
                spare -= 1
            if stamp[v] != mark:
                stamp[v] = mark
                chosen[taken] = v
                taken += 1
    return taken


# ------------------------------------------------------------------- rounds


@compiled
def _leapt(K: Any, runs: Any, place: Any, v: Any, free: bool, m: int) -> bool:
    """Let the m free variables leap; return whether they did."""
    index, rows = np.empty(m, np.int64), np.empty(m, np.int64)
    r, down, up, step = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    a = 0
    for k in range(v.x.shape[0]):
        if v.x[k] > v.low[k] and v.x[k] < v.high[k]:
            index[a], rows[a] = k, place[v.at[k]]
            r[a] = v.target[k] - v.f[v.at[k]]
            down[a], up[a] = v.x[k] - v.low[k], v.high[k] - v.x[k]
            a += 1
    block = np.empty((m, m))
    for a in range(m):
        row = K[rows[a]]
        for c in range(m):
            block[a, c] = row[rows[c]]
    if not leaps.leap(block, r, down, up, free, step) > 0.0:
        return False
    for a in range(m):
        k = index[a]
        if step[a] == up[a]:
            v.x[k] = v.high[k]
        elif step[a] == -down[a]:
            v.x[k] = v.low[k]
        else:
            v.x[k] += step[a]
    add_rows(K, runs, rows, step, v.f)
    return True


@compiled
def _round(K: Any, runs: Any, place: Any, v: Any, free: bool, violation: float, chosen: Any,
           space: Any) -> Any:  # fmt: skip
    """Solve a block; return how many variables moved, how many became free or bounded, the work."""
    q = chosen.shape[0]
    block = space[: q * q].reshape((q, q))
    diagonal, r = np.empty(q), np.empty(q)
    x, low, high = np.empty(q), np.empty(q), np.empty(q)
    rows = np.empty(q, np.int64)
    for a in range(q):
        k = chosen[a]
        rows[a] = place[v.at[k]]
        r[a] = v.target[k] - v.f[v.at[k]]
        x[a], low[a], high[a] = v.x[k], v.low[k], v.high[k]
    for a in range(q):
        row = K[rows[a]]
        for c in range(q):
            block[a, c] = row[rows[c]]
        diagonal[a] = block[a, a]
    if free:
        ends = np.full(1, q)
        made = smo.pairs(block, diagonal, r, x, low, high, ends, _INNER * violation, _STEPS * q)
    else:
        made = smo.singles(block, diagonal, r, x, low, high, _INNER * violation, _STEPS * q)
    steps = np.empty(q)
    count = changed = 0
    for a in range(q):
        k = chosen[a]
        step = x[a] - v.x[k]
        if step != 0.0:
            was = v.x[k] > low[a] and v.x[k] < high[a]
            if was != (x[a] > low[a] and x[a] < high[a]):
                changed += 1
            v.x[k] = x[a]
            rows[count], steps[count] = rows[a], step
            count += 1
    add_rows(K, runs, rows[:count], steps[:count], v.f)
    return count, changed, 6.0 * made * q + 1.0 * count * v.f.shape[0] + 8.0 * q * q


@compiled
def _improve(K: Any, runs: Any, place: Any, v: Any, free: bool, goal: float, rounds: int,
             space: Any) -> int:  # fmt: skip
    """Make rounds and leaps until the gap of these variables is at the goal; return how many."""
    n = v.x.shape[0]
    up, down = np.empty(n), np.empty(n)
    stamp, counts = np.full(n, -1), np.empty(_BINS, np.int64)
    chosen, newest = np.empty(2 * _BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    n_newest = 0
    unstable, work, still = 1e300, 0.0, 0
    for made in range(rounds):
        most, least, _, gap, _ = _look(v, free, up, down)
        if gap <= goal or not most > least or still == _STILL:
            return made
        m = 0
        for k in range(n):
            if v.x[k] > v.low[k] and v.x[k] < v.high[k]:
                m += 1
        due = work > _PACE * (300.0 + m) * m * m
        if due and 2 < m <= _MOST_FREE and unstable <= _STABLE * m + 0.5:
            work = 0.0
            if _leapt(K, runs, place, v, free, m):
                continue
        above, below = (least, most) if free else (0.0, 0.0)
        taken = _violators(up, 1.0, above, most, chosen, 0, stamp, made, counts)
        taken = _violators(down, -1.0, -below, -least, chosen, taken, stamp, made, counts)
        fresh = taken
        for a in range(n_newest):
            if stamp[newest[a]] != made:
                chosen[taken] = newest[a]
                taken += 1
        n_newest = fresh
        for a in range(fresh):
            newest[a] = chosen[a]
        moved, changed, cost = _round(K, runs, place, v, free, most - least, chosen[:taken], space)
        unstable = changed if unstable == 1e300 else 0.7 * unstable + 0.3 * changed
        still = 0 if moved > 0 else still + 1
        work += cost
    return rounds


@compiled
def _active(v: Any, up: Any, down: Any, most: float, least: float, stays: Any) -> int:
    """Mark the rows of variables that are free, or at a bound and violate something."""
    stays[:] = False
    count = 0
    for k in range(v.x.shape[0]):
        idle = (up[k] == -np.inf and down[k] > most) or (down[k] == np.inf and up[k] < least)
        if not idle and not stays[v.at[k]]:
            stays[v.at[k]] = True
            count += 1
    return count


@compiled
def _taken(values: Any, index: Any) -> Any:
    out = np.empty(index.shape[0], values.dtype)
    for k in range(index.shape[0]):
        out[k] = values[index[k]]
    return out


@compiled
def _variables_of(v: Any, stays: Any) -> Any:
    """Return the variables of the rows that stay."""
    index = np.empty(v.x.shape[0], np.int64)
    m = 0
    for k in range(v.x.shape[0]):
        if stays[v.at[k]]:
            index[m] = k
            m += 1
    return index[:m]


@compiled
def _square(K: Any, rows: Any, space: Any) -> Any:
    """Return a copy of the matrix at some rows and columns."""
    count = rows.shape[0]
    small = space[: count * count].reshape((count, count))
    for a in range(count):
        row, to = K[rows[a]], small[a]
        for c in range(count):
            to[c] = row[rows[c]]
    return small


@compiled
def _carry(K: Any, runs: Any, there: Any, v: Any, part: Any, index: Any) -> None:
    """Take over what some variables have become, and the scores that all rows have by that."""
    moves = np.zeros(there.shape[0])
    for k in range(index.shape[0]):
        moves[part.at[k]] += part.x[k] - v.x[index[k]]
        v.x[index[k]] = part.x[k]
    moved = smo.where(moves)
    add_rows(K, runs, _taken(there, moved), _taken(moves, moved), v.f)


@compiled
def solve(K: Any, runs: Any, place: Any, v: Any, free: bool, tol: float, rounds: int, space: Any,
          compact: Any) -> Any:  # fmt: skip
    """Improve x and its scores; return the relative gap, the intercept and the rounds made."""
    n = v.f.shape[0]
    up, down = np.empty(v.x.shape[0]), np.empty(v.x.shape[0])
    stays = np.empty(n, np.bool_)
    everything = np.arange(n)
    whole = np.zeros((1, 3), np.int64)
    made = stuck = 0
    smallest, highest = np.inf, -np.inf
    while True:
        most, least, b, gap, dual = _look(v, free, up, down)
        size = max(abs(dual), abs(dual + gap))
        stuck = 0 if gap < smallest or dual > highest + 1e-12 * abs(dual) else stuck + 1
        smallest, highest = min(smallest, gap), max(highest, dual)
        if gap <= tol * size or not most > least or made >= rounds or stuck == _STUCK:
            return (gap / size if size > 0.0 else 0.0), b, made
        count = _active(v, up, down, most, least, stays)
        apart = count <= _COMPACT * n and count * count <= compact.shape[0]
        matrix, those, there, part = K, runs, place, v
        rows = index = smo.where(stays)
        goal, some = _AIM * tol * size, min(_FULL_ROUNDS, rounds - made)
        if apart:
            index = _variables_of(v, stays)
            renumbered = np.empty(n, np.int64)
            for a in range(count):
                renumbered[rows[a]] = a
            part = Variables(_taken(v.target, index), _taken(v.low, index), _taken(v.high, index),
                             _taken(renumbered, _taken(v.at, index)), _taken(v.x, index),
                             _taken(v.f, rows))  # fmt: skip
            matrix, those = _square(K, _taken(place, rows), compact), whole
            whole[0, 1] = count
            there = everything[:count]
            goal, some = max(goal, _FALL * gap), rounds - made
        made += 1 + _improve(matrix, those, there, part, free, goal, some, space)
        if apart:
            _carry(K, runs, _taken(place, rows), v, part, index)


# ------------------------------------------------------------------- from cost to cost


@compiled
def along(v: Any, ratio: float) -> None:
    """Go to where costs, which ``low`` and ``high`` have already, are ``ratio`` times as high.

    That is the best point of the ray through the solution. Variables at a bound stay there if it is
    the end of the ray.
    """
    linear = square = 0.0
    for k in range(v.x.shape[0]):
        linear += v.target[k] * v.x[k]
        square += v.x[k] * v.f[v.at[k]]
    far = min(max(linear / square, 1.0), ratio) if square > 0.0 else 1.0
    for k in range(v.x.shape[0]):
        to = far * v.x[k]
        if to > v.high[k] * (1 - 1e-12):
            to = v.high[k]
        elif to < v.low[k] * (1 - 1e-12):
            to = v.low[k]
        v.x[k] = to
    for i in range(v.f.shape[0]):
        v.f[i] *= far
