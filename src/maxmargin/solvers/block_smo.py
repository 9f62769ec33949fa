"""Kernel machines by decomposition on two levels.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within each group

A round takes the variables that violate the optimality conditions most, solves their block of the
problem by pairs (``loops.smo``), computes the rows of K of those that moved, and carries the
moves to all scores. Variables at a bound that cannot move for now are set aside together with
their rows and columns; before an answer is given they are all looked at again.

Joachims (1998); Fan, Chen & Lin (2005).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.gram import RowStore
from maxmargin.problem import Bracket, KernelProblem, Start
from maxmargin.solvers.scores import expansion_scores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BLOCK = 512
_ROUNDS = 50  # without a look at all variables
_FALL = 0.1  # of the gap of what is active, which calls for such a look


@dataclass(frozen=True)
class BlockSMO:
    """Settings of the method."""

    wanted: float = 1e-4  # relative gap at which variables set aside are looked at again
    threads: int | None = None

    def iterates(self, problem: KernelProblem, start: Start) -> Iterator[Bracket]:
        """Yield a bracket after each look at all variables, unfinished ones in between."""
        state = _State(problem, start)
        while True:
            yield state.bracket
            if state.at_rest:
                return
            for _ in range(_ROUNDS):
                state.round()
                if state.time_to_look(self.wanted):
                    break
                yield state.bracket.unfinished()
            state.look()


class _State:
    def __init__(self, problem: KernelProblem, start: Start) -> None:
        self.problem = problem
        terms = problem.terms
        used, row = np.unique(problem.rows, return_inverse=True)
        self.all_rows = len(used) == len(problem.gram)
        self.used = used
        self.row = row.astype(np.int64)
        self.group = problem.groups
        self.alone = len(problem.totals) == 0
        self.x = _first(problem) if start.beta is None else start.beta.copy()
        self.f = self._exact_scores()
        self.diagonal = problem.gram.diagonal[problem.rows] + terms.shift
        self.variables = np.arange(len(self.x))
        self.rows = np.arange(len(used))
        self.aside: list[tuple[Ints, Floats]] = []  # rows, and β per row when they were set aside
        self.store = RowStore(problem.gram, self._bound(used))
        self._take(self.variables)
        self.kept = np.empty(0, np.int64)
        self.at_rest = False
        self.rounds = self.steps = self.looks = 0
        self.reference = np.inf
        self.b = np.zeros(len(problem.totals))
        self.bracket = Bracket(np.inf, -np.inf, self.x, self.b, self.x)
        self.look()

    def _bound(self, rows: Ints) -> object:
        tiles = self.problem.gram.tiles
        return tiles if len(rows) == len(self.problem.gram) else tiles[rows]

    def _exact_scores(self) -> Floats:
        return expansion_scores(self.problem.gram, self.used, self._by_row(self.x))

    def _by_row(self, x: Floats) -> Floats:
        return np.bincount(self.row, x, minlength=len(self.used))

    def _take(self, variables: Ints) -> None:
        """Make these the active variables; their rows must be the active rows."""
        terms = self.problem.terms
        place = np.full(len(self.used), -1)
        place[self.rows] = np.arange(len(self.rows))
        self.variables = variables
        self.at = place[self.row[variables]]
        self.ax, self.af = self.x[variables], self.f[self.rows]
        self.target, self.low, self.high = (
            part[variables] for part in (terms.target, terms.low, terms.high)
        )
        self.shift, self.own = terms.shift[variables], self.diagonal[variables]
        self.agroup = self.group[variables]
        self.up, self.down = np.empty(len(variables)), np.empty(len(variables))
        self.kept = np.empty(0, np.int64)

    def _put_back(self) -> None:
        self.x[self.variables] = self.ax
        self.f[self.rows] = self.af

    # ------------------------------------------------------------ one round

    def round(self) -> None:
        """Solve the block of the worst variables, and carry what moved to all active scores."""
        chosen, ends = self._choose()
        if not len(chosen):
            self.moved = 0.0
            return
        at = self.at[chosen]
        block = self.store.block(at)
        r = self.target[chosen] - self.af[at] - self.shift[chosen] * self.ax[chosen]
        x = self.ax[chosen]
        before = x.copy()
        limits = self.low[chosen], self.high[chosen]
        tol = 0.1 * self.violation
        budget = 20 * len(chosen)
        if self.alone:
            made = loops.smo.singles(block, self.own[chosen], r, x, *limits, tol, budget)
        else:
            made = loops.smo.pairs(block, self.own[chosen], r, x, *limits, ends, tol, budget)
        self.steps += made
        self.ax[chosen] = x
        self._carry(at, x - before)
        self.rounds += 1
        self._shrink()

    def _carry(self, at: Ints, steps: Floats) -> None:
        moved = np.flatnonzero(steps)
        rows, which = np.unique(at[moved], return_inverse=True)
        steps = np.bincount(which, steps[moved], minlength=len(rows))
        for begin in range(0, len(rows), self.store.capacity):
            part = slice(begin, begin + self.store.capacity)
            slots = self.store.fetch(rows[part])
            loops.smo.accumulate(self.store.values, slots, steps[part], 0, len(self.af), self.af)

    def _choose(self) -> tuple[Ints, Ints]:
        """Return the variables of the next block, by group, and where the groups end."""
        loops.smo.directions(
            self.target, self.shift, self.ax, self.low, self.high, self.at, self.af,
            self.up, self.down,
        )  # fmt: skip
        self.violation = 0.0
        groups = (
            [np.arange(len(self.ax))]
            if len(self.b) <= 1
            else [np.flatnonzero(self.agroup == g) for g in range(len(self.b))]
        )
        new = max(4, (_BLOCK - len(self.kept)) // max(1, len(groups)))
        fresh: list[Ints] = []
        self.limits = []
        for members in groups:
            up, down = self.up[members], self.down[members]
            if self.alone:
                size = np.maximum(up, -down)
                size[~np.isfinite(size)] = 0.0
                best = _largest(size, new)
                best = best[size[best] > 0]
                self.violation = max(self.violation, float(size.max(initial=0.0)))
                fresh.append(members[best])
                self.limits.append((0.0, 0.0))
                continue
            most, least = float(up.max(initial=-np.inf)), float(down.min(initial=np.inf))
            self.limits.append((least, most))
            if most > least:
                self.violation = max(self.violation, most - least)
                grow = _largest(up, new // 2)
                shrink = _largest(-down, new // 2)
                fresh += [members[grow[up[grow] > least]], members[shrink[down[shrink] < most]]]
        if not fresh or self.violation <= 0.0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        newest = np.unique(np.concatenate(fresh))
        chosen = np.union1d(newest, self.kept)
        self.kept = newest
        if len(self.b) > 1:
            chosen = chosen[np.argsort(self.agroup[chosen], kind="stable")]
        ends = np.searchsorted(self.agroup[chosen], np.arange(max(1, len(self.b))), side="right")
        return chosen, ends if not self.alone else np.array([len(chosen)])

    # ------------------------------------------------------------ setting aside

    def _shrink(self) -> None:
        """Set aside variables at a bound that lie beyond all violations."""
        if self.rounds % 4 or len(self.ax) < 2 * _BLOCK:
            return
        limits = np.array(self.limits)
        least, most = limits[:, 0], limits[:, 1]
        g = np.maximum(self.agroup, 0)
        idle = (np.isneginf(self.up) & (self.down > most[g])) | (
            np.isposinf(self.down) & (self.up < least[g])
        )
        if idle.sum() < 0.2 * len(idle):
            return
        self._put_back()
        stay = self.variables[~idle]
        rows = np.unique(self.row[stay])
        gone = np.setdiff1d(self.rows, rows, assume_unique=True)
        if len(gone):
            self.aside.append((gone, self._by_row(self.x)))
            place = np.searchsorted(self.rows, rows)
            self.store.narrow(place)
        self.rows = rows
        self._take(stay)

    def _bring_back(self) -> None:
        """Compute the scores of all rows that were set aside."""
        self._put_back()
        now = self._by_row(self.x)
        for rows, then in self.aside:
            change = now - then
            moved = np.flatnonzero(change)
            if len(moved):
                self.f[rows] += expansion_scores(
                    self.problem.gram, self.used[rows], change[moved], self.used[moved], fast=True
                )
        self.aside = []

    # ------------------------------------------------------------ looking at all

    def time_to_look(self, wanted: float) -> bool:
        """Return whether the gap of what is active has fallen far enough."""
        if len(self.variables) == len(self.x):
            return True
        gap = self._gap(self.variables, self.ax, self.at, self.af)[0]
        scale = abs(self.bracket.dual)
        return gap <= max(0.5 * wanted * scale, _FALL * self.reference)

    def look(self) -> None:
        """Compute both bounds from all variables; the active ones and those that violate go on."""
        everything = len(self.variables) == len(self.x)
        if everything:
            self._put_back()
        else:
            self._bring_back()
        gap, terms = self._gap(np.arange(len(self.x)), self.x, self.row, self.f)
        dual = self._dual()
        self.reference = gap
        self.looks += 1
        x = self.x.copy()
        self.bracket = self.bracket.improved(Bracket(dual + gap, dual, x, self.b.copy(), x))
        if everything:
            return
        active = np.zeros(len(self.x), bool)
        active[self.variables] = True
        active |= terms > 0
        rows = np.unique(self.row[active])
        if len(rows) > len(self.rows):
            self.rows = rows
            self.store.replace(self._bound(self.used[rows]))
        self._take(np.flatnonzero(active))

    def _dual(self) -> float:
        terms, x = self.problem.terms, self.x
        linear = terms.target - 0.5 * self.f[self.row] - 0.5 * terms.shift * x
        return float(linear @ x)

    def _gap(self, variables: Ints, x: Floats, at: Ints, f: Floats) -> tuple[float, Floats]:
        """Return the duality gap of some variables at the best intercepts, and what each adds."""
        terms = self.problem.terms
        target, low, high = (part[variables] for part in (terms.target, terms.low, terms.high))
        shift, group = terms.shift[variables], self.group[variables]
        each, slopes = np.empty(len(x)), np.empty(len(self.b))
        left, right = np.full(len(self.b), -np.inf), np.full(len(self.b), np.inf)
        up, down = np.empty(len(x)), np.empty(len(x))
        loops.smo.directions(target, shift, x, low, high, at, f, up, down)
        for g in range(len(self.b)):
            members = group == g
            most, least = up[members].max(initial=-np.inf), down[members].min(initial=np.inf)
            left[g], right[g] = min(most, least), max(most, least)
        left[~np.isfinite(left)] = right[~np.isfinite(left)]
        right[~np.isfinite(right)] = left[~np.isfinite(right)]
        best, found, best_each = np.inf, self.b, each
        for _ in range(30):
            middle = 0.5 * (left + right)
            total = loops.smo.gap_terms(
                target, low, high, shift, x, at, group, f, middle, each, slopes
            )
            if total < best:
                best, found, best_each = total, middle, each.copy()
            if not len(self.b) or (right - left).max() <= 1e-14 * np.abs(middle).max():
                break
            pull = slopes + self._sums(x, group)
            right = np.where(pull > 0, middle, right)
            left = np.where(pull > 0, left, middle)
            if not self.violation_matters(best):
                break
        self.b = found
        return best, best_each

    def violation_matters(self, gap: float) -> bool:
        """Return whether a better intercept could matter."""
        return True

    def _sums(self, x: Floats, group: Ints) -> Floats:
        return np.bincount(group + 1, x, minlength=len(self.b) + 1)[1:]


def _largest(values: Floats, count: int) -> Ints:
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]


def _first(problem: KernelProblem) -> Floats:
    """Return a feasible point: the first variables of each group carry its total."""
    terms = problem.terms
    x = np.zeros(len(terms.target))
    for g, total in enumerate(problem.totals):
        members = np.flatnonzero(problem.groups == g)
        bound = terms.high[members] if total >= 0 else -terms.low[members]
        before = np.cumsum(bound) - bound
        x[members] = np.sign(total) * np.clip(abs(total) - before, 0.0, bound)
    return x
