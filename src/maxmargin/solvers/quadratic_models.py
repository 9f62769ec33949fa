"""A machine near a point as a quadratic with an ℓ1 penalty, minimised by coordinate descent.

    min_x  slope·(x − w) + ½(x − w)ᵀH(x − w)  +  Σⱼ l1ⱼ|xⱼ| + ½ l2ⱼ xⱼ²

H = XᵀDX + damping over the working set of columns, D being the curvature of each row's loss; if the
intercept is free it moves along, which takes μμᵀ/ΣD away (μ = XᵀD1). ``Gram`` has H as a matrix,
``ByColumns`` the columns of √D X: which is cheaper depends on how many rows and columns there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import loops
from maxmargin.solvers.designs import Design

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RIDGE = 1e-13  # part of the diagonal added before factorising: columns may repeat each other
_WORK = 2.0**24  # multiplications between two looks at the clock
_PIECE = 2.0**26  # the same, in products of columns
_CANCELLED = 1e-8  # what is left of a sum after subtracting the rest is not to be relied on
_SOLVES = 8  # sign changes followed before coordinates are visited again


@dataclass(frozen=True)
class Local:
    """The working set where the model is made: weights, slope of the losses, and penalties."""

    w: Floats
    slope: Floats
    damping: Floats
    l1: Floats
    l2: Floats


class Model(Protocol):
    """A quadratic model with its current minimiser."""

    x: Floats

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        ...

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        ...

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        ...

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, as far as that is worth it."""
        ...


def minimised(model: Model, accuracy: float, patience: int) -> Iterator[None]:
    """Improve a model's minimiser until moves are a small part of the first, pausing in between."""
    everything = np.arange(len(model.x))
    first, _ = model.sweep(everything, 1, 0.0)
    largest = first
    for _ in range(patience):
        if largest <= accuracy * first:
            return
        live = np.flatnonzero(model.x)
        if len(live):
            sweeps = 1 + min(20, int(_WORK / model.sweep_work(len(live))))
            aim = 0.3 * accuracy * first
            if model.sweep(live, sweeps, aim)[0] > aim:
                model.polish()
        largest, _ = model.sweep(everything, 1, 0.0)
        yield


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
        flips = x * (x + step) < 0
        if not flips.any():
            self._go(live, x + step)
            return True
        # Either all that would change sign stop at 0, or everything stops where the first does.
        reach = -x[flips] / step[flips]
        first = x + float(reach.min()) * step
        first[np.flatnonzero(flips)[reach.argmin()]] = 0.0
        bold = np.where(flips, 0.0, x + step)
        self._go(live, min(first, bold, key=lambda to: self._gain(H, slope, l1, x, to)))
        return False

    def _gain(self, H: Floats, slope: Floats, l1: Floats, x: Floats, to: Floats) -> float:
        moved = to - x
        kinks = l1 @ (np.abs(to) - np.abs(x) - np.sign(x) * moved)
        return float(slope @ moved + 0.5 * moved @ (H @ moved) + kinks)

    def _go(self, live: Ints, to: Floats) -> None:
        self._gradient += (to - self.x[live]) @ self._H[live]
        self.x[live] = to


class ByColumns:
    """The model with H in columns."""

    def __init__(self, A: Any, root: Floats, free: bool, local: Local) -> None:
        width = len(local.w)
        self._A, self._local = A, local
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
        """Leave it to the sweeps."""


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
        step = 1 + int(_PIECE / self._design.entries(len(self._picked)) ** 2)
        for start in range(0, len(rows), step):
            if start:
                yield
            self._design.add_products(self.gram, self._picked, rows[start : start + step], change)
        self._peak = np.maximum(self._peak, np.diag(self.gram))
