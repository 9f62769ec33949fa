"""Kernels of histograms, rows of numbers ≥ 0: exponential χ² and intersection."""

from typing import Any

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.prepared import (
    FloatArray,
    PreparedRows,
    Rows,
    Source,
    absolute_sums,
    count_terms,
    fill_sums,
    stored_numbers,
)
from maxmargin.kernels.stationary import ExponentialOfSum, sum_slopes


class ChiSquared(ExponentialOfSum):
    """The exponential χ² kernel of histograms, K = exp(−γ Σ (x − x′)²/(x + x′)), with 0/0 = 0.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; ``resolved(X)`` replaces the two words by numbers.

    Examples
    --------
    >>> from maxmargin.kernels import ChiSquared
    >>> ChiSquared().gram([[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([[1.   , 0.513],
           [0.513, 1.   ]])
    """

    psd = True
    pairwise_metric = "chi2"
    _shared_weight = 4.0  # (x − z)²/(x + z) = x + z − 4xz/(x + z)

    def _term(self) -> Any:
        return loops.kernel_tiles.ChiSquares()

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the rows and γ log₂e Σx; refuse negative values."""
        _check_nonnegative(self, source.rows)
        return super().prepare_rows(source)

    def rounding(self, a: PreparedRows) -> Floats:
        """Return twice that of a sum of differences."""
        return 2 * super().rounding(a)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂/∂x (x − z)²/(x + z) = (x − z)(x + 3z)/(x + z)², and 1 at x = z = 0."""
        G = -self._gamma * W * self.gram(X, Z)

        def slope(x: Any, z: Any) -> Any:
            total = np.where(x + z > 0, x + z, 1.0)
            return np.where(x + z > 0, (x - z) * (x + 3 * z) / total**2, 1.0)

        return sum_slopes(slope, G, X, Z)


class Intersection(Kernel):
    """What two histograms have in common, K = Σ min(x, x′).

    Examples
    --------
    >>> from maxmargin.kernels import Intersection
    >>> Intersection().gram([[0.5, 0.5], [1.0, 0.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    psd = True  # min(x, x′) = ∫ 1[t < x] 1[t < x′] dt is a dot product of features
    float32_safe = True

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the rows; refuse negative values."""
        _check_nonnegative(self, source.rows)
        return super().prepare_rows(source)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile with sums of minima."""
        fill_sums(loops.kernel_tiles.Minima(), a.parts[0], b.parts[0], out)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return Σx."""
        return absolute_sums(a.parts[0])

    def rounding(self, a: PreparedRows) -> Floats:
        """Return half an ε for each term of the sum."""
        return np.full(len(a), 0.5 * (count_terms(a.parts[0]) + 2))

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂/∂x min(x, z): 1 below z, 0 above it and ½ at the kink."""
        return sum_slopes(lambda x, z: 0.5 * (1.0 + np.sign(z - x)), W, X, Z)


def _check_nonnegative(kernel: Kernel, rows: Rows) -> None:
    values = stored_numbers(rows)
    if values.size and values.min() < 0:
        raise ValueError(
            f"{type(kernel).__name__} is a kernel of histograms: every value must be at least 0, "
            f"got {values.min():g}; shift or rescale the columns, or use Laplacian"
        )
