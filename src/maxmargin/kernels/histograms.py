"""Kernels of histograms, rows of numbers ≥ 0: exponential χ² and intersection."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.distances import LOG2_E, distance_rounding
from maxmargin.kernels.gamma import WithGamma
from maxmargin.kernels.parameters import gamma_of
from maxmargin.kernels.rows import DenseRows, FloatArray, Rows, matches, sums


class ChiSquared(WithGamma):
    """The exponential χ² kernel of histograms, K = exp(−γ Σ (x − x′)²/(x + x′)), with 0/0 = 0.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; the two words are numbers after ``resolved(X)``.

    Examples
    --------
    >>> from maxmargin.kernels import ChiSquared
    >>> ChiSquared().gram([[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([[1.   , 0.513],
           [0.513, 1.   ]])
    """

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma

    @property
    def psd(self) -> bool:
        """True."""
        return True

    def _single_error(self, source: Source) -> float:
        return 0.0

    def _bind(self, source: Source) -> Bound:
        rows = _nonnegative(self, source.rows)
        factor = source.dtype.type(gamma_of(self) * LOG2_E)
        return Bound(source, rows, factor * rows.absolute_sums())

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        (x, x_sums), (z, z_sums) = a.parts, b.parts
        measure = loops.kernel_tiles.ChiSquares()
        factor = gamma_of(self) * LOG2_E
        if isinstance(x, DenseRows) and isinstance(z, DenseRows):
            sums(measure, x, z, out)
            loops.kernel_tiles.exponential(out, out.dtype.type(-factor))
        else:
            # (x − x′)²/(x + x′) = x + x′ − 4xx′/(x + x′), whose last term needs both.
            matches(measure, x, z, out)
            loops.kernel_tiles.exponential_of_sums(out, out.dtype.type(4 * factor), x_sums, z_sums)

    def _diag(self, a: Bound) -> FloatArray:
        return np.ones(len(a), a.dtype)

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return what the sum loses: over all columns, or over those that sparse rows share."""
        return 2 * distance_rounding(a)


class Intersection(Kernel):
    """What two histograms have in common, K = Σ min(x, x′).

    Examples
    --------
    >>> from maxmargin.kernels import Intersection
    >>> Intersection().gram([[0.5, 0.5], [1.0, 0.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    @property
    def psd(self) -> bool:
        """True."""
        return True

    def _single_error(self, source: Source) -> float:
        return 0.0

    def _bind(self, source: Source) -> Bound:
        return Bound(source, _nonnegative(self, source.rows))

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        x, z = a.parts[0], b.parts[0]
        measure: Any = loops.kernel_tiles.Minima()
        if isinstance(x, DenseRows) and isinstance(z, DenseRows):
            sums(measure, x, z, out)
        else:
            matches(measure, x, z, out)

    def _diag(self, a: Bound) -> FloatArray:
        totals: FloatArray = a.parts[0].absolute_sums()
        return totals

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return half an ε for each term of the sum."""
        return np.full(len(a), 0.5 * (a.parts[0].loss + 2))


def _nonnegative(kernel: Kernel, rows: Rows) -> Rows:
    values: Any = rows.values if isinstance(rows, DenseRows) else rows.values.data
    if values.size and values.min() < 0:
        raise ValueError(
            f"{type(kernel).__name__} is a kernel of histograms: every value must be at least 0, "
            f"got {values.min():g}; shift or rescale the columns, or use Laplacian"
        )
    return rows
