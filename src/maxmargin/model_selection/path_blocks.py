"""Kernel machines along a path: blocks of duals on a Gram matrix that is kept from C to C.

    max  Σ tβ − ½ shift β² − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within a group

A round takes the variables that violate the optimality conditions most, solves their block by pairs
(``loops.smo``) and carries the moves to all scores. It is the method of ``solvers.block_smo`` for
many problems that need the same kernel values: rows of K stay, while there is room, from one C to
the next and from one pair of classes to another, so nothing is set aside.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.gram import Gram, RowStore
from maxmargin.problem import Bracket, KernelProblem, Start
from maxmargin.solvers.kernel_leaps import leap
from maxmargin.solvers.kernel_variables import Variables, dual_value, duality_gap, feasible_start

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BLOCK, _FIRST_BLOCK = 1024, 128  # variables; it doubles every round until it is full
_INNER = 0.05  # part of the violation down to which a block is solved
_STEPS = 20  # in a block, for each of its variables
_BEFORE_LEAP, _SLOW = 20, 0.3  # rounds in which the gap should fall to this part of it
_ROUNDING = 1e-14  # of the largest dual
_GAIN, _STILL = 1e-14, 3  # rounds that gain less than this part of the objective end it


class SharedBlocks:
    """The method, for the problems of a machine that have at most one group of variables each."""

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.store = RowStore(gram, gram.tiles)
        self._known: Variables | None = None  # where the last problem was left

    @staticmethod
    def takes(problem: Any) -> bool:
        """Return whether the method is for this problem."""
        return isinstance(problem, KernelProblem) and len(problem.totals) < 2

    def iterates(self, problem: KernelProblem, start: Start) -> Iterator[Bracket]:
        """Yield a bracket after each round."""
        beta = feasible_start(problem) if start.beta is None else start.beta.copy()
        at = problem.rows
        f = self._scores(at, beta)
        variables = self._known = Variables.of(problem, at, beta, f)
        b = np.zeros(len(problem.totals))
        best = Bracket(np.inf, -np.inf, beta, b, beta)
        newest = np.empty(0, np.int64)
        still, rounds, mark = 0, 0, np.inf
        while True:
            gap, b, _ = duality_gap(variables, b)
            dual, x = dual_value(variables), variables.x.copy()
            best = best.improved(Bracket(dual + gap, dual, x, b.copy(), x))
            chosen, newest, violation = _chosen(variables, newest, rounds, len(b))
            if not len(chosen) or still >= _STILL:
                return
            yield best
            if rounds % _BEFORE_LEAP == _BEFORE_LEAP - 1:
                if gap > _SLOW * mark:
                    self._leap(problem, variables)
                mark = gap
            gain = self._round(variables, chosen, violation, bool(len(b)))
            still = 0 if gain > _GAIN * abs(dual) else still + 1
            rounds += 1

    def _scores(self, at: Ints, beta: Floats) -> Floats:
        """Return Kβ, from that of the last problem if β is nearly a multiple of its variables."""
        known = self._known
        if known is not None and np.array_equal(known.at, at) and known.x.any():
            ratio = float(known.x @ beta) / float(known.x @ known.x)
            change = beta - ratio * known.x
            change[np.abs(change) <= _ROUNDING * np.abs(beta).max()] = 0.0
            if np.count_nonzero(change) < np.count_nonzero(beta):
                f: Floats = ratio * known.f
                self._add(f, at, change)
                return f
        f = np.zeros(len(self.gram))
        self._add(f, at, beta)
        return f

    def _round(self, all_: Variables, chosen: Ints, violation: float, grouped: bool) -> float:
        """Solve a block, and carry what moved to all scores; return what was gained."""
        at = all_.at[chosen]
        block = self.store.block(at)
        x, r = all_.x[chosen], all_.residuals(chosen)
        before, began = x.copy(), r.copy()
        own = self.gram.diagonal[at] + all_.shift[chosen]
        low, high, tol = all_.low[chosen], all_.high[chosen], _INNER * violation
        steps = _STEPS * len(chosen)
        if grouped:
            loops.smo.pairs(block, own, r, x, low, high, np.array([len(x)]), tol, steps)
        else:
            loops.smo.singles(block, own, r, x, low, high, tol, steps)
        all_.x[chosen] = x
        self._add(all_.f, at, x - before)
        return 0.5 * float((began + r) @ (x - before))

    def _leap(self, problem: KernelProblem, all_: Variables) -> None:
        """Move the free variables to where their equations say."""
        leapt = leap(problem, all_)
        if leapt is not None:
            change = leapt.x - all_.x[leapt.variables]
            all_.x[leapt.variables] = leapt.x
            self._add(all_.f, all_.at[leapt.variables], change)

    def _add(self, f: Floats, at: Ints, steps: Floats) -> None:
        """Do f += Σ steps · rows."""
        weights = np.bincount(at, steps, minlength=len(f)).astype(np.float64, copy=False)
        moved = np.flatnonzero(weights)
        if len(moved):
            self.store.add_to(f, moved, weights[moved], np.ones(len(moved), dtype=bool))


def _chosen(
    variables: Variables, newest: Ints, rounds: int, groups: int
) -> tuple[Ints, Ints, float]:
    """Return the variables of the next block, those new in it, and the largest violation."""
    up, down = variables.directions()
    size = min(_BLOCK, _FIRST_BLOCK << min(rounds, 10))
    half = (size // 2 if len(newest) else size) // 2
    if groups:
        most, least = float(up.max(initial=-np.inf)), float(down.min(initial=np.inf))
        violation = most - least
    else:
        most = least = 0.0
        violation = max(float(up.max(initial=0.0)), -float(down.min(initial=0.0)))
    if not violation > 0.0:
        return np.empty(0, np.int64), newest, 0.0
    grow, shrink = _largest(up, half), _largest(-down, half)
    fresh = np.union1d(grow[up[grow] > least], shrink[down[shrink] < most])
    return np.union1d(fresh, newest), fresh, violation


def _largest(values: Floats, count: int) -> Ints:
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
