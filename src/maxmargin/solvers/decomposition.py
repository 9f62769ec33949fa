"""Kernel machines by decomposition on two levels.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within each group

A round takes the variables that violate the optimality conditions most, solves their block of the
problem by pairs (``loops.smo``), computes the rows of K for those that moved, and updates all
scores. Variables at a bound that cannot move for now are shrunk together with their rows and
columns; the optimality check before an answer is given covers all variables.

Joachims (1998); Fan, Chen & Lin (2005).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import clock, loops
from maxmargin._typing import Flags, Floats, Ints
from maxmargin.kernels import PreparedRows
from maxmargin.kernels.prepared import FloatArray
from maxmargin.problems import losses
from maxmargin.problems.duality import feasible_start
from maxmargin.problems.problem import Iterate, KernelProblem, Point
from maxmargin.problems.row_cache import RowCache

# ------------------------------------------------------------------- tubes
#
# ε|β| has a kink at 0: a variable with ε > 0 is split into one that is ≥ 0 and one that is ≤ 0.


class Split(NamedTuple):
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

    def apart(self, beta: Floats) -> Floats:
        """Return the variables that make up duals."""
        if self.problem is self.original:
            return beta.copy()
        return np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])

    def joined(self, x: Floats) -> Floats:
        """Return the duals that variables make up."""
        if self.problem is self.original:
            return x
        return np.asarray(x[: len(x) // 2] + x[len(x) // 2 :])


# ------------------------------------------------------------------- kernel variables
#
# The dual variables of a kernel machine with their scores: what violates what, and by how much.
#
# With ρ = t − f − b the residual of a variable, the duality gap is a sum of terms that are never
# negative, one for each variable:
#
#     max over low ≤ β′ ≤ high of (β′ − β)ρ − ½ shift (β′² − β²)


_HALVINGS = 40
_ENOUGH = 0.02  # part of the gap that the choice of b may cost


class Variables(NamedTuple):
    """Variables x with what belongs to them, and the scores f of their rows."""

    target: Floats
    low: Floats
    high: Floats
    shift: Floats
    group: Ints
    x: Floats
    at: Ints  # the row of each, in f
    f: Floats

    @classmethod
    def of(cls, problem: KernelProblem, at: Ints, x: Floats, f: Floats) -> Self:
        """Return all variables of a problem."""
        target, low, high, shift, _ = problem.loss
        return cls(target, low, high, shift, problem.groups, x, at, f)

    def taken(self, variables: Ints, place: Ints, rows: Ints) -> "Variables":
        """Return a copy of some, with the scores of ``rows``, whose new places are ``place``."""
        target, low, high, shift = (values[variables] for values in self[:4])
        group, x, at = self.group[variables], self.x[variables], place[self.at[variables]]
        return Variables(target, low, high, shift, group, x, at, self.f[rows])

    def residuals(self, chosen: Ints) -> Floats:
        """Return the derivative of the dual objective in some variables."""
        curve = self.shift[chosen] * self.x[chosen]
        return np.asarray(self.target[chosen] - self.f[self.at[chosen]] - curve)

    def directions(self) -> tuple[Floats, Floats]:
        """Return the derivative where a variable may grow (else −∞), may shrink (else ∞)."""
        up, down = np.empty(len(self.x)), np.empty(len(self.x))
        loops.smo.directions(*self, up, down)
        return up, down

    def members(self, groups: int) -> list[Ints]:
        """Return the variables of each group; all of them if there are no groups."""
        if groups <= 1:
            return [np.arange(len(self.x))]
        return [np.flatnonzero(self.group == g) for g in range(groups)]

    def idle(self, groups: int) -> Flags:
        """Return which variables are at a bound and beyond all violations of their group."""
        up, down = self.directions()
        most, least = np.zeros(max(1, groups)), np.zeros(max(1, groups))
        if groups:
            for g, members in enumerate(self.members(groups)):
                most[g] = up[members].max(initial=-np.inf)
                least[g] = down[members].min(initial=np.inf)
        mine = np.maximum(self.group, 0)
        return np.asarray(
            (np.isneginf(up) & (down > most[mine])) | (np.isposinf(down) & (up < least[mine]))
        )


def dual_value(variables: Variables) -> float:
    """Return the dual objective."""
    x, f = variables.x, variables.f[variables.at]
    return float((variables.target - 0.5 * f - 0.5 * variables.shift * x) @ x)


def duality_gap(variables: Variables, b: Floats) -> tuple[float, Floats, Floats]:
    """Return the gap at nearly the best intercepts, those, and what each variable adds.

    The best intercept of a group lies between the extremes of its residuals: it is found by
    bisection, as the losses are convex in it.
    """
    groups = len(b)
    up, down = variables.directions()
    left, right = np.empty(groups), np.empty(groups)
    for g, members in enumerate(variables.members(groups)[:groups]):
        ends = up[members].max(initial=-np.inf), down[members].min(initial=np.inf)
        left[g], right[g] = min(ends), max(ends)
    sums = summed(variables.group + 1, variables.x, groups + 1)[1:]
    left = np.where(np.isfinite(left), left, right)
    right = np.where(np.isfinite(right), right, left)
    best, each = np.inf, np.empty(len(variables.x))
    for _ in range(_HALVINGS):
        middle, loss, slopes = 0.5 * (left + right), np.empty(len(each)), np.empty(groups)
        gap = loops.smo.gap_terms(*variables, middle, loss, slopes)
        if gap < best:
            best, b, each = gap, middle, loss
        pull = slopes + sums
        if np.abs(pull) @ (right - left) <= _ENOUGH * best:
            break
        right, left = np.where(pull > 0, middle, right), np.where(pull > 0, left, middle)
    return best, b, each


def magnitude(variables: Variables, lengths: Floats, coefficients: Floats) -> float:
    """Return how large the numbers are whose differences residuals are.

    Lengths √K(x, x) and coefficients are those of the rows.
    """
    largest = float(np.abs(variables.target).max(initial=0.0))
    return largest + float(lengths.max(initial=0.0)) * float(np.abs(coefficients) @ lengths)


def is_nothing(variables: Variables, gap: float, dual: float, size: float) -> bool:
    """Return whether both bounds are 0 but for rounding, residuals being of this magnitude.

    Only without targets can the best w be 0 and cost nothing.
    """
    if variables.target.any():
        return False
    rounding = 4 * float(np.finfo(np.float64).eps) * float(np.abs(variables.x).sum()) * size
    return max(gap, abs(dual)) <= rounding


def summed(places: Ints, values: Floats, count: int) -> Floats:
    """Return the sums of the values that belong to each place."""
    return np.bincount(places, values, minlength=count).astype(np.float64, copy=False)


def near_violation(variables: Variables, b: Floats, margin: float) -> Flags:
    """Return which variables would violate something if scores changed by ``margin``."""
    everything = np.arange(len(variables.x))
    r = variables.residuals(everything) - np.append(b, 0.0)[variables.group]
    grows = (variables.x < variables.high) & (r > -margin)
    return np.asarray(grows | ((variables.x > variables.low) & (r < margin)))


# ------------------------------------------------------------------- active-set steps
#
# Active-set steps: the optimality conditions of the free variables as linear equations.
#
# Between their bounds (F) the best variables satisfy
#
#     K_FF δ + quadratic δ + b = r   on F,      Σδ = what the group lacks
#
# If the solution is inside the bounds it is where pairs would end after many steps. If not, the
# best of several points on the way there, projected onto the bounds and the sums, is taken; what
# is at a bound then stays there, and the others step again. Where rows depend on each other the
# equations have many solutions, of which one is taken.


MOST_FREE = 2500
_WORK = 1e9  # multiplications in a step, beyond which it is tried once only
_MOST_TRIES = 40
_WAYS = (1.0, 0.5, 0.2, 0.05, 0.01)
_BY_EIGENVECTORS = 300  # variables: beyond that they cost too much
_RANK = 1e-14
_FIRST_RIDGE, _LAST_RIDGE = 1e-15, 1e-3  # of the largest diagonal entry


class ActiveSetStep(NamedTuple):
    """Which variables moved, where to, and whether that solved the equations."""

    variables: Ints
    x: Floats
    whole: bool


def active_set_step(problem: KernelProblem, all_: Variables) -> ActiveSetStep | None:
    """Return where the free variables should be, or None if there are none, or too many."""
    free = np.flatnonzero((all_.x > all_.low) & (all_.x < all_.high))
    if not 0 < len(free) <= MOST_FREE:
        return None
    features, rows = problem.features, problem.features.rows[problem.row[free]]
    K = features.gram.block(rows, rows) + np.diag(all_.shift[free])
    lacking = problem.totals - summed(all_.group + 1, all_.x, len(problem.totals) + 1)[1:]
    point = _Point(K, all_, free, lacking)
    tries = int(np.clip(_WORK / float(len(free)) ** 3, 1, _MOST_TRIES))
    for _ in range(tries):
        inside = np.flatnonzero((point.x > point.low) & (point.x < point.high))
        if not len(inside):
            break
        step = np.zeros(len(free))
        step[inside] = _step(K[np.ix_(inside, inside)], point.r[inside],
                             point.group[inside], point.lacking)  # fmt: skip
        if point.goes_whole(step):
            return ActiveSetStep(free, point.x, True)
        if not point.goes_part_of(step):
            break
    return ActiveSetStep(free, point.x, False)


class _Point:
    """The free variables with the derivative r of the objective in them, and what groups lack."""

    def __init__(self, K: Floats, all_: Variables, free: Ints, lacking: Floats) -> None:
        self.K, self.x, self.r = K, all_.x[free].copy(), all_.residuals(free)
        self.low, self.high, self.group = all_.low[free], all_.high[free], all_.group[free]
        self.lacking = lacking

    def goes_whole(self, step: Floats) -> bool:
        """Make a step if it stays within the bounds, up to rounding; say whether."""
        to = self.x + step
        slack = 1e-12 * float(np.abs(self.x).max())
        if ((to < self.low - slack) | (to > self.high + slack)).any():
            return False
        return self._goes(self._projected(to) - self.x, least=-np.inf)

    def _goes(self, change: Floats, least: float = 0.0) -> bool:
        product = self.K @ change
        gain = self._gain(change, product)
        if not np.isfinite(gain) or gain <= least:
            return False
        self.x, self.r = self.x + change, self.r - product
        self.lacking = np.zeros(len(self.lacking))
        return True

    def _gain(self, change: Floats, product: Floats) -> float:
        return float(change @ (self.r - 0.5 * product))

    def goes_part_of(self, step: Floats) -> bool:
        """Go to the best of some points on the way, projected onto bounds and sums."""
        best, most = None, 0.0
        for part in (*_WAYS, self._reach(step)):
            change = self._projected(self.x + part * step) - self.x
            gain = self._gain(change, self.K @ change)
            if gain > most:
                best, most = change, gain
        return best is not None and self._goes(best)

    def _reach(self, step: Floats) -> float:
        """Return what part of the step is possible before the first bound."""
        room = np.where(step > 0, self.high - self.x, self.x - self.low)
        far = np.abs(step) > room
        return float((room[far] / np.abs(step[far])).min(initial=1.0))

    def _projected(self, x: Floats) -> Floats:
        """Return the nearest point within the bounds whose groups have the right sums."""
        out = np.clip(x, self.low, self.high)
        for g in np.unique(self.group[self.group >= 0]):
            mine = self.group == g
            total = float(self.x[mine].sum() + self.lacking[g])
            out[mine] = loops.smo.with_sum(x[mine], self.low[mine], self.high[mine], total)
        return out


def _step(K: Floats, r: Floats, group: Ints, lacking: Floats) -> Floats:
    """Return the changes δ that solve the equations for these variables."""
    here = np.unique(group[group >= 0])
    member = (group[:, np.newaxis] == here).astype(np.float64)
    if len(K) <= _BY_EIGENVECTORS:
        return _smallest(K, member, r, lacking[here])
    solved = _solution(K, np.column_stack([r, member]))
    alone, by_group = solved[:, 0], solved[:, 1:]
    if not len(here):
        return alone
    b = np.linalg.lstsq(member.T @ by_group, member.T @ alone - lacking[here], rcond=None)[0]
    step: Floats = alone - by_group @ b
    return step


def _smallest(K: Floats, member: Floats, r: Floats, lacking: Floats) -> Floats:
    """Return the smallest solution, by the eigenvectors of the bordered matrix."""
    size = float(np.diag(K).max(initial=0.0)) or 1.0
    groups = len(lacking)
    border = np.sqrt(size) * member  # of about the size of K
    matrix = np.block([[K / size, border / size], [border.T / size, np.zeros((groups, groups))]])
    values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
    there = np.abs(values) > _RANK * len(matrix)
    right = np.concatenate([r / size, lacking / np.sqrt(size)])
    solved = (vectors[:, there] / values[there]) @ (vectors[:, there].T @ right)
    return np.asarray(solved[: len(K)])


def _solution(K: Floats, right: Floats) -> Floats:
    """Return K⁻¹ right, with as little added to the diagonal as it takes."""
    size = float(np.diag(K).max(initial=0.0)) or 1.0
    ridge = _FIRST_RIDGE
    while ridge <= _LAST_RIDGE:
        lifted = K.copy()
        lifted[np.diag_indices(len(K))] += ridge * size * len(K)
        try:
            factor = scipy.linalg.cho_factor(lifted, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            ridge *= 30.0
            continue
        return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))
    return np.zeros(right.shape)


# -------------------------------------------------------------------


_BLOCK, _FIRST_BLOCK = 1024, 64  # variables; it doubles every round until it is full
_INNER = 0.05  # part of the violation down to which a block is solved
_MOST_WHOLE = 700  # variables that are solved as one block
_INNER_WHOLE = 1e-3
_GAIN = 1e-14  # of the objective, below which a round has gained nothing
_STEPS = 20  # in a block, for each of its variables
_SHRINK_EVERY = 4  # rounds
_UNKEPT = 30  # rounds at all columns, in which rows that are cheap to compute are not kept
_WORTH = 0.2  # of the active variables, if that many can be shrunk
_ROUNDS = 50  # without an optimality check
_ROUGH, _FALL = 1e-2, 0.02  # gap of the active variables that calls for a check: first, then each
_POLISHED = 3000  # rows up to which free variables make active-set steps
_ROUNDING = 1e-14
_BEFORE_STEP = 40  # rounds
_SLOW, _SLOW_WHOLE = 0.5, 0.1  # of the gap before, above which a check calls for an active-set step
_IDLE_ROUNDS = 3  # rounds without any gain that end it


@dataclass(frozen=True)
class Decomposition:
    """Settings of the method."""

    wanted: float = 1e-4  # relative gap at which shrunk variables are checked again
    precise: bool = False  # kernel values in float64 throughout
    checks: int | None = None  # at all variables, after which it gives up

    def iterates(self, problem: KernelProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each optimality check, unfinished ones in between.

        These, and one after the time is over, have the variables as they are: their bounds, known
        from the last check, are not those of these variables.
        """
        state = _DecompositionState(problem, start, self.precise, self.wanted)
        try:
            yield from self._rounds(state)
        except clock.OutOfTimeError:
            yield state.now()
            raise

    def _rounds(self, state: "_DecompositionState") -> Iterator[Iterate]:
        while True:
            yield state.iterate
            if self.checks is not None and state.checks > self.checks:
                return
            if state.last_gap <= self.wanted and state.polish():
                break
            if state.stalled and (state.last_gap <= self.wanted or not state.steps_on()):
                break
            if state.slow:
                state.step()
                yield state.iterate
            for _ in range(_ROUNDS):
                state.round()
                if state.worth_a_check():
                    break
                yield state.now()
            state.check_optimality()
        yield replace(state.iterate, converged=True)


class _DecompositionState:
    """All variables, and the active ones among them (in ``part``) with their rows."""

    def __init__(self, problem: KernelProblem, start: Point, precise: bool, wanted: float) -> None:
        self.split = Split.of(problem)
        self.problem = problem = self.split.problem
        self.gram, self.precise, self.wanted = problem.features.gram, precise, wanted
        self.used, row = problem.features.rows, problem.row
        # First of all: it says so if values overflow.
        self.diagonal = problem.features.squared_norms()[row] + problem.loss.quadratic
        if start.beta is None:
            beta = feasible_start(problem.loss, problem.groups, problem.totals)
        else:
            beta = self.split.apart(start.beta)
        self.coefficients = summed(row, beta, len(self.used))
        scores = self.gram.dot(self.coefficients, self.used)
        self.all = Variables.of(problem, row, beta, scores)
        self.shrunk: list[tuple[Ints, Floats]] = []  # rows, and all coefficients at that time
        self.rows = np.arange(len(self.used))
        self.whole: _Whole | None = None
        if len(beta) <= _MOST_WHOLE:
            self.whole = _Whole(self._square(), self.all, len(problem.totals))
        else:
            self.store = RowCache(self.gram, self._prepared(self.rows))
        self.b = np.zeros(len(problem.totals))
        self.iterate = self._at(beta, np.inf, -np.inf)
        self.violation = self.last_gap = self.last_violation = self.gap_before = np.inf
        self.rounds = self.since_check = self.idle_rounds = self.stepped_at = self.checks = 0
        self.summed_at = 0  # the round after which scores were sums over all variables
        self.stalled = False
        self._activate(np.arange(len(beta)))
        self.check_optimality()
        if start.beta is not None and self.whole is None:
            self._shrink()

    def _prepared(self, rows: Ints) -> PreparedRows:
        tiles = self.gram.exact if self.precise else self.gram.tiles
        return tiles if len(rows) == len(self.gram) else tiles[self.used[rows]]

    def _square(self) -> FloatArray:
        if not self.precise:
            return self.gram.block(self.used, self.used, fast=True)
        rows = self._prepared(self.rows)
        return self.gram.kernel.block(rows, rows, threads=self.gram.threads)

    def _activate(self, variables: Ints) -> None:
        """Make these the active variables; their rows are those in ``rows``."""
        self.variables = variables
        place = np.full(len(self.used), -1)
        place[self.rows] = np.arange(len(self.rows))
        self.part = self.all.taken(variables, place, self.rows)
        self.own = self.diagonal[variables]
        self.newest = np.empty(0, np.int64)

    def now(self) -> Iterate:
        """Return the variables as they are, feasible at any time, with the bounds known so far."""
        x = self.all.x.copy()
        x[self.variables] = self.part.x
        return self._at(x, self.iterate.primal, self.iterate.dual).unfinished()

    def _at(self, x: Floats, primal: float, dual: float) -> Iterate:
        """Return an iterate: weights are those that the duals imply."""
        beta = self.split.joined(x)
        return Iterate(primal, dual, self.split.original.by_row(beta), self.b.copy(), beta)

    @property
    def complete(self) -> bool:
        """Whether all variables are active."""
        return len(self.variables) == len(self.all.x)

    # ------------------------------------------------------------ one round

    def round(self) -> None:
        """Solve the block of the worst variables, and update the scores of all active rows."""
        part = self.part
        self.rounds += 1
        if self.whole is not None:
            self._advance(self.whole)
            return
        chosen, ends = self._chosen()
        if not len(chosen):
            self.idle_rounds = _IDLE_ROUNDS
            return
        at, x, r = part.at[chosen], part.x[chosen], part.residuals(chosen)
        before, began = x.copy(), r.copy()
        block = self.store.block(at)
        self._solve(block, chosen, r, x, ends, _INNER)
        self._count(0.5 * float((began + r) @ (x - before)))
        part.x[chosen] = x
        self._update_scores(at, x - before)
        if self.rounds % _SHRINK_EVERY == 0 and len(part.x) >= 2 * _BLOCK:
            self._shrink()

    def _advance(self, whole: "_Whole") -> None:
        """Solve all variables as one block."""
        part, order = self.part, whole.order
        up, down = part.directions()
        self.violation = _violation(part, up, down, len(self.b))
        x, r = part.x[order], part.residuals(order)
        before, began = x.copy(), r.copy()
        self._solve(whole.K, order, r, x, whole.ends, _INNER_WHOLE)
        self._count(0.5 * float((began + r) @ (x - before)))
        part.x[order] = x
        part.f[part.at[order]] = part.target[order] - part.shift[order] * x - r

    def _solve(
        self, K: FloatArray, chosen: Ints, r: Floats, x: Floats, ends: Ints, precision: float
    ) -> None:
        own, low, high = self.own[chosen], self.part.low[chosen], self.part.high[chosen]
        tol, steps = precision * self.violation, _STEPS * len(chosen)
        if len(self.b):
            loops.smo.pairs(K, own, r, x, low, high, ends, tol, steps)
        else:
            loops.smo.singles(K, own, r, x, low, high, tol, steps)

    def _count(self, gain: float) -> None:
        self.idle_rounds = 0 if gain > _GAIN * abs(self.dual) else self.idle_rounds + 1
        self.dual += gain

    def _chosen(self) -> tuple[Ints, Ints]:
        """Return the variables of the next block, by group, and where the groups end."""
        part = self.part
        up, down = part.directions()
        size = min(_BLOCK, _FIRST_BLOCK << min(self.rounds, 10))
        size = size // 2 if len(self.newest) else size
        fresh, self.violation = [], 0.0
        for members in part.members(len(self.b)):
            if len(self.b):
                most, least = up[members].max(initial=-np.inf), down[members].min(initial=np.inf)
            else:
                most = least = 0.0  # a variable by itself is measured against 0
                self.violation = max(up.max(initial=0.0), -down.min(initial=0.0), 0.0)
            if most < least:
                continue
            self.violation = max(self.violation, most - least)
            half = size // (2 * max(1, len(self.b)))
            grow, shrink = _largest(up[members], half), _largest(-down[members], half)
            grow = grow[up[members][grow] > least]
            shrink = shrink[down[members][shrink] < most]
            fresh += [members[grow], members[shrink]]
        if not fresh or self.violation <= 0.0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        newest = np.unique(np.concatenate(fresh))
        chosen = np.union1d(newest, self.newest)
        self.newest = newest
        chosen = chosen[np.argsort(part.group[chosen], kind="stable")]
        return chosen, np.searchsorted(part.group[chosen], np.arange(len(self.b)), side="right")

    def _update_scores(self, at: Ints, steps: Floats) -> None:
        """Add what moved to the scores of all active rows."""
        moved = np.flatnonzero(steps)
        rows, which = np.unique(at[moved], return_inverse=True)
        weights = summed(which, steps[moved], len(rows))
        self.coefficients[self.rows[rows]] += weights
        keep = np.zeros(len(self.rows), bool)
        if not (self.gram.cheap and self.complete and self.rounds < _UNKEPT):
            part = self.part
            keep[part.at[(part.x > part.low) & (part.x < part.high)]] = True
        self.store.add_to(self.part.f, rows, weights, keep[rows])

    # ------------------------------------------------------------ shrinking

    def _shrink(self) -> None:
        """Shrink variables at a bound that lie beyond all violations."""
        idle = self.part.idle(len(self.b))
        if idle.sum() < _WORTH * len(idle):
            return
        self._store_active()
        stay = self.variables[~idle]
        rows = np.unique(self.all.at[stay])
        gone = np.setdiff1d(self.rows, rows, assume_unique=True)
        if len(gone):
            self.shrunk.append((gone, self.coefficients.copy()))
            self.store.shrink(np.searchsorted(self.rows, rows), self._useful(rows))
        self.rows = rows
        self._activate(stay)

    def _useful(self, rows: Ints) -> Ints:
        """Return the places of those active rows among ``rows`` that are likely to move again."""
        part = self.all
        free = np.unique(part.at[(part.x > part.low) & (part.x < part.high)])
        return np.searchsorted(self.rows, np.intersect1d(free, rows, assume_unique=True))

    def _store_active(self) -> None:
        self.all.x[self.variables] = self.part.x
        self.all.f[self.rows] = self.part.f

    def _unshrink(self) -> float:
        """Compute the scores of all shrunk rows; return by how much they changed."""
        self._store_active()
        total = 0.0
        for rows, then in self.shrunk:
            change = self.coefficients - then
            moved = np.flatnonzero(change)
            step = self.gram.dot(
                change[moved], self.used[rows], self.used[moved], fast=not self.precise
            )
            self.all.f[rows] += step
            total += float(step @ step)
        count = sum(len(rows) for rows, _ in self.shrunk)
        self.shrunk = []
        return float(np.sqrt(total / max(1, count)))

    # ------------------------------------------------------------ looking at all

    def worth_a_check(self) -> bool:
        """Return whether the active variables are so far that all should be checked."""
        self.since_check += 1
        if self.idle_rounds >= _IDLE_ROUNDS:
            return True
        if self.violation > 0.5 * self.last_violation and self.since_check % 10:
            return False
        self.last_violation = self.violation
        if self.complete:
            return True
        gap = duality_gap(self.part, self.b)[0]
        goal = np.clip(_FALL * self.last_gap, 0.5 * self.wanted, _ROUGH)
        return bool(gap <= goal * abs(self.dual))

    def check_optimality(self) -> None:
        """Compute both bounds from all variables; those that violate anything become active."""
        change = 0.0
        self.checks += 1
        complete = self.complete
        if complete:
            self._store_active()
        else:
            change = self._unshrink()
        gap, self.b, each = duality_gap(self.all, self.b)
        self.dual = dual_value(self.all)
        if self.precise and self.summed_at < self.rounds and gap <= self.wanted * abs(self.dual):
            self._sum_up()  # many changes, each rounded, may make a gap look closed
            gap, self.b, each = duality_gap(self.all, self.b)
            self.dual = dual_value(self.all)
        if is_nothing(self.all, gap, self.dual, self._size()):
            gap = self.dual = 0.0
        self.gap_before = self.last_gap
        self.last_gap, self.since_check = gap / max(abs(self.dual), 1e-300), 0
        # Weights are those that the duals imply, so both bounds come from one point.
        if gap <= self.iterate.primal - self.iterate.dual:
            self.iterate = self._at(self.all.x.copy(), self.dual + gap, self.dual)
        self.stalled = complete and self.idle_rounds >= _IDLE_ROUNDS
        if not complete:
            self._activate_more((each > 0) | near_violation(self.all, self.b, change))

    @property
    def slow(self) -> bool:
        """Whether the gap has hardly become smaller since the check before, after many rounds."""
        if self.whole:
            return self.last_gap > _SLOW_WHOLE * self.gap_before
        enough = self.rounds - self.stepped_at >= _BEFORE_STEP
        return enough and self.last_gap > _SLOW * self.gap_before

    def step(self) -> bool:
        """Move the free variables to where they belong; return whether they are there."""
        self.stepped_at = self.rounds
        stepped = active_set_step(self.problem, self.all)
        if stepped is None:
            return False
        before = self.coefficients
        self.all.x[stepped.variables] = stepped.x
        if self._exact:
            self._sum_up()
        else:
            self.coefficients = summed(self.all.at, self.all.x, len(self.used))
            change = self.coefficients - before
            moved = np.flatnonzero(change)
            self.all.f[:] += self.gram.dot(
                change[moved], self.used, self.used[moved], fast=not self.precise
            )
        self.part.x[:], self.part.f[:] = self.all.x[self.variables], self.all.f[self.rows]
        self.shrunk = [(rows, self.coefficients.copy()) for rows, _ in self.shrunk]
        self.check_optimality()
        return stepped.whole

    @property
    def _exact(self) -> bool:
        """Whether sums over all variables in float64 are worth their time."""
        return self.precise or len(self.used) <= _POLISHED

    def _sum_up(self) -> None:
        """Compute the scores of all variables again, in float64."""
        self.summed_at = self.rounds
        self.coefficients = summed(self.all.at, self.all.x, len(self.used))
        self.all.f[:] = self.gram.dot(self.coefficients, self.used)
        self.part.f[:] = self.all.f[self.rows]

    def steps_on(self) -> bool:
        """Step where pairs gain nothing any more; return whether that closed part of the gap.

        A dual objective that is right to rounding may have a gap of the root of that.
        """
        before, self.idle_rounds = self.last_gap, 0
        self.step()
        return self.last_gap < _SLOW * before

    def polish(self) -> bool:
        """Make an active-set step; return whether nothing is left to gain."""
        if not self._exact:
            return False
        whole = self.step()
        free = (self.all.x > self.all.low) & (self.all.x < self.all.high)
        violation = _violation(self.all, *self.all.directions(), len(self.b))
        return (whole or not free.any()) and violation <= _ROUNDING * self._size()

    def _size(self) -> float:
        """Return how large the numbers are whose differences residuals are."""
        lengths = np.sqrt(np.maximum(self.problem.features.squared_norms(), 0.0))
        return magnitude(self.all, lengths, self.coefficients)

    def _activate_more(self, wanted: npt.NDArray[np.bool_]) -> None:
        """Make more variables active."""
        wanted[self.variables] = True
        rows = np.unique(self.all.at[wanted])
        if len(rows) > len(self.rows):
            place = np.searchsorted(rows, self.rows)
            self.store.grow(self._prepared(rows), place, self._useful(self.rows))
            self.rows = rows
        idle = np.setdiff1d(np.arange(len(self.used)), rows, assume_unique=True)
        self.shrunk = [(idle, self.coefficients.copy())] if len(idle) else []
        self.idle_rounds = 0
        self._activate(np.flatnonzero(wanted))


class _Whole:
    """The matrix of a problem that is small enough to be one block, its variables by group."""

    def __init__(self, square: FloatArray, variables: Variables, groups: int) -> None:
        self.order = np.argsort(variables.group, kind="stable")
        self.ends = np.searchsorted(variables.group[self.order], np.arange(groups), side="right")
        at = variables.at[self.order]
        self.K = square
        if not np.array_equal(at, np.arange(len(square))):
            self.K = np.empty((len(at), len(at)), square.dtype)
            loops.smo.take(square, at, at, self.K)


def _violation(part: Variables, up: Floats, down: Floats, groups: int) -> float:
    """Return by how much, at worst, two variables of a group (or one of none) could gain."""
    if not groups:
        return max(float(up.max(initial=0.0)), -float(down.min(initial=0.0)), 0.0)
    return max(
        0.0,
        *(
            float(up[members].max(initial=-np.inf) - down[members].min(initial=np.inf))
            for members in part.members(groups)
        ),
    )


def _largest(values: Floats, count: int) -> Ints:
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
