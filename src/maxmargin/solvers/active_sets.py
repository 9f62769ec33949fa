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
    right = np.ones((2, len(r)))
    right[0] = r
    plain, ones = _solve(factor, right.T).T
    step = plain - plain.sum() / ones.sum() * ones if free else plain
    if (step > up).any() or (-step > down).any():
        step = _within(factor, plain, ones, down, up, free)
    return step if step is not None and step @ (r - 0.5 * (K @ step)) > 0.0 else None


def _within(
    factor: Floats, plain: Floats, ones: Floats, down: Floats, up: Floats, free: bool
) -> Floats | None:
    """Return the step with those variables at their bounds that it would lead out."""
    n = len(plain)
    # Columns of K⁻¹: that of the sum comes first, then those of variables that were ever held.
    inverse = np.empty((n, 1 + min(n, _MOST_HELD)), order="F")
    inverse[:, 0] = ones
    known, used = np.zeros(n, np.int64), 1
    side, bound = np.zeros(n, np.int64), np.zeros(n)
    for _ in range(_EXCHANGES):
        held = np.flatnonzero(side)
        new = held[known[held] == 0]
        if used + len(new) > inverse.shape[1]:
            return None
        if len(new):
            known[new] = np.arange(used, used + len(new))
            unit = np.zeros((n, len(new)), order="F")
            unit[new, np.arange(len(new))] = 1.0
            inverse[:, used : used + len(new)] = _solve(factor, unit)
            used += len(new)
        columns = inverse[:, np.append(0, known[held])] if free else inverse[:, known[held]]
        forces = _forces(columns, held, plain, bound, free)
        step = plain - columns @ forces
        if not _exchange(step, forces[int(free) :], held, down, up, side, bound):
            return np.where(side == 0, step, bound)
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
    """Return the forces that keep the sum and bring held variables exactly to their bounds."""
    A, right = columns[held], plain[held] - bound[held]
    if free:
        A = np.vstack([columns.sum(axis=0), A])
        right = np.append(plain.sum(), right)
    if not len(right):
        return right
    _, forces, failed = lapack.dposv(A, right)
    # Where held variables determine each other, any forces that do it will do.
    return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0] if failed else forces)


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
