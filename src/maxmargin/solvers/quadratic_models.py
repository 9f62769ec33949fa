"""A machine near a point as a quadratic with an ℓ1 penalty, minimised by coordinate descent.

    min_x  slope·(x − w) + ½(x − w)ᵀH(x − w)  +  Σⱼ l1ⱼ|xⱼ| + ½ l2ⱼ xⱼ²

H = XᵀDX + damping over the working set of columns, D being the curvature of each row's loss; if the
intercept is free it moves along, which takes μμᵀ/ΣD away (μ = XᵀD1). ``gram_models`` has H as a
matrix, ``column_models`` the columns of √D X: which is cheaper depends on their number.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WORK = 2.0**24  # multiplications between two looks at the clock
_SWEEPS = 20  # before the coordinates that are not 0 are solved for together


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
            sweeps = 1 + min(_SWEEPS, int(_WORK / model.sweep_work(len(live))))
            aim = 0.3 * accuracy * first
            if model.sweep(live, sweeps, aim)[0] > aim:
                model.polish()
        largest, _ = model.sweep(everything, 1, 0.0)
        yield


def landing(
    x: Floats, step: Floats, slope: Floats, product: Callable[[Floats], Floats]
) -> tuple[Floats, bool]:
    """Return where a step from x leads if no sign may change, and whether any would.

    Either all that would change sign stop at 0, or everything stops where the first does: the
    better by slope·m + ½ m·product(m).
    """
    flips = x * (x + step) < 0
    if not flips.any():
        return x + step, False
    reach = -x[flips] / step[flips]
    first = x + float(reach.min()) * step
    first[np.flatnonzero(flips)[reach.argmin()]] = 0.0
    bold = np.where(flips, 0.0, x + step)

    def gain(to: Floats) -> float:
        moved = to - x
        return float(slope @ moved + 0.5 * moved @ product(moved))

    return min(first, bold, key=gain), True
