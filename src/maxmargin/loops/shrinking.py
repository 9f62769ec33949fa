"""Sequential minimal optimisation on all variables of a problem, with shrinking.

The steps are those of ``loops.smo``; a row of the matrix is made once a step needs it. After some
steps on all variables, those that are not at a bound beyond all violations are copied together, and
steps go on with these alone. What they have changed is then carried over to all variables, and so
on until no variable violates anything.
"""

from typing import Any, NamedTuple

from maxmargin.loops.compiled import chosen_by_type, compiled
from maxmargin.loops.kernel_tiles import exp2_nonpositive
from maxmargin.loops.smo import FAR, LEAST_CURVATURE, _close, _extremes, _partner, _where


class Halves(NamedTuple):
    """A symmetric matrix by its blocks for two runs of rows: those on the diagonal, and between."""

    first: Any
    cross: Any
    second: Any


class Gaussian(NamedTuple):
    """The matrix of a Gaussian kernel, 2^(factor·x·z − p(x) − p(z)), by its rows in columns."""

    columns: Any
    norms: Any
    factor: Any


class Active(NamedTuple):
    """The part of a matrix that belongs to some of its variables."""

    values: Any
    every: Any
    active: Any


class Whole(NamedTuple):
    """Variables, and memory to work in."""

    r: Any  # the derivative
    x: Any
    low: Any
    high: Any
    own: Any  # the diagonal, with the shift
    up: Any  # −FAR where a bound closes the way up, else 0
    down: Any  # FAR where a bound closes the way down, else 0
    curvatures: Any
    ends: Any  # of groups
    rows: Any  # memory for rows of the matrix
    slot: Any  # the row of each variable; −1: it is not there
    made: Any  # how many rows are there, and how often all were forgotten, as memory was full


class ShrinkRule(NamedTuple):
    """How steps go on."""

    scale: float  # of curvatures
    every: int  # steps on all variables before some are shrunk
    part: float  # of the variables that may be active then


@compiled
def make_steps(values: Any, v: Any, part: Any, active: Any, rule: Any, tol: float,
               steps: int) -> int:  # fmt: skip
    """Make steps until no violation is above tol; return how many.

    ``part`` and ``active`` are memory for what is active, and where that is among all variables.
    """
    made = 0
    while made < steps:
        worst, count = _choose(v, part, active)
        if worst <= tol:
            break
        if count > rule.part * v.x.shape[0]:
            more = _step(values, v, rule.scale, tol, min(rule.every, steps - made))
        else:
            some, chosen = _first(part, count), active[:count]
            _gather(v, some, chosen)
            more = _step(Active(values, v, chosen), some, rule.scale, tol, steps - made)
            _carry_over(values, v, some, chosen)
        if more == 0:  # what is not a number violates nothing
            break
        made += more
    return made


@compiled
def _step(values: Any, v: Any, scale: float, tol: float, steps: int) -> int:
    """Make steps on these variables until no violation is above tol; return how many."""
    flat = LEAST_CURVATURE / scale
    for made in range(steps):
        worst = top = 0.0  # of the group with the largest violation
        first = stop = begin = 0
        for g in range(v.ends.shape[0]):
            end = v.ends[g]
            most, least = _extremes(v.r[begin:end], v.up[begin:end], v.down[begin:end])
            if most - least > worst and most > -0.5 * FAR and least < 0.5 * FAR:
                worst, top, first, stop = most - least, most, begin, end
            begin = end
        if worst <= tol:
            return made
        if v.made[0] + 2 > v.rows.shape[0] and v.rows.shape[0] < v.x.shape[0]:
            _forget_rows(v)
        i = first + _where(v.r[first:stop], v.up[first:stop], top)
        if v.slot[i] < 0:
            _make_row(values, v, i)
        row_i = v.rows[v.slot[i]]
        j = first + _partner(
            v.r[first:stop], v.down[first:stop], row_i[first:stop], v.curvatures[first:stop],
            v.curvatures[i], top, 1.0 / worst, scale,
        )  # fmt: skip
        if v.slot[j] < 0:
            _make_row(values, v, j)
        row_j = v.rows[v.slot[j]]
        curvature = max(v.own[i] + v.own[j] - 2.0 * row_i[j], flat)
        room_i, room_j = v.high[i] - v.x[i], v.x[j] - v.low[j]
        step = min((top - v.r[j]) / curvature, room_i, room_j)
        v.x[i] = v.high[i] if step == room_i else v.x[i] + step
        v.x[j] = v.low[j] if step == room_j else v.x[j] - step
        _carry(v.r, step, row_i, row_j)
        v.r[i] += step * (row_i[i] - v.own[i])
        v.r[j] -= step * (row_j[j] - v.own[j])
        _close(i, v.x, v.low, v.high, v.up, v.down)
        _close(j, v.x, v.low, v.high, v.up, v.down)
    return steps


@compiled
def _carry(r: Any, step: float, row_i: Any, row_j: Any) -> None:
    for k in range(r.shape[0]):
        r[k] -= step * (row_i[k] - row_j[k])


# ------------------------------------------------------------------- rows of the matrix


# These are called only for rows that are not there: to pass so many arrays takes a while.


@compiled
def _make_row(values: Any, v: Any, i: int) -> None:
    """Make the row of a variable."""
    _reserve(v, i)
    _fill(values, i, v.rows[v.slot[i]])


@compiled
def _make_whole_row(values: Any, v: Any, i: int) -> None:
    """Do the same for all variables: numba has no recursion to other types."""
    _reserve(v, i)
    _fill_whole(values, i, v.rows[v.slot[i]])


@compiled
def _reserve(v: Any, i: int) -> None:
    if v.made[0] == v.rows.shape[0]:
        _forget_rows(v)
    v.slot[i] = v.made[0]
    v.made[0] += 1


@compiled
def _forget_rows(v: Any) -> None:
    v.made[0] = 0
    v.made[1] += 1
    for k in range(v.slot.shape[0]):
        v.slot[k] = -1


@chosen_by_type
def _fill(values: Any, i: Any, to: Any) -> Any:
    """Fill the row of variable i."""
    return {Halves: _join, Gaussian: _compute, Active: _take}[values.instance_class]


@chosen_by_type
def _fill_whole(values: Any, i: Any, to: Any) -> Any:
    return {Halves: _join, Gaussian: _compute}[values.instance_class]


def _join(values: Any, i: Any, to: Any) -> None:
    first, cross, second = values
    cut = first.shape[0]
    for k in range(to.shape[0]):
        to[k] = 0
    if i < cut:
        _copy(first[i], to[:cut])
        _copy(cross[i], to[cut:])
    elif i < cut + second.shape[0]:
        for k in range(cut):
            to[k] = cross[k, i - cut]
        _copy(second[i - cut], to[cut:])


@compiled
def _copy(values: Any, to: Any) -> None:
    for k in range(values.shape[0]):
        to[k] = values[k]


def _compute(values: Any, i: Any, to: Any) -> None:
    columns, norms, own, k = values.columns, values.norms, values.norms[i], 0
    for j in range(to.shape[0]):
        to[j] = 0
    while k + 4 <= columns.shape[0]:
        a, b, c, d = columns[k, i], columns[k + 1, i], columns[k + 2, i], columns[k + 3, i]
        z_a, z_b, z_c, z_d = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for j in range(to.shape[0]):
            to[j] += (a * z_a[j] + b * z_b[j]) + (c * z_c[j] + d * z_d[j])
        k += 4
    while k < columns.shape[0]:
        a, z_a = columns[k, i], columns[k]
        for j in range(to.shape[0]):
            to[j] += a * z_a[j]
        k += 1
    for j in range(to.shape[0]):
        to[j] = exp2_nonpositive(values.factor * to[j] - own - norms[j])


def _take(values: Any, i: Any, to: Any) -> None:
    every, at = values.every, values.active[i]
    if every.slot[at] < 0:
        _make_whole_row(values.values, every, at)
    row = every.rows[every.slot[at]]
    for k in range(to.shape[0]):
        to[k] = row[values.active[k]]


# ------------------------------------------------------------------- shrinking


@compiled
def _choose(v: Any, part: Any, active: Any) -> Any:
    """List the variables that are not at a bound beyond all violations.

    Return the worst violation, and how many they are.
    """
    worst = 0.0
    count = begin = 0
    for g in range(v.ends.shape[0]):
        end = v.ends[g]
        most, least = _extremes(v.r[begin:end], v.up[begin:end], v.down[begin:end])
        if most > -0.5 * FAR and least < 0.5 * FAR:
            worst = max(worst, most - least)
        for k in range(begin, end):
            active[count] = k
            beyond_up = v.up[k] < 0.0 and v.r[k] > most
            count += not (beyond_up or (v.down[k] > 0.0 and v.r[k] < least))
        part.ends[g], begin = count, end
    return worst, count


@compiled
def _first(v: Any, count: int) -> Any:
    """Return the first variables, and their memory for rows."""
    room = v.rows.size // count
    rows = v.rows.reshape(-1)[: room * count].reshape((room, count))
    return Whole(
        v.r[:count], v.x[:count], v.low[:count], v.high[:count], v.own[:count], v.up[:count],
        v.down[:count], v.curvatures[:count], v.ends, rows, v.slot[:count], v.made,
    )  # fmt: skip


@compiled
def _gather(v: Any, part: Any, active: Any) -> None:
    """Copy active variables together."""
    for k in range(active.shape[0]):
        at = active[k]
        part.r[k], part.x[k], part.low[k], part.high[k] = v.r[at], v.x[at], v.low[at], v.high[at]
        part.own[k], part.up[k], part.down[k] = v.own[at], v.up[at], v.down[at]
        part.curvatures[k], part.slot[k] = v.curvatures[at], -1
    part.made[0] = 0


@compiled
def _carry_over(values: Any, v: Any, part: Any, active: Any) -> None:
    """Carry what has changed over to all variables."""
    for k in range(active.shape[0]):
        at = active[k]
        if part.x[k] != v.x[at]:
            add_to(values, v, at, part.x[k] - v.x[at])
            v.x[at] = part.x[k]
            _close(at, v.x, v.low, v.high, v.up, v.down)


@compiled
def add_to(values: Any, v: Any, i: int, step: float) -> None:
    """Carry a step of variable i over to all derivatives."""
    if v.slot[i] < 0:
        _make_whole_row(values, v, i)
    row = v.rows[v.slot[i]]
    for k in range(row.shape[0]):
        v.r[k] -= step * row[k]
    v.r[i] += step * (row[i] - v.own[i])
