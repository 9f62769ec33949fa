"""Kernel machines by decomposition on two levels.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within each group

A round takes the variables that violate the optimality conditions most, solves their block of the
problem by pairs (``loops.smo``), and adds the rows of K for those that moved to all scores.
Variables at a bound that cannot move for now are shrunk together with their rows and columns; the
optimality check before an answer is given covers all variables. Once it hardly changes which
variables are free, an active-set step solves their equations.

The rounds are the same wherever kernel values come from: a matrix that is there, for small
problems, searches and paths (``MatrixValues``), or rows computed when needed (``CachedValues``).

Joachims (1998); Fan, Chen & Lin (2005); Hintermüller, Ito & Kunisch (2003).
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.linalg import lapack

from maxmargin import loops
from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates.quadratic import scores_of_rest
from maxmargin.kernels import PreparedRows
from maxmargin.kernels.prepared import FloatArray
from maxmargin.loops.records import Loss, Path, Variables
from maxmargin.problems import losses
from maxmargin.problems.duality import NOTHING, feasible_start, size_of_terms, snapped
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.problem import Iterate, KernelProblem, Point
from maxmargin.problems.row_cache import RowCache
from maxmargin.runtime import clock

# ------------------------------------------------------------------- tubes
#
# ε|β| has a kink at 0: a variable with ε > 0 is split into one that is ≥ 0 and one that is ≤ 0.


class SplitTube(NamedTuple):
    """A problem without ε, and the one that it was made from."""

    problem: KernelProblem
    original: KernelProblem

    @classmethod
    def of(cls, problem: KernelProblem) -> Self:
        """Return the problem as it is, or with two variables for each."""
        if problem.loss.epsilon == 0.0:
            return cls(problem, problem)
        loss = losses.split_tube(problem.loss)
        row, groups = np.tile(problem.row, 2), np.tile(problem.groups, 2)
        return cls(replace(problem, loss=loss, row=row, groups=groups), problem)

    def variables(self, beta: Floats, f: Floats) -> Variables:
        """Return the variables that make up duals, with the scores of their rows."""
        problem = self.problem
        x = beta.copy()
        if problem is not self.original:
            x = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
        target, low, high, shift, _ = problem.loss
        return Variables(target, low, high, shift, problem.groups, x, problem.row, f)

    def iterate(self, x: Floats, primal: float, dual: float, b: Floats) -> Iterate:
        """Return an iterate: the duals that variables make up, and the weights that they imply."""
        beta = x.copy()
        if self.problem is not self.original:
            beta = x[: len(x) // 2] + x[len(x) // 2 :]
        return Iterate(primal, dual, self.original.by_row(beta), b.copy(), beta)


# ------------------------------------------------------------------- where a problem stands


class Measured(NamedTuple):
    """Both bounds at variables, the best intercepts, and the worst violation."""

    gap: float
    dual: float
    b: Floats
    violation: float


def measure(v: Variables, groups: int) -> Measured:
    """Return where variables stand."""
    up, down = np.empty((2, len(v.x)))
    ends, b = np.empty((7, max(1, groups))), np.zeros(max(1, groups))
    violation, dual, _ = loops.decomposition.directions(v, groups, up, down, ends)
    gap = loops.decomposition.duality_gap(v, ends, b, Decomposition.halvings, Decomposition.enough)
    return Measured(gap, dual, b[:groups], violation)


def magnitude(v: Variables, squared_norms: Floats) -> float:
    """Return how large the numbers are whose differences residuals are."""
    lengths = np.sqrt(np.maximum(squared_norms, 0.0))
    coefficients = sum_by_row(v)
    largest = float(np.abs(v.target).max(initial=0.0))
    return largest + float(lengths.max(initial=0.0)) * float(np.abs(coefficients) @ lengths)


def is_nothing(v: Variables, dual: float, lengths: Floats) -> bool:
    """Return whether the optimum, which is between the dual value and 0, is 0 but for rounding.

    So little is left of the terms of the dual that no digit of the optimum could be proved. Rows
    have ``lengths`` only where the best w may be 0 and cost nothing.
    """
    return -dual <= NOTHING * size_of_terms(np.abs(sum_by_row(v)), lengths)


def free_rows(v: Variables) -> Flags:
    """Return which rows have a variable between its bounds."""
    free = np.zeros(len(v.f), bool)
    free[v.at[(v.x > v.low) & (v.x < v.high)]] = True
    return free


def sum_by_row(v: Variables) -> Floats:
    """Return the sum of the variables of each row."""
    return np.bincount(v.at, v.x, minlength=len(v.f)).astype(np.float64, copy=False)


# ------------------------------------------------------------------- active-set steps
#
# The free variables go to where their equations say, as far as bounds allow:
#
#     max  rᵀδ − ½δᵀKδ    s.t.  −down ≤ δ ≤ up,  Σδ = what the group lacks
#
# Primal-dual active sets: variables whose step leads out are held at the bound, those held there
# against their will are let go. One Cholesky factor serves all these equations, by Schur
# complements. If the exchange does not end, the step goes as far as the first bound.


_MOST_HELD = 250  # variables
_EXCHANGES = 30
_RIDGE, _SINGLE_RIDGE = 1e-7, 1e-5  # on the diagonal of the equations, and of those in float32
_EXACT_RIDGE = 1e-15  # for exact steps
_MOST_RIDGE = 1e12  # times the first one
_BY_EIGENVECTORS = 300  # variables: beyond that they cost too much
_RANK = 1e-14
_ROUNDING = 1e-12  # of a bound
_EXACT_SUMS = 1e-14  # of the free variables


class Equations(NamedTuple):
    """The derivative r in free variables, by how much they may go down and up, and their groups."""

    K: FloatArray  # with the shift; in float32 for rough steps, where kernel values are
    r: Floats
    down: Floats
    up: Floats
    member: Floats  # 1 in the column of its group
    lacking: Floats  # of the sum of each group


def active_set_step(equations: Equations, exact: bool) -> Floats | None:
    """Return the step that solves the equations within the bounds, or goes that way; or None.

    An exact one is the smallest where rows depend on each other, so that there are several.
    """
    K, r, down, up, *_ = equations
    step = None
    if exact and len(K) <= _BY_EIGENVECTORS:
        step = _smallest_solution(equations)
        if (step > up * (1 + _ROUNDING)).any() or (-step > down * (1 + _ROUNDING)).any():
            step = None
    if step is None:
        ridge = _RIDGE if K.dtype == np.float64 else _SINGLE_RIDGE
        step = _exchange_bounds(equations, _EXACT_RIDGE if exact else ridge)
    step = _with_sums(np.clip(step, -down, up), equations)
    if step is None:
        return None
    gains = step @ (r - 0.5 * (K @ step.astype(K.dtype, copy=False))) > 0.0
    return step if gains or (exact and np.isfinite(step).all()) else None


def _with_sums(step: Floats, equations: Equations) -> Floats | None:
    """Return the step with the sums it must have, through what stays free; None if it cannot.

    Equations that are all but singular are solved with errors, and a gap is one only where sums are
    right: others may look smaller.
    """
    _, _, down, up, member, lacking = equations
    off = member.T @ step - lacking
    if (np.abs(off) <= _EXACT_SUMS * (member.T @ np.minimum(down, up))).all():
        return step
    bound = (step <= -down) | (step >= up)
    for g in np.flatnonzero(off):
        there = np.minimum(step + down, up - step)
        room = np.where(bound | (member[:, g] == 0), 0.0, np.minimum(there, np.minimum(down, up)))
        if not abs(off[g]) <= 0.5 * room.sum():
            return None
        step = step - off[g] / room.sum() * room
    return step


def _smallest_solution(equations: Equations) -> Floats:
    """Return the smallest solution, whatever the bounds, by eigenvectors of the bordered matrix."""
    K, r, _, _, member, lacking = equations
    size = float(np.diag(K).max(initial=0.0)) or 1.0
    border = np.sqrt(size) * member  # of about the size of K
    zeros = np.zeros((len(lacking), len(lacking)))
    matrix = np.block([[K / size, border / size], [border.T / size, zeros]])
    values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
    there = np.abs(values) > _RANK * len(matrix)
    right = np.concatenate([r / size, lacking / np.sqrt(size)])
    solved = (vectors[:, there] / values[there]) @ (vectors[:, there].T @ right)
    return np.asarray(solved[: len(K)])


def _exchange_bounds(equations: Equations, ridge: float) -> Floats:
    """Return the step with those variables at their bounds that it would lead out."""
    K, r, down, up, member, lacking = equations
    n, groups = member.shape
    factor = _factor(K, ridge)
    # Columns of K⁻¹: those of the sums come first, then those of variables that were ever held.
    inverse = np.empty((n, groups + min(n, _MOST_HELD)), order="F")
    plain, inverse[:, :groups] = _solve(factor, r), _solve(factor, member)
    known, used = np.zeros(n, np.int64), groups
    side, bound = np.zeros(n, np.int64), np.zeros(n)
    first = None
    for _ in range(_EXCHANGES):
        held = np.flatnonzero(side)
        new = held[known[held] == 0]
        if used + len(new) > inverse.shape[1]:
            break
        if len(new):
            known[new] = np.arange(used, used + len(new))
            unit = np.zeros((n, len(new)), order="F")
            unit[new, np.arange(len(new))] = 1.0
            inverse[:, used : used + len(new)] = _solve(factor, unit)
            used += len(new)
        columns = inverse[:, np.append(np.arange(groups), known[held])]
        A = np.vstack([member.T @ columns, columns[held]])
        off = np.append(member.T @ plain - lacking, plain[held] - bound[held])
        forces = _forces(A, off)
        step = plain - columns @ forces
        first = step if first is None else first
        if not _exchange(step, forces[groups:], held, down, up, side, bound):
            return np.where(side == 0, step, bound)
    assert first is not None
    room = np.where(first > 0, up, down)
    far = np.abs(first) > room
    return first * float((room[far] / np.abs(first[far])).min(initial=1.0))


def _factor(K: FloatArray, ridge: float) -> FloatArray:
    """Return the Cholesky factor of K + ridge·I, with a larger ridge if it takes one."""
    factorise = lapack.dpotrf if K.dtype == np.float64 else lapack.spotrf
    ridge *= (max(0.0, float(K.diagonal().max())) or 1.0) * np.sqrt(len(K))
    most = _MOST_RIDGE * ridge
    while ridge <= most:
        lifted = K.copy(order="F")
        lifted.ravel("K")[:: len(K) + 1] += ridge
        factor, failed = factorise(lifted, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return np.asarray(factor)
        ridge *= 10.0
    return np.eye(len(K), dtype=K.dtype)


def _solve(factor: FloatArray, right: Floats) -> Floats:
    if not right.size:
        return right
    solve = lapack.dpotrs if factor.dtype == np.float64 else lapack.spotrs
    return np.asarray(solve(factor, right, lower=1)[0], np.float64)


def _forces(A: Floats, off: Floats) -> Floats:
    """Return the forces that keep the sums and bring held variables exactly to their bounds."""
    if not len(off):
        return off
    # Columns of K⁻¹ in few digits are not quite symmetric, and the sums hold to all digits.
    _, _, forces, failed = lapack.dgesv(A, off)
    # Where held variables determine each other, any forces that do it will do.
    return np.asarray(np.linalg.lstsq(A, off, rcond=None)[0] if failed else forces)


def _exchange(step: Floats, forces: Floats, held: Ints, down: Floats, up: Floats, side: Ints,
              bound: Floats) -> bool:  # fmt: skip
    """Hold variables that the step leads out, let go those held in vain; return whether any."""
    vain = held[forces * side[held] < 0.0]
    side[vain] = 0
    loose = side == 0
    above = np.flatnonzero(loose & (step > up * (1 + _ROUNDING)))
    below = np.flatnonzero(loose & (-step > down * (1 + _ROUNDING)))
    side[above], bound[above] = 1, up[above]
    side[below], bound[below] = -1, -down[below]
    return len(vain) + len(above) + len(below) > 0


# ------------------------------------------------------------------- kernel values


class Workspace(NamedTuple):
    """Memory for a block of variables, and for the part of a matrix that active rows have."""

    block: FloatArray
    copied: FloatArray

    @classmethod
    def of(cls, rows: int, dtype: npt.DTypeLike) -> Self:
        """Return memory for problems of up to this many rows."""
        return cls(np.empty(_MATRIX_BLOCK**2, dtype), np.empty(int((COPIED * rows) ** 2), dtype))


COPIED = 0.6  # part of the rows of a problem that are copied together at most
_MATRIX_BLOCK = 513  # variables, one of which takes any value


class MatrixValues:
    """Kernel values of a problem's rows in a matrix that is there; active rows are copied together.

    ``place`` says where in the matrix the rows are, ascending. If the matrix has fewer digits than
    the features, exact values come from these.
    """

    instant = True

    def __init__(self, K: FloatArray, place: Ints, workspace: Workspace,
                 features: KernelFeatures | None = None) -> None:  # fmt: skip
        self._K, self._place, self._runs, self._workspace = K, place, _runs(place), workspace
        self._features = None if K.dtype == np.float64 else features
        self.pace, self.memory = ON_MATRIX, workspace.block
        self.diagonal = K[place, place].astype(np.float64)
        self.activate(np.arange(len(place)))

    @classmethod
    def of(cls, features: KernelFeatures, precise: bool) -> Self:
        """Compute the matrix of a problem's rows."""
        gram, rows = features.gram, features.rows
        K = gram.block(rows, rows, fast=not precise)
        return cls(K, np.arange(len(rows)), Workspace.of(len(rows), K.dtype), features)

    def activate(self, rows: Ints, v: Variables | None = None) -> None:
        """Make these rows the active ones."""
        self._rows, count = rows, len(rows)
        self.active = self._K, self._place, self._runs
        if count < len(self._place):
            matrix = self._workspace.copied[: count**2].reshape(count, count)
            loops.decomposition.take_square(self._K, self._place[rows], matrix)
            self.active = matrix, np.arange(count), np.array([[0, count, 0]])

    def takes(self, count: int) -> bool:
        """Return whether this many rows can be active without the others."""
        return count <= COPIED * len(self._place) and count**2 <= len(self._workspace.copied)

    def block(self, at: Ints) -> FloatArray:
        """Return the square of the matrix for active rows of a block."""
        matrix, place, _ = self.active
        out = self.memory[: len(at) ** 2].reshape(len(at), len(at))
        loops.decomposition.take_square(matrix, place[at], out)
        return out

    def square(self, at: Ints, exact: bool) -> FloatArray:
        """Return the square of the matrix for any number of active rows, if exact in float64."""
        if exact and self._features is not None:
            rows = self._features.rows[self._rows[at]]
            return self._features.gram.block(rows, rows)
        matrix, place, _ = self.active
        out = np.empty((len(at), len(at)), matrix.dtype)
        loops.decomposition.take_square(matrix, place[at], out)
        return out.astype(np.float64, copy=False) if exact else out

    def add_to(self, f: Floats, at: Ints, steps: Floats, free: Flags) -> None:
        """Add the rows of what moved, times the steps, to the scores of all active rows."""
        matrix, place, runs = self.active
        loops.decomposition.add_rows(matrix, place[at], steps, runs, f)

    def dot(self, coefficients: Floats, rows: Ints, exact: bool = False) -> Floats:
        """Return the scores of rows for coefficients of all rows."""
        if exact and self._features is not None:
            return self._features.gram.dot(coefficients, self._features.rows)[rows]
        f, used = np.zeros(len(self._place)), np.flatnonzero(coefficients)
        loops.decomposition.add_rows(self._K, self._place[used], coefficients[used], self._runs, f)
        return f[rows]


def _runs(place: Ints) -> Ints:
    """Return ascending places as runs: (begin, end, first place)."""
    if not len(place):
        return np.empty((0, 3), np.int64)
    cuts = np.flatnonzero(np.diff(place) != 1) + 1
    begin, end = np.append(0, cuts), np.append(cuts, len(place))
    return np.stack([begin, end, place[begin]], axis=1)


class CachedValues:
    """Kernel values of a problem's rows, computed as they are needed and kept where it pays."""

    instant = False
    memory = np.empty(0)

    def __init__(self, features: KernelFeatures, precise: bool) -> None:
        self._gram, self._used, self._precise = features.gram, features.rows, precise
        self._features, self.diagonal, self.pace = features, features.squared_norms(), ON_ROWS
        self._rows = np.arange(len(features))
        self._moves, self._unkept = np.zeros(len(features), np.int64), self._gram.unkept
        self._cache = RowCache(self._gram, self._prepared(self._rows))

    def _prepared(self, rows: Ints) -> PreparedRows:
        tiles = self._gram.exact if self._precise else self._gram.tiles
        return tiles if len(rows) == len(self._gram) else tiles[self._used[rows]]

    def activate(self, rows: Ints, v: Variables) -> None:
        """Make these rows, more than before or fewer, the active ones; keep what may be needed."""
        places = np.flatnonzero(free_rows(v)[self._rows])
        if len(rows) > len(self._rows):
            self._cache.grow(self._prepared(rows), np.searchsorted(rows, self._rows), places)
        elif len(rows) < len(self._rows):
            self._cache.shrink(np.searchsorted(self._rows, rows), places)
        self._rows = rows

    def takes(self, count: int) -> bool:
        """Return whether this many rows can be active without the others."""
        return True

    def block(self, at: Ints) -> FloatArray:
        """Return the square of the matrix for active rows of a block."""
        return self._cache.block(at)

    def square(self, at: Ints, exact: bool) -> Floats:
        """Return the square of the matrix for any number of active rows, in float64."""
        rows = self._used[self._rows[at]]
        return self._gram.block(rows, rows)

    def add_to(self, f: Floats, at: Ints, steps: Floats, free: Flags) -> None:
        """Add the rows of what moved, times the steps, to the scores of all active rows.

        Rows of what is free are kept, as it will move again: where values are cheap, once they have
        been computed as often as to keep them costs.
        """
        rows, weights = at, steps
        if not (at[1:] > at[:-1]).all():
            rows, which = np.unique(at, return_inverse=True)
            weights = np.bincount(which, steps, minlength=len(rows)).astype(np.float64, copy=False)
        moves = self._moves[self._rows[rows]] = self._moves[self._rows[rows]] + 1
        self._cache.add_to(f, rows, weights, free[rows] & (moves > self._unkept))

    def dot(self, coefficients: Floats, rows: Ints, exact: bool = False) -> Floats:
        """Return the scores of rows for coefficients of all rows."""
        moved = np.flatnonzero(coefficients)
        fast = not (exact or self._precise)
        return self._gram.dot(coefficients[moved], self._used[rows], self._used[moved], fast=fast)

    def scores_of_rest(self, coefficients: Floats) -> tuple[Ints, Floats] | None:
        """Return rows without a coefficient and their scores, by the pass of the certificate."""
        return None if self._precise else scores_of_rest(self._features, coefficients)


# ------------------------------------------------------------------- rounds


class _State:
    """All variables, the active ones among them (``part``, those of the rows ``rows``), the clock.

    Scores of shrunk rows are those of when they were shrunk.
    """

    def __init__(self, method: "Decomposition", variables: Variables, totals: Floats,
                 values: MatrixValues | CachedValues) -> None:  # fmt: skip
        self.method, self.values, self.totals = method, values, totals
        self.groups, self.pace = len(totals), method.pace or values.pace
        Scratch = loops.decomposition.Scratch
        self.scratch = Scratch.of(values.memory, len(variables.x), self.groups, 2 * self.pace.fresh)
        self.up, self.down, self.ends, self.b = self.scratch[1:5]
        self.b[:] = 0.0
        pace = self.pace
        self.course = loops.decomposition.Course(
            pace.precision, method.steps, pace.fresh, method.idle_rounds, method.least_gain,
            method.stable, method.step_pace, method.most_free,
        )  # fmt: skip
        self.own = values.diagonal[variables.at] + variables.shift
        self.sums_are_cheap = method.precise or len(variables.f) <= method.polished
        self.lengths: Floats | None = None  # of rows, where the optimum may be 0
        self.rounds = self.checks = self.since_check = 0
        self.last_round = 1 << 62
        self.dual, self.goal, self.violation = 0.0, 0.0, np.inf
        self.fresh, self.moved = pace.first_fresh, 0
        self.begin(variables)

    def begin(self, variables: Variables) -> None:
        """Start at these variables, all of them active."""
        self.all = variables
        self.shrunk: list[tuple[Ints, Floats]] = []  # rows, and all coefficients at that time
        self.gap = self.gap_before = self.relative_gap = np.inf
        self.stepped_at = self.summed_at = self.rounds
        self.unstable, self.work_done = np.inf, 0.0
        self.stalled = self.closed = self.nothing = False
        self._activate(np.arange(len(variables.f)))

    def _activate(self, rows: Ints) -> None:
        """Make the variables of these rows the active ones."""
        self.rows, v = rows, self.all
        self.variables: Any = slice(None)
        self.part, self.complete = v, len(rows) == len(v.f)
        if not self.complete:
            place = np.full(len(v.f), -1)
            place[rows] = np.arange(len(rows))
            at = place[v.at]
            chosen = self.variables = np.flatnonzero(at >= 0)
            parts: Any = [*(values[chosen] for values in v[:6]), at[chosen], v.f[rows]]
            self.part = Variables._make(parts)
        self.values.activate(rows, v)
        self.diagonal = self.own[self.variables]
        self.scratch.chosen_at[: len(self.part.x)] = -2
        self.idle_rounds = 0

    @property
    def over(self) -> bool:
        """Whether all rounds that are allowed were made."""
        return self.rounds >= self.last_round

    # ------------------------------------------------------------ one round

    def round(self) -> bool:
        """Solve the block of the worst variables; return False if a check is due instead."""
        method, values = self.method, self.values
        if self.idle_rounds >= method.idle_rounds or self.since_check >= self.pace.rounds:
            return False
        if self.pace.batch:
            return self._make_rounds(self.pace.batch)
        violation, free = self._directions()
        if self.since_check % method.shrink_every == 0 and self._shrink():
            violation, free = self._directions()
        if violation <= 0.0:
            self.idle_rounds = method.idle_rounds
            return False
        gap = loops.decomposition.duality_gap(self.part, self.ends, self.b.copy(), 1, 0.0)
        if self._check_is_due(gap):
            return False
        if self._step_is_due(free):
            self.step()
            violation, free = self._directions()
        self.rounds += 1
        self.since_check += 1
        chosen, stops = self._choose(free)
        v, at = self.part, self.part.at[chosen]
        low, high, before = v.low[chosen], v.high[chosen], v.x[chosen]
        x, began = before.copy(), v.target[chosen] - v.f[at] - v.shift[chosen] * before
        r, tol, steps = began.copy(), self.pace.precision * violation, method.steps * len(at)
        block: Any = [values.block(at), self.diagonal[chosen], r, x, low, high]
        if not self.groups:
            block = _free_the_sum(*block)
            stops[0] += 1
            r, x = block[2][:-1], block[3][:-1]
        K, *rest = block
        made = loops.smo.pairs(K, *rest, stops, tol, steps)
        v.x[chosen] = x
        gain, moved = 0.5 * float((began + r) @ (x - before)), np.flatnonzero(x != before)
        values.add_to(v.f, at[moved], (x - before)[moved], free_rows(v))
        was_free = (before > low) & (before < high)
        changed = int(np.count_nonzero(was_free != ((x > low) & (x < high))))
        self.work_done += 6.0 * made * len(at) + len(moved) * len(v.f) + 8.0 * len(at) ** 2
        self.moved = len(moved)
        self.dual += gain
        idle = gain <= method.least_gain * abs(self.dual)
        self.idle_rounds = self.idle_rounds + 1 if idle else 0
        self.unstable = changed if self.unstable == np.inf else 0.7 * self.unstable + 0.3 * changed
        return True

    def _check_is_due(self, gap: float) -> bool:
        """Return whether the active variables are done, and shrunk ones may not be."""
        if not self.since_check or gap > self.goal * abs(self.dual):
            return False
        self.closed = gap <= self.method.wanted * abs(self.dual)
        done = self.closed or self.complete or self.values.instant
        if not done and not self._some_shrunk_violate():
            self.goal = self.pace.below * self.method.wanted
            return False
        return True

    def _make_rounds(self, batch: int) -> bool:
        """Make rounds in compiled code."""
        values = self.values
        assert isinstance(values, MatrixValues)
        if len(self.rows) >= 3 * self.pace.fresh:
            self._directions()
            self._shrink()
        record = np.array([self.dual, self.idle_rounds, self.unstable, self.work_done])
        begun, last = self.rounds, min(self.rounds + batch, self.last_round)
        self.rounds, due = loops.decomposition.make_rounds(
            *values.active, self.part, self.diagonal, self.groups, begun, last, self.goal,
            self.course, record, self.scratch, loops.decomposition.Tour.nowhere(),
        )  # fmt: skip
        self.dual, self.idle_rounds, self.unstable, self.work_done = record.tolist()
        self.since_check += self.rounds - begun
        if due:
            self.step()
        return due or self.rounds == last

    def _directions(self) -> tuple[float, int]:
        v, n = self.part, len(self.part.x)
        violation, _, free = loops.decomposition.directions(
            v, self.groups, self.up[:n], self.down[:n], self.ends
        )
        return violation, free

    def _choose(self, free: int) -> tuple[Ints, Ints]:
        """Return the variables of the next block, by group, and where the groups end.

        More are new if many of the last block moved, and up to more if many are free.
        """
        pace, n = self.pace, len(self.part.x)
        most = pace.fresh if self.values.instant else max(pace.fresh, free // 2)
        if self.moved > 0.5 * self.fresh:
            self.fresh *= 2
        elif self.moved < 0.25 * self.fresh:
            self.fresh = max(pace.first_fresh, self.fresh // 2)
        fresh = self.fresh = min(self.fresh, most, 2 * pace.fresh)
        count = loops.decomposition.choose(
            self.part.group, self.up[:n], self.down[:n], self.ends, fresh, self.rounds, self.scratch
        )
        return self.scratch.chosen[:count], self.scratch.stops.copy()

    # ------------------------------------------------------------ shrinking

    def _shrink(self) -> bool:
        """Shrink rows whose variables are at a bound and beyond all violations; return whether."""
        v, n, pace = self.part, len(self.part.x), self.pace
        if len(self.rows) < 3 * pace.fresh:
            return False
        group = np.maximum(v.group, 0) if self.groups > 1 else 0
        most, least = self.ends[0][group], self.ends[1][group]
        up, down = self.up[:n], self.down[:n]
        idle = (np.isneginf(up) & (down > most)) | (np.isposinf(down) & (up < least))
        stays = np.zeros(len(self.rows), bool)
        stays[v.at[~idle]] = True
        rows = self.rows[stays]
        if len(rows) > (1 - pace.worth_shrinking) * len(stays) or not self.values.takes(len(rows)):
            return False
        self._store_active()
        self.shrunk.append((self.rows[~stays], sum_by_row(self.all)))
        self._activate(rows)
        return True

    def _store_active(self) -> None:
        if not self.complete:
            self.all.x[self.variables] = self.part.x
            self.all.f[self.rows] = self.part.f

    def _unshrink(self) -> float:
        """Compute the scores of all shrunk rows; return by how much they changed.

        If the active variables are done, this may be the last check, and it computes what the
        certificate needs.
        """
        self._store_active()
        now, f, before = sum_by_row(self.all), self.all.f, self.all.f.copy()
        found = None
        if self.closed and isinstance(self.values, CachedValues):
            found = self.values.scores_of_rest(now)
        count = 0
        for rows, then in self.shrunk:
            count += len(rows)
            some = rows if found is None else rows[now[rows] != 0]
            f[some] += self.values.dot(now - then, some)
        if found is not None:
            f[found[0]] = found[1]
        before[self.rows] = f[self.rows]
        self.shrunk = []
        return float(np.linalg.norm(f - before) / np.sqrt(max(1, count)))

    def _some_shrunk_violate(self) -> bool:
        """Return whether any of a sample of the shrunk rows violates anything."""
        self._store_active()
        v, now, some = self.all, sum_by_row(self.all), np.zeros(len(self.all.f), bool)
        f, step = v.f.copy(), max(1, (len(v.f) - len(self.rows)) // self.method.probe)
        for rows, then in self.shrunk:
            some[rows[::step]] = True
            f[rows[::step]] += self.values.dot(now - then, rows[::step])
        k = np.flatnonzero(some[v.at])
        b = 0.5 * (self.ends[0] + self.ends[1])[np.maximum(v.group[k], 0)] if self.groups else 0.0
        r = v.target[k] - f[v.at[k]] - v.shift[k] * v.x[k] - b
        wrong = ((v.x[k] < v.high[k]) & (r > 0.0)) | ((v.x[k] > v.low[k]) & (r < 0.0))
        return bool(wrong.any())

    def _activate_more(self, margin: float) -> None:
        """If what is shrunk violates anything, activate what would if scores changed so much."""
        v = self.all
        if self.values.instant:  # what is idle is shrunk again before the next round
            self._activate(np.arange(len(v.f)))
            return
        b = self.b[np.maximum(v.group, 0)]
        active = np.zeros(len(v.f), bool)
        active[self.rows] = True
        up, down = self.up - b, b - self.down
        if not active[v.at[(up > 0.0) | (down > 0.0)]].all():
            active[v.at[(up > -margin) | (down > -margin)]] = True
        rows = np.flatnonzero(active)
        if len(rows) < len(v.f):
            self.shrunk = [(np.flatnonzero(~active), sum_by_row(v))]
        self._activate(rows)

    def focus(self, part: float) -> None:
        """Shrink what would violate nothing even if scores changed by this part of their size."""
        self.rows = np.empty(0, np.int64)
        self._activate_more(part * float(np.sqrt(np.mean(np.square(self.all.f)))))

    # ------------------------------------------------------------ optimality checks

    def check(self) -> None:
        """Compute both bounds from all variables; those that violate anything become active."""
        method, complete, change = self.method, self.complete, 0.0
        self.checks += 1
        if not complete:
            change = self._unshrink()
        gap = self._measure()
        closed = gap <= method.wanted * abs(self.dual)
        if method.precise and self.summed_at < self.rounds and closed:
            self._sum_up()  # many changes, each rounded, may make a gap look closed
            gap = self._measure()
        if self.lengths is not None and is_nothing(self.all, self.dual, self.lengths):
            self.nothing, gap, self.dual = True, 0.0, 0.0
        else:
            self.nothing = False
        self.gap, self.gap_before, self.since_check, self.closed = gap, self.gap, 0, False
        relative = self.relative_gap = gap / max(abs(self.dual), 1e-300)
        least = self.pace.below * min(method.wanted, relative)
        self.goal = min(max(self.pace.fall * relative, least), method.rough)
        if self.goal <= method.wanted:  # the next check is to be the last
            self.goal = min(self.goal, self.pace.below * method.wanted)
        self.stalled = complete and self.idle_rounds >= method.idle_rounds
        if not complete:
            self._activate_more(change)

    def _measure(self) -> float:
        """Set directions, intercepts and the dual objective of all variables; return the gap."""
        v, method = self.all, self.method
        directions, gap = loops.decomposition.directions, loops.decomposition.duality_gap
        self.violation, self.dual, self.free = directions(
            v, self.groups, self.up, self.down, self.ends
        )
        return float(gap(v, self.ends, self.b, method.halvings, method.enough))

    @property
    def slow(self) -> bool:
        """Whether the gap has hardly become smaller since the check before, after many rounds."""
        enough = self.rounds - self.stepped_at >= self.method.before_step
        return enough and self.gap > self.method.slow * self.gap_before

    # ------------------------------------------------------------ active-set steps

    def _step_is_due(self, free: int) -> bool:
        """Return whether hardly any variable becomes free or bounded, and rounds cost as much."""
        method = self.method
        if not self.values.instant or not 2 < free <= method.most_free:
            return False
        paid = self.work_done > method.step_pace * (300.0 + free) * free**2
        return paid and self.unstable <= method.stable * free + 0.5

    def step(self, exact: bool = False) -> None:
        """Move the free variables to where their equations say."""
        self.stepped_at, self.unstable, self.work_done = self.rounds, np.inf, 0.0
        self._store_active()
        v = self.part
        free = np.flatnonzero((v.x > v.low) & (v.x < v.high))
        if not 0 < len(free) <= self.method.most_free:
            return
        at, x, group = v.at[free], v.x[free], v.group[free]
        sums = np.bincount(self.all.group + 1, self.all.x, minlength=self.groups + 1)[1:]
        here = np.unique(group[group >= 0])
        K = self.values.square(at, exact)
        K.ravel()[:: len(K) + 1] += v.shift[free]
        equations = Equations(
            K, v.target[free] - v.f[at] - v.shift[free] * x, x - v.low[free], v.high[free] - x,
            (group[:, np.newaxis] == here).astype(np.float64), (self.totals - sums)[here],
        )  # fmt: skip
        step = active_set_step(equations, exact)
        if step is None:
            return
        to = np.where(step == equations.up, v.high[free], x + step)
        v.x[free] = np.where(step == -equations.down, v.low[free], to)
        if exact:
            self._store_active()
            self._sum_up()
        else:
            self.values.add_to(v.f, at, step, free_rows(v))

    def _sum_up(self) -> None:
        """Compute the scores of all rows again, in float64."""
        self.summed_at, now = self.rounds, sum_by_row(self.all)
        self.all.f[:] = self.values.dot(now, np.arange(len(now)), exact=True)
        if not self.complete:
            self.part.f[:] = self.all.f[self.rows]
            self.shrunk = [(rows, now) for rows, _ in self.shrunk]

    def steps_on(self) -> bool:
        """Step where pairs gain nothing any more; return whether that closed part of the gap.

        A dual objective that is right to rounding may have a gap of the root of that.
        """
        before, self.idle_rounds = self.relative_gap, 0
        self.step(exact=self.sums_are_cheap)
        self.check()
        return self.relative_gap < self.method.slow * before

    def polish(self) -> bool:
        """Make an exact active-set step; return whether nothing is left to gain."""
        if not self.sums_are_cheap:
            return False
        self.step(exact=True)
        self.check()
        size = magnitude(self.all, self.values.diagonal)
        return bool(self.violation <= self.method.rounding * size)


def _free_the_sum(K: FloatArray, *values: Floats) -> tuple[FloatArray, ...]:
    """Return a block with one variable more, which takes any value and changes nothing else."""
    padded = np.zeros((len(K) + 1, len(K) + 1), K.dtype)
    padded[:-1, :-1] = K
    last = 0.0, 0.0, 0.0, -np.inf, np.inf
    return padded, *(np.append(*pair) for pair in zip(values, last, strict=True))


# ------------------------------------------------------------------- the solver


@dataclass(frozen=True)
class Pace:
    """How rounds go on, by how much kernel values cost."""

    first_fresh: int  # variables that are new in the first block; twice as many in each to come
    fresh: int  # the most; those of the round before stay
    precision: float  # part of the violation down to which a block is solved
    worth_shrinking: float  # part of the active rows, if that many can be shrunk
    fall: float  # gap of the active variables, as part of that before, that calls for a check
    rounds: int  # without a check
    below: float  # part of the wanted gap that those of the active variables have before a check
    batch: int = 0  # rounds made at once, in compiled code


ON_ROWS = Pace(128, 512, precision=0.1, worth_shrinking=0.2, fall=0.002, rounds=100, below=0.3)
ON_MATRIX = Pace(256, 256, precision=0.1, worth_shrinking=0.4, fall=0.1, rounds=8, below=0.5)
IN_BATCHES = Pace(
    192, 192, precision=0.1, worth_shrinking=0.4, fall=0.1, rounds=1000, below=0.5, batch=16
)


@dataclass(frozen=True)
class Decomposition:
    """Settings of the method."""

    wanted: float = 1e-4  # relative gap at which shrunk variables are checked again
    precise: bool = False  # kernel values in float64 throughout
    exact_start: bool = (
        False  # scores of the start in float64: changes, and their rounding, are small
    )
    checks: int | None = None  # of all variables, after which it gives up

    sampled: int = 10_000  # rows beyond which a part of them is solved first
    sample: float = 0.25  # that part
    sample_gap: float = 0.05  # relative gap at which it is solved
    sample_margin: float = 0.3  # by which scores change then, as a part of their size

    most_on_matrix: int = 1500  # rows up to which the matrix is computed first of all
    steps: int = 20  # of pairs in a block, for each of its variables
    shrink_every: int = 4  # rounds
    rough: float = 1e-2  # gap of the active variables that calls for a check in any case
    probe: int = 512  # shrunk rows that are looked at before a check of all at a rough gap
    halvings: int = 40  # of the interval that an intercept is in
    enough: float = 0.02  # part of the gap that the choice of b may cost

    most_free: int = 2500  # variables in an active-set step
    stable: float = 0.1  # part of the free variables that may change in a round before a step
    step_pace: float = 0.1  # work of rounds, as part of that of a step, between two of these
    slow: float = 0.5  # of the gap before, above which a check calls for an active-set step
    before_step: int = 40  # rounds

    start_rounding: float = 0.1  # of the gap wanted: scores of a start may be off by that much
    idle_rounds: int = 3  # without any gain, that end it
    least_gain: float = 1e-14  # of the objective, below which a round has gained nothing
    pace: Pace | None = None  # by where kernel values come from
    polished: int = 3000  # rows up to which free variables make exact active-set steps
    rounding: float = 1e-14  # of the numbers in a residual: a violation that is none

    def iterates(self, problem: KernelProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each optimality check, unfinished ones in between.

        These, and one after the time is over, have the variables as they are: their bounds, known
        from the last check, are not those of these variables.
        """
        sampled = start.beta is None and self.sampled < len(problem) and not problem.totals.any()
        if sampled:
            start = yield from self._solve_sample(problem)
        fit = _Fit(self, problem, start, rough=sampled)
        try:
            yield from self._rounds(fit, fit.state, sampled)
        except clock.OutOfTimeError:
            yield fit.now()
            raise

    def _solve_sample(self, problem: KernelProblem) -> Generator[Iterate, None, Point]:
        """Solve the problem of some rows, yielding unfinished iterates; return where to start.

        Hardly any row of the whole matrix is then computed for a variable that ends at 0.
        """
        n = len(problem)
        count = max(self.most_on_matrix, int(self.sample * n))
        rows = np.sort(np.random.default_rng(0).permutation(n)[:count])
        inside = np.isin(problem.row, rows)
        rough, beta = replace(self, wanted=self.sample_gap), np.zeros(len(problem.row))
        for iterate in rough.iterates(problem.take(rows), Point()):
            beta = np.zeros(len(problem.row))
            beta[inside] = iterate.beta
            w = problem.by_row(beta)
            done = iterate.finished and iterate.relative_gap <= self.sample_gap
            settled = done or iterate.settled
            yield Iterate(np.inf, -np.inf, w, iterate.b, beta, finished=False, settled=settled)
            if done:
                break
        return Point(None, 0.0, beta)

    def _rounds(self, fit: "_Fit", state: _State, sampled: bool) -> Iterator[Iterate]:
        while True:
            state.check()
            if sampled:
                state.focus(self.sample_margin)
                sampled = False
            yield fit.best()
            if self.checks is not None and state.checks > self.checks:
                return
            if state.relative_gap <= self.wanted:
                if state.nothing or state.polish():
                    break
                yield fit.best()
            if state.stalled and (state.relative_gap <= self.wanted or not state.steps_on()):
                break
            fit.best()
            if state.slow:
                state.step()
            while state.round():
                if not state.values.instant:
                    yield fit.now()
        yield replace(fit.best(), converged=True)


_SINGLE = 0.5 * float(np.finfo(np.float32).eps)


class _Fit:
    """A problem on its way, and the best iterate so far."""

    def __init__(
        self, method: Decomposition, problem: KernelProblem, start: Point, rough: bool
    ) -> None:
        self.tube = SplitTube.of(problem)
        features, stated = problem.features, self.tube.problem
        features.squared_norms()  # first of all: it says so if values overflow
        beta = start.beta
        if beta is None:
            beta = feasible_start(problem.loss, problem.groups, problem.totals)
        values: MatrixValues | CachedValues
        if len(features) <= method.most_on_matrix:
            values = MatrixValues.of(features, method.precise)
        else:
            values = CachedValues(features, method.precise)
        coefficients = problem.by_row(beta)
        hidden = float(np.linalg.norm(coefficients) * values.diagonal.max(initial=0.0)) * _SINGLE
        shows = not hidden <= method.start_rounding * method.wanted
        exact = method.exact_start or (shows and not rough)
        scores = values.dot(coefficients, np.arange(len(features)), exact)
        self.state = _State(method, self.tube.variables(beta, scores), stated.totals, values)
        self.state.lengths = problem.lengths()
        self._best = self._iterate(np.inf, -np.inf)

    def _iterate(self, primal: float, dual: float) -> Iterate:
        state = self.state
        x = state.all.x.copy()
        x[state.variables] = state.part.x
        return self.tube.iterate(x, primal, dual, state.b[: state.groups])

    def best(self) -> Iterate:
        """Return the best iterate, which may be that of the last check.

        Weights are those that the duals imply, so both bounds come from one point.
        """
        state, best = self.state, self._best
        if state.gap <= best.primal - best.dual:
            self._best = self._iterate(state.dual + state.gap, state.dual)
        return self._best

    def now(self) -> Iterate:
        """Return the variables as they are, feasible at any time, with the bounds known so far."""
        return self._iterate(self._best.primal, self._best.dual).unfinished()


# ------------------------------------------------------------------- from cost to cost


ROUNDS = 20_000  # for each cost
_STUCK = 30  # checks at which nothing is better
_AT_ONCE = 300_000  # rounds times variables in one compiled call


@dataclass(frozen=True)
class OnMatrix:
    """A problem on rows of a matrix, solved at rising costs: its loss is that at cost 1.

    It has at most one intercept.
    """

    loss: Loss
    free: bool  # whether there is an intercept
    place: Ints  # its rows in the matrix, ascending
    at: Ints  # the row of each variable, among these
    x: Floats  # where to start at the first cost; then the solution at the last
    f: Floats  # its scores

    split: bool  # whether a dual with a kink at 0 is two variables, one ≥ 0 and one ≤ 0

    @classmethod
    def stated(cls, loss: Loss, free: bool, rows: Ints) -> Self:
        """Return a problem whose duals belong to these rows of the matrix."""
        place, at = np.unique(rows, return_inverse=True)
        split = loss.epsilon > 0
        if split:
            loss, at = losses.split_tube(loss), np.tile(at, 2)
        return cls(loss, free, place, at, np.zeros(len(at)), np.zeros(len(place)), split)

    @property
    def duals(self) -> Floats:
        """The solution."""
        return np.asarray(np.sum(np.split(self.x, 2), axis=0)) if self.split else self.x

    @property
    def rows(self) -> Ints:
        """The row of the matrix that each dual belongs to."""
        return self.place[self.at[: len(self.at) // (1 + self.split)]]

    def restart(self, duals: Floats) -> None:
        """Start from duals that are feasible at the first cost."""
        halves = [np.maximum(duals, 0.0), np.minimum(duals, 0.0)]
        self.x[:] = np.concatenate(halves) if self.split else duals

    def start(self, cost: float, duals: Floats, scores: Floats) -> None:
        """Start from duals, as far as limits and sum allow; scores say which give way first."""
        low, high = cost * self.loss.low, cost * self.loss.high
        self.x[:] = np.clip(np.tile(duals, 1 + self.split), low, high)
        if self.free:
            x = _balance(self.loss, low, high, self.x, scores[self.at])
            self.x[:] = snapped(x, low, high)

    def solve(
        self,
        K: FloatArray,
        costs: Floats,
        tol: float,
        workspace: Workspace,
        judged: Ints | None = None,
        rounds: int = ROUNDS,
        starts: Floats | None = None,
    ) -> Path:
        """Solve at ascending costs to relative gaps of ``tol``; judge rows of the matrix.

        Each starts from the solution at the cost before, or from duals that ``starts`` has for it.
        """
        judged = np.empty(0, np.int64) if judged is None else judged
        count, values = len(costs), MatrixValues(K, self.place, workspace)
        path = Path(
            np.zeros((count, len(self.place))),
            np.zeros((count, len(judged))),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.int64),
            np.zeros((count, len(self.x) // (1 + self.split))),
        )
        variables = self._variables(float(costs[0]))
        if starts is None:
            self.f[:] = values.dot(sum_by_row(variables), np.arange(len(self.f)))
            starts = np.empty((0, 0))
        rough = max(Decomposition.rough, 0.5 * tol)
        method = Decomposition(tol, halvings=1, most_free=1500, rough=rough, pace=IN_BATCHES)
        state = _State(method, variables, np.zeros(int(self.free)), values)
        most = max(1, int(_AT_ONCE / len(self.x)))
        tour = loops.decomposition.Tour(
            np.array(costs),
            self.loss,
            starts,
            _runs(judged),
            path,
            np.zeros(1, np.int64),
            tol,
            most,
        )
        while tour.at[0] < count:
            _follow(state, values, tour, rounds)
        return path

    def _variables(self, cost: float) -> Variables:
        target, low, high, shift, _ = self.loss
        group = np.full(len(self.x), 0 if self.free else -1)
        return Variables(target, cost * low, cost * high, shift, group, self.x, self.at, self.f)


def _follow(state: _State, values: MatrixValues, tour: Any, rounds: int) -> None:
    """Solve at one cost after the other, and the first that takes many rounds by itself."""
    v, k = state.all, tour.at
    loops.decomposition.make_rounds(
        *values.active, v, state.own, state.groups, 0, min(state.pace.batch, rounds), 0.0,
        state.course, np.zeros(4), state.scratch, tour,
    )  # fmt: skip
    if k[0] == len(tour.costs):
        return
    begun, made = state.rounds, tour.path.rounds[k[0]]
    state.last_round = begun + rounds - int(made)
    state.begin(v)
    tour.path.gaps[k[0]] = _close_gap(state, tour.tol)
    tour.path.rounds[k[0]] = made + state.rounds - begun
    loops.decomposition.keep_solution(*values.active[:2], v, state.groups, state.scratch, tour)


def _close_gap(state: _State, tol: float) -> float:
    """Make rounds until the relative gap is at tol; return it."""
    least, highest, stuck = np.inf, -np.inf, 0
    while True:
        state.check()
        gap, dual = state.gap, state.dual
        size = max(abs(dual), abs(dual + gap))
        better = gap < least or dual > highest + 1e-12 * abs(dual)
        least, highest, stuck = min(least, gap), max(highest, dual), 0 if better else stuck + 1
        if gap <= tol * size or state.stalled or stuck >= _STUCK or state.over:
            return gap / size if size > 0.0 else 0.0
        while not state.over and state.round():
            pass


def _balance(loss: Loss, low: Floats, high: Floats, x: Floats, f: Floats) -> Floats:
    """Return x with a sum of 0: those move first that gain most by it, or lose least."""
    total = float(x.sum())
    sign = 1.0 if total > 0 else -1.0
    order = np.argsort(sign * (loss.target - f), kind="stable")
    slack = (x - low if sign > 0 else high - x)[order]
    before = np.cumsum(slack) - slack
    out = x.copy()
    out[order] -= sign * np.clip(abs(total) - before, 0.0, slack)
    return out
