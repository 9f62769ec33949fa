"""The dual variables of a kernel machine with their scores: what violates what, and by how much.

With ρ = t − f − b the residual of a variable, the duality gap is a sum of loss that are never
negative, one for each variable:

    max over low ≤ β′ ≤ high of (β′ − β)ρ − ½ shift (β′² − β²)
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import KernelProblem

Flags = npt.NDArray[np.bool_]

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


def feasible_start(problem: KernelProblem) -> Floats:
    """Return a feasible point: 0, or the first variables of each group carry its total."""
    loss = problem.loss
    x = np.zeros(len(loss.target))
    for g, total in enumerate(problem.totals):
        members = np.flatnonzero(problem.groups == g)
        bound = loss.high[members] if total >= 0 else -loss.low[members]
        before = np.cumsum(bound) - bound
        x[members] = np.sign(total) * np.clip(abs(total) - before, 0.0, bound)
    return x


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
