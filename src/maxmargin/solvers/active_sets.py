"""Active-set steps: free variables go to where their equations say, as far as bounds allow.

    max  rᵀδ − ½δᵀKδ    s.t.  −down ≤ δ ≤ up,  Σδ = 0 if there is an intercept

Primal-dual active sets (Hintermüller, Ito & Kunisch 2003): variables whose step leads out are held
at the bound, those held there against their will are let go. One Cholesky factor serves all these
equations, by Schur complements.
"""

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_HELD = 250
_EXCHANGES = 30
_RIDGE = 1e-7  # on the diagonal of equations, times the root of their number
_MOST_RIDGE = 1e12  # times that
_ROUNDING = 1e-12  # of a bound


def active_set_step(K: Floats, r: Floats, down: Floats, up: Floats, free: bool) -> Floats | None:
    """Return the step that solves the block within its bounds, or None if none was found.

    Variables may go down and up by so much, and their sum stays if ``free``.
    """
    factor = _factor(K)
    solved = _solve(factor, np.column_stack([r, np.ones(len(r))]))
    plain, ones = solved[:, 0], solved[:, 1]
    inverse = np.zeros((len(r), 0))  # columns of K⁻¹ that belong to variables ever held
    known = np.full(len(r), -1)  # which of them
    side, bound = np.zeros(len(r), np.int64), np.zeros(len(r))
    for _ in range(_EXCHANGES):
        held = np.flatnonzero(side)
        new = held[known[held] < 0]
        if inverse.shape[1] + len(new) > _MOST_HELD:
            return None
        if len(new):
            known[new] = inverse.shape[1] + np.arange(len(new))
            inverse = np.column_stack([inverse, _solve(factor, np.eye(len(r))[:, new])])
        columns = inverse[:, known[held]]
        if free:
            columns = np.column_stack([columns, ones])
        forces = _forces(columns, held, plain, bound, free)
        step = plain - columns @ forces
        if not _exchange(step, forces, held, down, up, side, bound):
            step = np.where(side == 0, step, bound)
            return step if step @ (r - 0.5 * (K @ step)) > 0.0 else None
    return None


def _factor(K: Floats) -> Floats:
    """Return the Cholesky factor of K + ridge·I, with a larger ridge if it takes one."""
    ridge = _RIDGE * max(0.0, float(K.diagonal().max())) * np.sqrt(len(K))
    most = _MOST_RIDGE * ridge
    while True:
        lifted = K.copy(order="F")
        lifted.ravel("K")[:: len(K) + 1] += ridge
        factor, failed = lapack.dpotrf(lifted, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return np.asarray(factor)
        ridge *= 10.0
        if not ridge <= most:
            return np.eye(len(K))


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def _forces(columns: Floats, held: Ints, plain: Floats, bound: Floats, free: bool) -> Floats:
    """Return the forces that bring held variables exactly to their bounds, and the sum to 0."""
    A = columns[held]
    right = plain[held] - bound[held]
    if free:
        A = np.vstack([A, columns.sum(axis=0)])
        right = np.append(right, plain.sum())
    if not len(right):
        return right
    _, forces, failed = lapack.dposv(A, right, lower=1)
    # Where held variables determine each other, any forces that do it will do.
    return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0] if failed else forces)


def _exchange(step: Floats, forces: Floats, held: Ints, down: Floats, up: Floats, side: Ints,
              bound: Floats) -> bool:  # fmt: skip
    """Hold variables that the step leads out, let go those held in vain; return whether any."""
    vain = held[forces[: len(held)] * side[held] < 0.0]
    side[vain] = 0
    above = np.flatnonzero((side == 0) & (step > up * (1 + _ROUNDING)))
    below = np.flatnonzero((side == 0) & (-step > down * (1 + _ROUNDING)))
    side[above], bound[above] = 1, up[above]
    side[below], bound[below] = -1, -down[below]
    return len(vain) + len(above) + len(below) > 0
