"""One problem at rising costs, on a matrix of kernel values that is there.

    max  Σ tβ − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = 0 if there is an intercept

A round solves the block of the variables that violate most (``smo.pairs``) and carries the moves to
the scores of all rows. Once few variables become free or stop being so, the caller is asked for an
active-set step. What can still move is copied together, so that it stays in the cache.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin.loops import smo
from maxmargin.loops.compiled import compiled
from maxmargin.loops.intrinsics import square_view

_BINS = 128
_BLOCK = 128  # variables that are new in a block; those of the round before stay
_STEPS = 20  # in a block, for each of its variables
_INNER = 0.1  # part of the violation down to which a block is solved
_COMPACT = 0.6  # part of the rows that may be active for these to be copied together
_FULL_ROUNDS = 8  # between two looks at what is active, where that is nearly all
_FALL, _AIM = 0.1, 0.5  # of the gap, of the goal: where the active ones are solved
_STABLE = 0.1  # part of the free variables that may change in a round before an active-set step
_PACE = 0.1  # work of rounds, as part of that of an active-set step, between two of these
_MOST_FREE = 1500
_STILL, _STUCK = 3, 30  # rounds in which nothing moves, looks at which nothing is better


class MatrixVariables(NamedTuple):
    """The variables of a problem: their limits, their rows, and the scores of the rows."""

    target: Any
    low: Any
    high: Any
    at: Any
    x: Any
    f: Any


class Scratch(NamedTuple):
    """Memory to work in: arrays made in here would take longer to compile than the loops."""

    block: Any  # kernel values of a block
    copied: Any  # kernel values of the active rows
    floats: Any  # a row for each purpose, a column for each variable
    ints: Any
    block_floats: Any  # the same for the variables of a block
    block_ints: Any
    whole: Any  # the run of all rows that are copied

    @classmethod
    def of(cls, block: Any, copied: Any, variables: int) -> Self:
        """Return memory for a problem of so many variables."""
        width = max(2 * _BLOCK, _BINS) + 24  # rows a power of 2 apart would share cache lines
        return cls(
            block,
            copied,
            np.empty((8, variables)),
            np.empty((7, variables), np.int64),
            np.empty((6, width)),
            np.empty((5, width), np.int64),
            np.zeros((1, 3), np.int64),
        )


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
def _violators(values: Any, sign: float, limit: float, most: float, chosen: Any, taken: Any,
               stamp: Any, mark: int, counts: Any) -> Any:  # fmt: skip
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
def _round(K: Any, runs: Any, place: Any, v: Any, free: bool, violation: float, chosen: Any,
           scratch: Any) -> Any:  # fmt: skip
    """Solve a block; return how many variables moved, how many became free or bounded, the work."""
    q = chosen.shape[0]
    block = square_view(scratch.block, q)
    diagonal, r, steps = (
        scratch.block_floats[0, :q],
        scratch.block_floats[1, :q],
        scratch.block_floats[2, :q],
    )
    x, low, high = (
        scratch.block_floats[3, :q],
        scratch.block_floats[4, :q],
        scratch.block_floats[5, :q],
    )
    rows, ends = scratch.block_ints[0, :q], scratch.block_ints[4, :1]
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
        ends[0] = q
        made = smo.pairs(block, diagonal, r, x, low, high, ends, _INNER * violation, _STEPS * q)
    else:
        made = smo.singles(block, diagonal, r, x, low, high, _INNER * violation, _STEPS * q)
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
             scratch: Any) -> Any:  # fmt: skip
    """Make rounds until the gap of these variables is at the goal, or an active-set step is due.

    Return how many were made, and whether it is due.
    """
    n = v.x.shape[0]
    up, down, stamp = scratch.floats[0, :n], scratch.floats[1, :n], scratch.ints[0, :n]
    chosen, newest, counts = scratch.block_ints[1], scratch.block_ints[2], scratch.block_ints[3]
    stamp[:] = -1
    n_newest = 0
    unstable, work, still = 1e300, 0.0, 0
    for made in range(rounds):
        most, least, _, gap, _ = _look(v, free, up, down)
        if gap <= goal or not most > least or still == _STILL:
            return made, False
        m = 0
        for k in range(n):
            if v.x[k] > v.low[k] and v.x[k] < v.high[k]:
                m += 1
        paid = work > _PACE * (300.0 + m) * m * m
        if paid and 2 < m <= _MOST_FREE and unstable <= _STABLE * m + 0.5:
            return made, True
        above, below = (least, most) if free else (0.0, 0.0)
        none = np.int64(0)  # for 0 itself, a type of its own, all would be compiled once more
        taken = _violators(up, 1.0, above, most, chosen, none, stamp, made, counts)
        taken = _violators(down, -1.0, -below, -least, chosen, taken, stamp, made, counts)
        fresh = taken
        for a in range(n_newest):
            if stamp[newest[a]] != made:
                chosen[taken] = newest[a]
                taken += 1
        n_newest = fresh
        for a in range(fresh):
            newest[a] = chosen[a]
        moved, changed, cost = _round(
            K, runs, place, v, free, most - least, chosen[:taken], scratch
        )
        unstable = changed if unstable == 1e300 else 0.7 * unstable + 0.3 * changed
        still = 0 if moved > 0 else still + 1
        work += cost
    return rounds, False


@compiled
def _active(v: Any, up: Any, down: Any, most: float, least: float, scratch: Any) -> Any:
    """List the rows whose variables are free, or at a bound and violate something, and these.

    Return how many rows and variables there are.
    """
    number, rows, index = scratch.ints[1], scratch.ints[2], scratch.ints[3]
    for i in range(v.f.shape[0]):
        number[i] = -1
    for k in range(v.x.shape[0]):
        idle = (up[k] == -np.inf and down[k] > most) or (down[k] == np.inf and up[k] < least)
        if not idle:
            number[v.at[k]] = 0
    count = variables = 0
    for i in range(v.f.shape[0]):
        if number[i] == 0:
            number[i] = count
            rows[count] = i
            count += 1
    for k in range(v.x.shape[0]):
        if number[v.at[k]] >= 0:
            index[variables] = k
            variables += 1
    return count, variables


@compiled
def _copy(K: Any, place: Any, v: Any, count: int, variables: int, scratch: Any) -> Any:
    """Copy what belongs to the active rows together; return the variables and the kernel values."""
    floats, ints = scratch.floats, scratch.ints
    number, rows, index = ints[1], ints[2, :count], ints[3, :variables]
    part = MatrixVariables(floats[2, :variables], floats[3, :variables], floats[4, :variables],
                     ints[4, :variables], floats[5, :variables], floats[6, :count])  # fmt: skip
    for a in range(variables):
        k = index[a]
        part.target[a], part.low[a], part.high[a] = v.target[k], v.low[k], v.high[k]
        part.x[a], part.at[a] = v.x[k], number[v.at[k]]
    there, itself = ints[5], ints[6]
    for a in range(count):
        part.f[a] = v.f[rows[a]]
        there[a], itself[a] = place[rows[a]], a
    matrix = square_view(scratch.copied, count)
    for a in range(count):
        row, to = K[there[a]], matrix[a]
        for c in range(count):
            to[c] = row[there[c]]
    scratch.whole[0, 1] = count
    return part, matrix


@compiled
def _carry(K: Any, runs: Any, v: Any, part: Any, scratch: Any) -> None:
    """Take over what the active variables have become, and the scores that all rows get by that."""
    index, moved, moves = scratch.ints[3], scratch.ints[5], scratch.floats[7]
    count = part.f.shape[0]
    for a in range(count):
        moves[a] = 0.0
    for a in range(part.x.shape[0]):
        moves[part.at[a]] += part.x[a] - v.x[index[a]]
        v.x[index[a]] = part.x[a]
    found = 0
    for a in range(count):
        if moves[a] != 0.0:
            moves[found], moved[found] = moves[a], moved[a]
            found += 1
    add_rows(K, runs, moved[:found], moves[:found], v.f)


@compiled
def solve(K: Any, runs: Any, place: Any, v: Any, free: bool, tol: float, rounds: int,
          progress: Any, scratch: Any) -> Any:  # fmt: skip
    """Improve x and its scores until the relative gap is at tol or an active-set step is due.

    Return the relative gap, the intercept, and whether to be called again after that step.
    ``progress`` has the rounds made, the looks since anything was better, the smallest gap and the
    highest dual; before the first call 0, 0, ∞ and −∞.
    """
    n = v.f.shape[0]
    up, down = scratch.floats[0, : v.x.shape[0]], scratch.floats[1, : v.x.shape[0]]
    while True:
        most, least, b, gap, dual = _look(v, free, up, down)
        size = max(abs(dual), abs(dual + gap))
        better = gap < progress[2] or dual > progress[3] + 1e-12 * abs(dual)
        progress[1] = 0.0 if better else progress[1] + 1.0
        progress[2], progress[3] = min(progress[2], gap), max(progress[3], dual)
        left = rounds - int(progress[0])
        if gap <= tol * size or not most > least or left <= 0 or progress[1] >= _STUCK:
            return (gap / size if size > 0.0 else 0.0), b, False
        count, variables = _active(v, up, down, most, least, scratch)
        apart = count <= _COMPACT * n and count * count <= scratch.copied.shape[0]
        matrix, those, there, part = K, runs, place, v
        goal, some = _AIM * tol * size, min(_FULL_ROUNDS, left)
        if apart:
            part, matrix = _copy(K, place, v, count, variables, scratch)
            those, there = scratch.whole, scratch.ints[6]
            goal, some = max(goal, _FALL * gap), left
        made, due = _improve(matrix, those, there, part, free, goal, some, scratch)
        progress[0] += 1.0 + made
        if apart:
            _carry(K, runs, v, part, scratch)
        if due:
            return gap / size, b, True


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
