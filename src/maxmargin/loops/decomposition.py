"""Rounds of the decomposition: what violates what, which block is next, what its solution moves.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within each group

With ρ = t − f − b the residual of a variable, the duality gap is a sum of terms that are never
negative, one for each variable:

    max over low ≤ β′ ≤ high of (β′ − β)ρ − ½ shift (β′² − β²)
"""

from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin.loops import smo
from maxmargin.loops.compiled import compiled
from maxmargin.loops.intrinsics import square_view
from maxmargin.loops.records import Loss, Path

# ------------------------------------------------------------------- what violates what


@compiled
def directions(v: Any, groups: int, up: Any, down: Any, ends: Any) -> Any:
    """Set up = r where β may grow (else −∞), down = r where it may shrink (else ∞).

    ``ends``, of seven rows, gets for each group the largest up, the smallest down, Σβ, and between
    what its intercept lies; if there are no groups variables are compared with 0. Return the worst
    violation, the dual objective, and how many variables are between their bounds.
    """
    target, low, high, shift, group, x, at, f = v
    most, least, sums = ends[0], ends[1], ends[2]
    for g in range(sums.shape[0]):
        most[g], least[g], sums[g] = -np.inf, np.inf, 0.0
        if groups == 0:
            most[g] = least[g] = 0.0
    dual = 0.0
    free = 0
    for k in range(x.shape[0]):
        g = max(group[k], 0)
        score = f[at[k]] + shift[k] * x[k]
        r = target[k] - score
        up[k] = r if x[k] < high[k] else -np.inf
        down[k] = r if x[k] > low[k] else np.inf
        free += x[k] < high[k] and x[k] > low[k]
        most[g], least[g] = max(most[g], up[k]), min(least[g], down[k])
        sums[g] += x[k]
        dual += x[k] * (target[k] - 0.5 * score)
    violation = 0.0
    for g in range(sums.shape[0]):
        violation = max(violation, most[g] - least[g])
        ends[3, g] = ends[4, g] = 0.0
        if groups > 0:
            ends[3, g] = min(most[g], least[g]) if most[g] > -np.inf else least[g]
            ends[4, g] = max(most[g], least[g]) if least[g] < np.inf else most[g]
    return violation, dual, free


@compiled
def duality_gap(v: Any, ends: Any, b: Any, halvings: int, enough: float) -> float:
    """Return the gap at nearly the best intercepts, which b becomes; ``ends`` is as above.

    The best intercept of a group lies between the extremes of its residuals: it is found by
    bisection, as the losses are convex in it, until the choice of b costs no more than a part
    ``enough`` of the gap. Without groups b has one entry, 0.
    """
    target, low, high, shift, group, x, at, f = v
    least = np.inf
    for _ in range(halvings):
        for g in range(b.shape[0]):
            ends[5, g] = 0.5 * (ends[3, g] + ends[4, g])
            ends[6, g] = ends[2, g]
        gap = 0.0
        for k in range(x.shape[0]):
            g = max(group[k], 0)
            rest = target[k] - f[at[k]] - ends[5, g]
            best = high[k] if rest > 0.0 else low[k]
            if shift[k] > 0.0:
                best = min(max(rest / shift[k], low[k]), high[k])
            if best != x[k] and rest != 0.0:
                gap += (best - x[k]) * (rest - 0.5 * shift[k] * (best + x[k]))
            ends[6, g] -= best
        cost = 0.0
        for g in range(b.shape[0]):
            b[g] = ends[5, g] if gap < least else b[g]
            cost += abs(ends[6, g]) * (ends[4, g] - ends[3, g])
            ends[4 if ends[6, g] > 0.0 else 3, g] = ends[5, g]
        least = min(least, gap)
        if cost <= enough * least:
            break
    return least


# ------------------------------------------------------------------- rows of the matrix


@compiled
def add_rows(values: Any, rows: Any, steps: Any, runs: Any, f: Any) -> None:
    """Do f += Σ steps[k] · values[rows[k]], a stretch of f at a time.

    A run is (first and last place in f, first column): what is not in one stays as it is.
    """
    width = 1024
    count = rows.shape[0]
    for run in range(runs.shape[0]):
        for start in range(runs[run, 0], runs[run, 1], width):
            part = f[start : min(start + width, runs[run, 1])]
            begin = start - runs[run, 0] + runs[run, 2]
            k = 0
            while k + 4 <= count:
                a, b, c, d = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
                row_a, row_b = values[rows[k], begin:], values[rows[k + 1], begin:]
                row_c, row_d = values[rows[k + 2], begin:], values[rows[k + 3], begin:]
                for j in range(part.shape[0]):
                    part[j] += (a * row_a[j] + b * row_b[j]) + (c * row_c[j] + d * row_d[j])
                k += 4
            while k < count:
                step = steps[k]
                row = values[rows[k], begin:]
                for j in range(part.shape[0]):
                    part[j] += step * row[j]
                k += 1


@compiled
def take(values: Any, rows: Any, columns: Any, out: Any) -> None:
    """Do out = values[rows][:, columns]."""
    for i in range(rows.shape[0]):
        row, to = values[rows[i]], out[i]
        for k in range(columns.shape[0]):
            to[k] = row[columns[k]]


@compiled
def take_square(values: Any, rows: Any, out: Any) -> None:
    """Do out = values[rows][:, rows], of a symmetric matrix: half of it is read, by two rows."""
    count = rows.shape[0]
    for i in range(0, count, 2):
        other = min(i + 1, count - 1)
        one, two = values[rows[i]], values[rows[other]]
        to_one, to_two = out[i], out[other]
        for k in range(i, count):
            column = np.uint64(rows[k])  # which is not asked whether it counts from the end
            a, b = one[column], two[column]
            to_one[k], to_two[k] = a, b
            out[k, i], out[k, other] = a, b


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


# ------------------------------------------------------------------- many rounds on a matrix
#
# The rounds of ``solvers.decomposition``, without Python in between: worth their compilation, which
# takes seconds, where many problems are solved on one matrix.

_BINS = 128


class Scratch(NamedTuple):
    """Memory to work in: arrays made in here would take longer to compile than the loops."""

    block: Any  # kernel values of a block
    up: Any
    down: Any
    ends: Any
    b: Any
    chosen_at: Any  # the round in which a variable was last among the worst
    chosen: Any
    rows: Any
    stops: Any
    counts: Any  # two rows for each group
    work: Any
    moves: Any

    @classmethod
    def of(cls, block: Any, variables: int, groups: int, fresh: int) -> Self:
        """Return memory for a problem of this many variables, ``fresh`` of them new in a block."""
        groups = max(1, groups)
        width = 2 * fresh + 4 * groups + 25  # rows a power of 2 apart would share cache lines
        up, down = np.empty((2, variables))
        chosen_at, stops = np.empty(variables, np.int64), np.empty(groups, np.int64)
        chosen, rows = np.empty((2, width), np.int64)
        counts = np.empty((2 * groups, _BINS + 2), np.int64)
        return cls(block, up, down, np.empty((7, groups)), np.empty(groups), chosen_at, chosen,
                   rows, stops, counts, np.empty((5, width)), np.empty(width))  # fmt: skip


class Course(NamedTuple):
    """Settings of rounds, as ``Decomposition`` and ``Pace`` explain them."""

    precision: float
    steps: int
    fresh: int
    idle_rounds: int
    least_gain: float
    stable: float
    step_pace: float
    most_free: int


class Tour(NamedTuple):
    """Rising costs, at each of which a problem is solved from where it was at the one before."""

    costs: Any
    unit: Any  # the losses at cost 1
    starts: Any  # where each cost starts instead, if it has any rows
    judged: Any  # runs of rows that solutions are to score
    path: Any  # what is entered: a row for each cost
    at: Any  # the number of the cost that is next
    tol: float  # relative gap
    most: int  # rounds in one call

    @classmethod
    def nowhere(cls) -> Self:
        """Return a tour without costs."""
        one, two, whole = np.empty(0), np.empty((0, 0)), np.empty(0, np.int64)
        path = Path(two, two, one, one, whole, two)
        judged = np.empty((0, 3), np.int64)
        return cls(one, Loss(one, one, one, one, 0.0), two, judged, path, whole, 0.0, 0)


@compiled
def make_rounds(K: Any, place: Any, runs: Any, v: Any, diagonal: Any, groups: int, first: int,
                last: int, goal: float, course: Any, record: Any, scratch: Any, tour: Any
                ) -> Any:  # fmt: skip
    """Make rounds until one is the last, an active-set step is due, or the gap is at the goal.

    Return the number of the next round, and whether it is due. ``record`` has the dual objective,
    the rounds without any gain, how many variables become free or bounded in a round, and the work
    since the last step. If there is a tour, the next cost begins once the gap of one is closed;
    the rounds are those of the cost at which it has not been.
    """
    n, number, made_so_far = v.x.shape[0], first, 0
    up, down, ends, stops = scratch.up[:n], scratch.down[:n], scratch.ends, scratch.stops
    ahead = _begin_cost(K, place, runs, v, record, scratch, tour)
    while True:
        violation, dual, free = directions(v, groups, up, down, ends)
        gap = duality_gap(v, ends, scratch.b, 1, 0.0)
        if ahead and _is_closed(dual, gap, number, record, tour):
            keep_solution(K, place, v, groups, scratch, tour)
            ahead = _begin_cost(K, place, runs, v, record, scratch, tour)
            number = first
            if not ahead:
                return number, False
            continue
        if violation <= 0.0:
            record[1] = course.idle_rounds
        if record[1] >= course.idle_rounds or (gap <= goal * abs(record[0]) and not ahead):
            return number, False
        if number >= last or (ahead and made_so_far >= tour.most):
            return number, False
        paid = record[3] > course.step_pace * (300.0 + free) * free * free
        paid = paid and (2 * number >= last or not ahead)  # most costs take no more rounds
        if paid and 2 < free <= course.most_free and record[2] <= course.stable * free + 0.5:
            return number, True
        q = choose(v.group, up, down, ends, course.fresh, number, scratch)
        chosen, rows = scratch.chosen[:q], scratch.rows[:q]
        for a in range(q):
            rows[a] = place[v.at[chosen[a]]]
        size = q if groups > 0 else q + 1
        stops[0] += size - q
        block = square_view(scratch.block, size)
        for c in range(size if size > q else 0):  # a variable that takes any value
            block[q, c] = block[c, q] = 0.0
        take_square(K, rows, block)
        own, r, x, low, high = _gather(v, diagonal, chosen, size, scratch)
        tol = course.precision * violation
        made = smo.pairs(block, own, r, x, low, high, stops, tol, course.steps * q)
        gain, changed, count = _scatter(v, chosen, r, x, rows, scratch.moves)
        add_rows(K, rows[:count], scratch.moves[:count], runs, v.f)
        record[0] += gain
        record[1] = 0.0 if gain > course.least_gain * abs(record[0]) else record[1] + 1.0
        record[2] = changed if record[2] == np.inf else 0.7 * record[2] + 0.3 * changed
        record[3] += 6.0 * made * q + 1.0 * count * v.f.shape[0] + 8.0 * q * q
        number += 1
        made_so_far += 1


@compiled
def _gather(v: Any, diagonal: Any, chosen: Any, size: int, scratch: Any) -> Any:
    """Return copies of what belongs to a block; ``moves`` becomes the derivative."""
    work, moves, last = scratch.work, scratch.moves, size - 1
    own, r, x = work[0, :size], work[1, :size], work[2, :size]
    low, high = work[3, :size], work[4, :size]
    own[last], r[last], x[last], low[last], high[last] = 0.0, 0.0, 0.0, -np.inf, np.inf
    for a in range(chosen.shape[0]):
        k = chosen[a]
        x[a], low[a], high[a], own[a] = v.x[k], v.low[k], v.high[k], diagonal[k]
        r[a] = moves[a] = v.target[k] - v.f[v.at[k]] - v.shift[k] * v.x[k]
    return own, r, x, low, high


@compiled
def _scatter(v: Any, chosen: Any, r: Any, x: Any, rows: Any, moves: Any) -> Any:
    """Take the solution over; keep rows that moved, and their moves.

    Return the gain, how many variables became free or bounded, and how many moved.
    """
    gain = 0.0
    changed = count = 0
    for a in range(chosen.shape[0]):
        k = chosen[a]
        before, after = v.x[k], x[a]
        gain += 0.5 * (moves[a] + r[a]) * (after - before)
        v.x[k] = after
        was_free = before > v.low[k] and before < v.high[k]
        changed += was_free != (after > v.low[k] and after < v.high[k])
        rows[count], moves[count] = rows[a], after - before
        count += after != before
    return gain, changed, count


@compiled
def choose(group: Any, up: Any, down: Any, ends: Any, fresh: int, number: int, scratch: Any
           ) -> Any:  # fmt: skip
    """List the variables of the next block, group after group; return how many there are.

    They are up to ``fresh`` of the worst violators, the same number in each group and direction,
    found by counting how many are in each of some bins; and those that were among these in the
    round before. The entries of ``counts`` after those of the bins become the lowest bin that is
    taken, and how many of it.
    """
    chosen_at, chosen, counts, stops = (
        scratch.chosen_at, scratch.chosen, scratch.counts, scratch.stops
    )  # fmt: skip
    most, least, groups, taken = ends[0], ends[1], stops.shape[0], 0
    counts[:] = 0
    for k in range(group.shape[0]):
        g = max(group[k], 0)
        scale = _BINS / max(most[g] - least[g], 1e-300)
        if up[k] > least[g]:
            counts[2 * g, min(_BINS - 1, int((up[k] - least[g]) * scale))] += 1
        if down[k] < most[g]:
            counts[2 * g + 1, min(_BINS - 1, int((most[g] - down[k]) * scale))] += 1
    for side in range(2 * groups):
        _set_edge(counts[side], max(1, fresh // (2 * groups)))
    for g in range(groups):
        scale = _BINS / max(most[g] - least[g], 1e-300)
        for k in range(group.shape[0]):
            if max(group[k], 0) != g:
                continue
            worst = _is_worst(up[k] - least[g], scale, counts[2 * g])
            worst = _is_worst(most[g] - down[k], scale, counts[2 * g + 1]) or worst
            if worst or chosen_at[k] == number - 1:
                chosen[taken] = k
                taken += 1
            if worst:
                chosen_at[k] = number
        stops[g] = taken
    return taken


@compiled
def _set_edge(counts: Any, spare: int) -> None:
    """Find the lowest bin of which some are taken if ``spare`` are taken of all, and how many."""
    edge = _BINS - 1
    while edge > 0 and spare > counts[edge]:
        spare -= counts[edge]
        edge -= 1
    counts[_BINS], counts[_BINS + 1] = edge, spare


@compiled
def _is_worst(ahead: float, scale: float, counts: Any) -> bool:
    """Return whether a violation is in the bins that are taken, or among those of the lowest."""
    if not ahead > 0.0:
        return False
    bin_ = min(_BINS - 1, int(ahead * scale))
    if bin_ == counts[_BINS]:
        counts[_BINS + 1] -= 1
        return bool(counts[_BINS + 1] >= 0)
    return bool(bin_ > counts[_BINS])


# ------------------------------------------------------------------- from cost to cost
#
# Most problems of a search take few rounds at each cost: all costs are one call then. The losses
# have no curvature here.

_ROUNDING = 1e-12  # of the distance of its bounds, or of all slopes


@compiled
def _begin_cost(K: Any, place: Any, runs: Any, v: Any, record: Any, scratch: Any, tour: Any
                ) -> Any:  # fmt: skip
    """Go to where the next cost starts; return False if there is none."""
    if tour.costs.shape[0] == 0 or tour.at[0] == tour.costs.shape[0]:
        return False
    k, n = tour.at[0], v.x.shape[0]
    for i in range(n):
        v.low[i] = tour.costs[k] * tour.unit.low[i]
        v.high[i] = tour.costs[k] * tour.unit.high[i]
    if tour.starts.shape[0] > 0:
        _start_from(K, place, runs, v, tour.starts[k], scratch)
    elif k > 0:
        _go_along(v, tour.costs[k] / tour.costs[k - 1])
    scratch.chosen_at[:n] = -2
    record[1], record[2], record[3] = 0.0, np.inf, 0.0
    return True


@compiled
def _is_closed(dual: float, gap: float, number: int, record: Any, tour: Any) -> Any:
    """Return whether the gap is closed at the cost of a tour, and enter it."""
    k = tour.at[0]
    size = max(abs(dual), abs(dual + gap))
    record[0] = dual
    tour.path.rounds[k] = number
    tour.path.gaps[k] = gap / size if size > 0.0 else 0.0
    return gap <= tour.tol * size


@compiled
def keep_solution(K: Any, place: Any, v: Any, groups: int, scratch: Any, tour: Any) -> None:
    """Enter the solution at a cost into the path, with the scores of rows to be judged."""
    path, k = tour.path, tour.at[0]
    n, m = v.x.shape[0], path.duals.shape[1]
    rows, weights, b = scratch.chosen_at, scratch.up, 0.0
    if groups > 0:
        b = _best_intercept(v, rows, weights)
    coefficients, scores = path.coefficients[k], path.scores[k]
    for i in range(n):
        coefficients[v.at[i]] += v.x[i]
        path.duals[k, i if i < m else i - m] += v.x[i]
    count = 0
    for i in range(place.shape[0]):
        if coefficients[i] != 0.0:
            rows[count], weights[count] = place[i], coefficients[i]
            count += 1
    path.intercepts[k] = b
    for i in range(scores.shape[0]):
        scores[i] = b
    add_rows(K, rows[:count], weights[:count], tour.judged, scores)
    tour.at[0] = k + 1


@compiled
def _start_from(K: Any, place: Any, runs: Any, v: Any, duals: Any, scratch: Any) -> None:
    """Set the variables, or both halves of them, to duals as far as limits allow."""
    n, m = v.x.shape[0], duals.shape[0]
    rows, weights, count = scratch.chosen_at, scratch.up, 0
    for i in range(n):
        v.x[i] = min(max(duals[i if i < m else i - m], v.low[i]), v.high[i])
        if v.x[i] != 0.0:
            rows[count], weights[count] = place[v.at[i]], v.x[i]
            count += 1
    for i in range(v.f.shape[0]):
        v.f[i] = 0.0
    add_rows(K, rows[:count], weights[:count], runs, v.f)


@compiled
def _go_along(v: Any, ratio: float) -> None:
    """Go to where costs, which ``low`` and ``high`` have already, are ``ratio`` times as high.

    That is the best point of the ray through the solution. Variables at a bound stay there if it is
    the end of the ray.
    """
    linear = square = 0.0
    for i in range(v.x.shape[0]):
        linear += v.target[i] * v.x[i]
        square += v.x[i] * v.f[v.at[i]]
    far = min(max(linear / square, 1.0), ratio) if square > 0.0 else 1.0
    for i in range(v.x.shape[0]):
        low, high = v.low[i], v.high[i]
        near = _ROUNDING * (high - low) if high - low < np.inf else 0.0
        x = far * v.x[i]
        v.x[i] = high if x >= high - near else low if x <= low + near else x
    for i in range(v.f.shape[0]):
        v.f[i] *= far


@compiled
def _best_intercept(v: Any, left: Any, residuals: Any) -> float:
    """Return the intercept b of the least loss, the middle one where there are several.

    The loss falls by ``high`` for each residual above b and rises by −``low`` for each below, so
    that its slope changes at residuals. ``left`` lists the variables whose residuals are left.
    """
    slope = size = 0.0  # right of b, of all that is not left
    count = 0
    for i in range(v.x.shape[0]):
        if v.high[i] > v.low[i]:
            left[count], residuals[count] = i, v.target[i] - v.f[v.at[i]]
            size += v.high[i] - v.low[i]
            count += 1
    best, following, at_best, middle = np.inf, np.inf, 0.0, 0.0
    while count > 0:
        middle, here, above = residuals[count // 2], slope, best
        for j in range(count):
            beyond = residuals[j] > middle
            here -= v.high[left[j]] if beyond else v.low[left[j]]
            above = min(above, residuals[j]) if beyond else above
        falls = here < -_ROUNDING * size
        if not falls:
            best, following, at_best = middle, above, here
        some = 0
        for j in range(count):
            i, r = left[j], residuals[j]
            if (r > middle) if falls else (r < middle):
                left[some], residuals[some] = i, r
                some += 1
            else:
                slope -= v.low[i] if falls else v.high[i]
        count = some
    if best == np.inf:
        return middle
    flat = at_best <= _ROUNDING * size and following < np.inf
    return 0.5 * (best + following) if flat else best
