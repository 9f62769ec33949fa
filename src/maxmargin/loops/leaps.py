"""Leaps: free variables go to where their equations say, as far as bounds allow.

    max  rᵀδ − ½δᵀKδ    s.t.  −down ≤ δ ≤ up,  Σδ = 0 if there is an intercept

Primal-dual active sets (Hintermüller, Ito & Kunisch 2003): variables whose step leads out are held
at the bound, those held there against their will are let go. One Cholesky factor serves all these
equations, by Schur complements.
"""

from typing import Any

import numpy as np

from maxmargin.loops import smo
from maxmargin.loops.compiled import compiled

_MOST_HELD = 250
_EXCHANGES = 30
_RIDGE = 1e-7  # on the diagonal of equations, times the root of their number


@compiled
def _product(A: Any, x: Any) -> Any:
    out = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        total = 0.0
        row = A[i]
        for j in range(x.shape[0]):
            total += row[j] * x[j]
        out[i] = total
    return out


@compiled
def _factor(A: Any, ridge: float) -> Any:
    """Return the Cholesky factor of A + ridge·I, with a larger ridge if it takes one."""
    lifted = A.copy()
    L = lifted
    for _ in range(12):
        for k in range(A.shape[0]):
            lifted[k, k] = A[k, k] + ridge
        done = True
        try:
            L = np.linalg.cholesky(lifted)
        except Exception:
            done = False
        if done:
            return L
        ridge *= 10.0
    return np.eye(A.shape[0])


@compiled
def _substitute(L: Any, out: Any) -> None:
    """Make (LLᵀ)⁻¹ z of z."""
    for k in range(L.shape[0]):
        row, done = L[k, :k], out[:k]
        total = 0.0
        for j in range(row.shape[0]):
            total += row[j] * done[j]
        out[k] = (out[k] - total) / L[k, k]
    for k in range(L.shape[0] - 1, -1, -1):
        value = out[k] / L[k, k]
        out[k] = value
        row, rest = L[k, :k], out[:k]
        for j in range(row.shape[0]):
            rest[j] -= value * row[j]


@compiled
def _small_factor(A: Any) -> None:
    """Make of a small A its Cholesky factor; what depends on rows before it gets no weight."""
    for i in range(A.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(j):
                total += A[i, k] * A[j, k]
            rest = A[i, j] - total
            if j < i:
                A[i, j] = rest / A[j, j]
            else:
                A[i, i] = np.sqrt(rest) if rest > 1e-14 * abs(A[i, i]) else 1e150


@compiled
def _total(values: Any) -> float:
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@compiled
def _step_with(plain: Any, ones: Any, columns: Any, known: Any, held: Any, room: Any, free: bool,
               step: Any) -> Any:  # fmt: skip
    """Set the step where the held variables go exactly to their bounds; return the forces there."""
    m = held.shape[0]
    size = m + 1 if free else m
    A, right = np.empty((size, size)), np.empty(size)
    for a in range(m):
        column = columns[known[held[a]]]
        for c in range(m):
            A[a, c] = column[held[c]]
        right[a] = plain[held[a]] - room[held[a]]
        if free:
            A[a, m] = A[m, a] = ones[held[a]]
    if free:
        A[m, m] = _total(ones)
        right[m] = _total(plain)
    for k in range(step.shape[0]):
        step[k] = plain[k]
    _small_factor(A)
    _substitute(A, right)
    forces = right
    for a in range(m):
        column, force = columns[known[held[a]]], forces[a]
        for k in range(step.shape[0]):
            step[k] -= force * column[k]
    if free:
        for k in range(step.shape[0]):
            step[k] -= forces[m] * ones[k]
    return forces


@compiled
def _exchanged(step: Any, forces: Any, held: Any, down: Any, up: Any, side: Any, room: Any) -> int:
    """Hold variables that the step leads out, let go those held in vain; return how many."""
    changes = 0
    for a in range(held.shape[0]):
        if forces[a] * side[held[a]] < 0.0:
            side[held[a]] = 0
            changes += 1
    for k in range(step.shape[0]):
        if side[k] == 0 and step[k] > up[k] * (1 + 1e-12):
            side[k], room[k] = 1, up[k]
            changes += 1
        elif side[k] == 0 and -step[k] > down[k] * (1 + 1e-12):
            side[k], room[k] = -1, -down[k]
            changes += 1
    return changes


@compiled
def _kept(L: Any, held: Any, known: Any, columns: Any, n_known: int) -> int:
    """Compute A⁻¹ of the unit vectors of held variables; return how many are known, or −1."""
    for a in range(held.shape[0]):
        if known[held[a]] < 0:
            if n_known == columns.shape[0]:
                return -1
            column = columns[n_known]
            for k in range(L.shape[0]):
                column[k] = 1.0 if k == held[a] else 0.0
            _substitute(L, column)
            known[held[a]] = n_known
            n_known += 1
    return n_known


@compiled
def leap(block: Any, r: Any, down: Any, up: Any, free: bool, step: Any) -> float:
    """Set the step that solves the block within its bounds; return its gain, 0 if none was found.

    Variables may go down and up by so much, and their sum stays if ``free``.
    """
    q = r.shape[0]
    largest = 0.0
    for k in range(q):
        largest = max(largest, block[k, k])
    L = _factor(block, _RIDGE * largest * np.sqrt(q))
    plain, ones = r.copy(), np.ones(q)
    _substitute(L, plain)
    _substitute(L, ones)
    columns = np.empty((min(q, _MOST_HELD), q))
    known = np.full(q, -1)  # where in columns a variable is that was ever held
    n_known = 0
    room = np.zeros(q)  # how far the held ones have to go
    side = np.zeros(q, np.int64)
    changes = 1
    for _ in range(_EXCHANGES):
        held = smo.where(side)
        n_known = _kept(L, held, known, columns, n_known)
        if n_known < 0:
            return 0.0
        forces = _step_with(plain, ones, columns, known, held, room, free, step)
        changes = _exchanged(step, forces, held, down, up, side, room)
        if changes == 0:
            break
    if changes > 0:
        return 0.0
    for k in range(q):
        if side[k] != 0:
            step[k] = room[k]
    product = _product(block, step)
    gain = 0.0
    for k in range(q):
        gain += step[k] * (r[k] - 0.5 * product[k])
    return gain
