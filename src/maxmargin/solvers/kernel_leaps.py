"""Leaps: the optimality conditions of the free variables of a kernel machine as linear equations.

Between their bounds (F) variables satisfy

    K_FF δ + shift δ + b = r   on F,      Σδ = what the group lacks

A solution inside the bounds is where pairs would end after many steps; one that is not is followed
to the first bound, where that variable stays. Where rows depend on each other the equations have
many solutions: the smallest is taken.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin.gram import Gram
from maxmargin.problem import KernelProblem
from maxmargin.solvers.kernel_variables import Variables
from maxmargin.solvers.polishing import least_solution

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_FREE = 2000
_TRIES = 30
_STRETCHED = 1e-9  # of the range of a variable, by which it may be beyond a bound


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
    x, r = all_.x[free].copy(), all_.residuals(free)
    low, high, group = all_.low[free], all_.high[free], all_.group[free]
    lacking = problem.totals - np.bincount(all_.group + 1, all_.x, len(problem.totals) + 1)[1:]
    inside = np.arange(len(free))
    for _ in range(_TRIES):
        step = _step(K[np.ix_(inside, inside)], r[inside], group[inside], lacking)
        if not np.isfinite(step).all():
            break
        reach = _reach(x[inside], step, low[inside], high[inside])
        taken = min(1.0, float(reach.min(initial=1.0)))
        moved = np.zeros(len(free))
        moved[inside] = taken * step
        x = np.clip(x + moved, low, high)
        r -= K @ moved
        lacking = (1.0 - taken) * lacking
        if taken == 1.0:
            return Leap(free, x, True)
        inside = inside[reach > taken * (1 + 1e-12)]
        if not len(inside):
            break
    return Leap(free, x, False)


def _block(gram: Gram, rows: Ints) -> Floats:
    bound = gram.exact[rows]
    return np.asarray(gram.kernel.between(bound, bound, threads=gram.threads), np.float64)


def _step(K: Floats, r: Floats, group: Ints, lacking: Floats) -> Floats:
    """Return the changes δ that solve the equations for these variables."""
    here = np.unique(group[group >= 0])
    member = (group[:, np.newaxis] == here).astype(np.float64)
    matrix = np.block([[K, member], [member.T, np.zeros((len(here), len(here)))]])
    solution = least_solution(matrix, np.concatenate([r, lacking[here]]))
    return solution[: len(r)]


def _reach(x: Floats, step: Floats, low: Floats, high: Floats) -> Floats:
    """Return what part of its step each variable can make, a little beyond its bounds allowed."""
    slack = np.where(np.isfinite(high - low), _STRETCHED * (high - low), 0.0)
    room = np.where(step > 0, high - x + slack, x - low + slack)
    far = np.abs(step) > room
    return np.where(far, room / np.where(far, np.abs(step), 1.0), np.inf)
