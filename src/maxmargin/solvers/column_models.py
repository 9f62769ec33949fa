"""Quadratic models whose Hessian is given by columns, too many for a matrix of products."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.solvers.quadratic_models import Local, landing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SOLVES = 2  # sign changes followed before coordinates are visited again
_CG_STEPS = 30
_CG_ENOUGH = 1e-8  # squared residual, relative to the first


class ByColumns:
    """The model with H in columns."""

    def __init__(self, A: Any, root: Floats, free: bool, local: Local) -> None:
        width = len(local.w)
        self._A, self._local = A, local
        self._csc = sp.csc_array((A.data, A.indices, A.indptr), shape=(len(root), width))
        self._means, squares = np.empty(width), np.empty(width)
        loops.working_sets.column_sums(A, root, self._means, squares)
        self._total = float(root @ root) if free else 0.0
        if self._total == 0.0:
            self._means[:], self._total = 0.0, 1.0
        self._diagonal = squares - self._means**2 / self._total + local.damping
        self._z, self._offset = np.zeros(len(root)), np.zeros(1)
        self._moved = np.zeros(width)
        self.x = local.w.copy()

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        return float(self._offset[0])

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        local = self._local
        found: tuple[float, int] = loops.working_sets.column_sweeps(
            self._A, self._means, self._total, local.slope, self._diagonal, local.damping,
            local.l1, local.l2, order, sweeps, aim, self.x, self._moved, self._z, self._offset,
        )  # fmt: skip
        return found

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        return 2.0 * len(self._A.data) * count / len(self.x) + count

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, by conjugate gradients."""
        for _ in range(_SOLVES):
            live = np.flatnonzero(self.x)
            if not len(live) or self._solve(live):
                return

    def _solve(self, live: Ints) -> bool:
        """Go towards the minimiser with the same signs; return whether no sign stood in the way."""
        local, x = self._local, self.x[live]
        A, means = self._csc[:, live], self._means[live]
        flat = local.damping[live] + local.l2[live]

        def product(moved: Floats) -> Floats:
            down = means * (float(means @ moved) / self._total)
            return np.asarray(A.T @ (A @ moved) + flat * moved - down)

        slope = local.slope[live] + A.T @ self._z + self.offset * means
        slope += local.damping[live] * self._moved[live]
        slope += local.l1[live] * np.sign(x) + local.l2[live] * x
        step = conjugate_gradients(product, -slope, self._diagonal[live] + local.l2[live])
        to, stopped = landing(x, step, slope, product)
        moved = to - x
        self._z += A @ moved
        self._offset[0] -= float(means @ moved) / self._total
        self._moved[live] += moved
        self.x[live] = to
        return not stopped


def conjugate_gradients(
    product: Callable[[Floats], Floats], right: Floats, diagonal: Floats
) -> Floats:
    """Return about the solution of a positive definite system with this diagonal."""
    inverse = 1 / np.maximum(diagonal, 1e-300)
    x, residual = np.zeros(len(right)), right.copy()
    direction = inverse * residual
    size = first = float(residual @ direction)
    for _ in range(_CG_STEPS):
        if size <= _CG_ENOUGH * first:
            break
        along = product(direction)
        curve = float(direction @ along)
        if curve <= 0:
            break
        x += size / curve * direction
        residual -= size / curve * along
        scaled = inverse * residual
        before, size = size, float(residual @ scaled)
        direction = scaled + size / before * direction
    return x
