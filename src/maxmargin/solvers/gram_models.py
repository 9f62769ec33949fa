"""Quadratic models whose Hessian is a matrix, and the sums of products it is made of."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import loops
from maxmargin.solvers.designs import Design
from maxmargin.solvers.quadratic_models import Local, landing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RIDGE = 1e-13  # part of the diagonal added before factorising: columns may repeat each other
_SOLVES = 8  # sign changes followed before coordinates are visited again
_PIECE = 2.0**26  # multiplications between two looks at the clock
_CANCELLED = 1e-8  # what is left of a sum after subtracting the rest is not to be relied on


class Gram:
    """The model with H as a matrix."""

    def __init__(self, products: Floats, means: Floats, total: float, local: Local) -> None:
        self._local = local
        self._means = means / total if total > 0 else np.zeros(len(means))
        self._H = products - np.outer(self._means, means)
        self._H[np.diag_indices(len(means))] += local.damping
        self._gradient = local.slope.copy()
        self.x = local.w.copy()

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        return -float(self._means @ (self.x - self._local.w))

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        local = self._local
        found: tuple[float, int] = loops.working_sets.gram_sweeps(
            self._H, local.l1, local.l2, order, sweeps, aim, self.x, self._gradient
        )
        return found

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        return float(count * len(self.x))

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, dropping those that would change sign."""
        for _ in range(_SOLVES):
            live = np.flatnonzero(self.x)
            if not len(live) or self._solve(live):
                return

    def _solve(self, live: Ints) -> bool:
        """Go to the minimiser with the same signs, or as far as signs allow; return whether so."""
        local, x = self._local, self.x[live]
        l1, l2 = local.l1[live], local.l2[live]
        H = self._H.take(live, axis=0).take(live, axis=1)
        H[np.diag_indices(len(live))] += l2 + _RIDGE * np.abs(np.diag(H))
        scale = 1 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        slope = self._gradient[live] + l1 * np.sign(x) + l2 * x
        try:
            factor = scipy.linalg.cho_factor(H * scale * scale[:, np.newaxis], overwrite_a=True)
        except np.linalg.LinAlgError:
            return True
        step = -scale * scipy.linalg.cho_solve(factor, scale * slope)
        to, stopped = landing(x, step, slope, lambda moved: np.asarray(H @ moved))
        self._gradient += (to - x) @ self._H[live]
        self.x[live] = to
        return not stopped


class Products:
    """XᵀDX on a working set, following D by the rows where it changes."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._picked = np.empty(0, np.int64)
        self._curvature = np.zeros(design.shape[0])
        self._peak = np.empty(0)
        self.gram = np.empty((0, 0))

    def follow(self, picked: Ints, curvature: Floats) -> Iterator[None]:
        """Bring the products up to date, pausing in between."""
        changed = np.count_nonzero(curvature != self._curvature)
        if changed > np.count_nonzero(curvature) or not np.array_equal(picked, self._picked):
            self._forget(picked)
        yield from self._add(curvature)
        if (np.diag(self.gram) < _CANCELLED * self._peak).any():
            self._forget(picked)
            yield from self._add(curvature)

    def _forget(self, picked: Ints) -> None:
        self._picked = picked
        self._curvature = np.zeros(len(self._curvature))
        self._peak = np.zeros(len(picked))
        self.gram = np.zeros((len(picked), len(picked)))

    def _add(self, curvature: Floats) -> Iterator[None]:
        change = curvature - self._curvature
        rows = np.flatnonzero(change)
        self._curvature = curvature.copy()
        step = 1 + int(_PIECE / max(1.0, self._design.entries(len(self._picked))) ** 2)
        for start in range(0, len(rows), step):
            if start:
                yield
            self._design.add_products(self.gram, self._picked, rows[start : start + step], change)
        self._peak = np.maximum(self._peak, np.diag(self.gram))
