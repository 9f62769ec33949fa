"""Leaps: the optimality conditions of the free variables of a kernel machine as linear equations.

Between their bounds (F) the best variables satisfy

    K_FF δ + shift δ + b = r   on F,      Σδ = what the group lacks

If the solution is inside the bounds it is where pairs would end after many steps. If not, the best
of several points on the way there, projected onto the bounds and the sums, is taken; what is at a
bound then stays there, and the others leap again. Where rows depend on each other the equations
have many solutions, of which one is taken.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import KernelProblem
from maxmargin.solvers.kernel_variables import Variables, summed

Flags = npt.NDArray[np.bool_]

MOST_FREE = 2500
_WORK = 1e9  # multiplications in a leap, beyond which it is tried once only
_MOST_TRIES = 40
_WAYS = (1.0, 0.5, 0.2, 0.05, 0.01)
_BY_EIGENVECTORS = 300  # variables: beyond that they cost too much
_RANK = 1e-14
_FIRST_RIDGE, _LAST_RIDGE = 1e-15, 1e-3  # of the largest diagonal entry


class Leap(NamedTuple):
    """Which variables moved, where to, and whether that solved the equations."""

    variables: Ints
    x: Floats
    whole: bool


def leap(problem: KernelProblem, all_: Variables) -> Leap | None:
    """Return where the free variables should be, or None if there are none, or too many."""
    free = np.flatnonzero((all_.x > all_.low) & (all_.x < all_.high))
    if not 0 < len(free) <= MOST_FREE:
        return None
    K = _block(problem.gram, problem.rows[free]) + np.diag(all_.shift[free])
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
            return Leap(free, point.x, True)
        if not point.goes_part_of(step):
            break
    return Leap(free, point.x, False)


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


def _block(gram: Gram, rows: Ints) -> Floats:
    prepared = gram.exact[rows]
    return np.asarray(gram.kernel.block(prepared, prepared, threads=gram.threads), np.float64)


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
