"""Kernels of a distance: Gaussian (RBF) and Laplacian. Both are stationary."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.gamma import WithGamma
from maxmargin.kernels.parameters import gamma_of
from maxmargin.kernels.rows import DenseRows, FloatArray, Rows, matches, products, sums, written_out
from maxmargin.kernels.tiling import SINGLE_ERROR, scratch

Floats = npt.NDArray[np.float64]

# The loops raise 2, not e, to a power: it is cheaper and as accurate.
LOG2_E = math.log2(math.e)
DOUBLE_ERROR = 1e-9  # in γ‖x − x′‖², beyond which float64 takes differences in the place of norms


def distance_rounding(a: Bound) -> Floats:
    """Return the rounding of 2^−Σ for loss ≥ 0; of sparse rows, sums less what they share."""
    rows, sums_of_rows = a.parts
    if isinstance(rows, DenseRows):
        # A sum z is off by εz/2 for each term, and z·exp(−z) is at most 0.37.
        return np.full(len(a), 4 + 0.2 * (rows.loss + 6))
    return np.asarray(4 + (2 * rows.loss + 6) * sums_of_rows / LOG2_E, np.float64)


class Stationary(WithGamma):
    """A function of γ and a distance: 1 on the diagonal, and blind to where the origin is."""

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma

    @property
    def psd(self) -> bool:
        """True."""
        return True

    @property
    def stationary(self) -> bool:
        """True."""
        return True

    def _diag(self, a: Bound) -> FloatArray:
        return np.ones(len(a), a.dtype)


class RBF(Stationary):
    """The Gaussian kernel, K = exp(−γ ‖x − x′‖²).

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; a large one makes the kernel narrow. The two words are numbers after
        ``resolved(X)``: 1/(d·Var X) and 1/d.

    Notes
    -----
    Distances come from norms and one matrix product, on dense rows after their mean is taken off.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(gamma=0.5).gram([[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.607, 0.135],
           [0.607, 1.   , 0.607],
           [0.135, 0.607, 1.   ]])
    >>> RBF(gamma="scale").resolved([[0.0], [1.0], [2.0]])
    RBF(gamma=1.5)
    """

    _cancels = True

    def _bind(self, source: Source) -> Bound:
        factor = gamma_of(self) * LOG2_E
        rows = source.centred
        norms = rows.squared_norms()
        # What float32 rounding does to γ‖x − x′‖², and so to the value; beyond it, use float64.
        if gamma_of(self) * np.finfo(norms.dtype).eps * norms.max(initial=0) > SINGLE_ERROR:
            rows = source.centred_in_double()
            norms = rows.squared_norms()
        if self._drowned(norms):
            return Bound(source, rows)  # without norms: then distances come from differences
        return Bound(source, rows, norms.dtype.type(factor) * norms)

    def _drowned(self, norms: FloatArray) -> bool:
        """Return whether distances, taken from norms, would drown in rounding even in float64."""
        if norms.dtype != np.float64:
            return False
        return bool(gamma_of(self) * np.finfo(np.float64).eps * norms.max(initial=0) > DOUBLE_ERROR)

    def _single_error(self, source: Source) -> float:
        norms = source.about_mean().rows.squared_norms()
        return float(gamma_of(self) * np.finfo(np.float32).eps * norms.max(initial=0))

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        if min(len(a.parts), len(b.parts)) < 2:
            self._fill_by_differences(a.parts[0], b.parts[0], out)
            return
        (x, x_norms), (z, z_norms) = a.parts, b.parts
        if x_norms.dtype == z_norms.dtype == out.dtype:
            self._fill(x, x_norms, z, z_norms, out)
            return
        with scratch(out.shape, np.float64) as wide:
            x, z = x.widened(), z.widened()
            self._fill(x, x_norms.astype(np.float64), z, z_norms.astype(np.float64), wide)
            out[...] = wide

    def rounding(self, a: Bound) -> Floats:
        """Return what ‖x − x′‖² loses by norms, or by differences of centred rows."""
        rows = a.parts[0]
        if len(a.parts) > 1:  # the norms carry γ log₂e
            return np.asarray(4 + (rows.loss + 6) * a.parts[1] / LOG2_E, np.float64)
        lengths = np.sqrt(gamma_of(self) * rows.widened().squared_norms())
        return np.asarray(4 + 0.2 * (rows.loss + 4) + lengths, np.float64)

    def _fill(
        self, x: Rows, x_norms: FloatArray, z: Rows, z_norms: FloatArray, out: FloatArray
    ) -> None:
        products(x, z, out)
        factor = out.dtype.type(2 * gamma_of(self) * LOG2_E)
        loops.kernel_tiles.exponential_of_sums(out, factor, x_norms, z_norms)

    def _fill_by_differences(self, x: Any, z: Any, out: FloatArray) -> None:
        with scratch(out.shape, np.float64) as wide:
            sums(loops.kernel_tiles.Squares(), written_out(x), written_out(z), wide)
            loops.kernel_tiles.exponential(wide, -gamma_of(self) * LOG2_E)
            out[...] = wide


class Laplacian(Stationary):
    """The Laplacian kernel, K = exp(−γ ‖x − x′‖₁).

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; a large one makes the kernel narrow. The two words are numbers after
        ``resolved(X)``.

    Examples
    --------
    >>> from maxmargin.kernels import Laplacian
    >>> Laplacian().gram([[0.0], [1.0], [3.0]]).round(3)
    array([[1.   , 0.368, 0.05 ],
           [0.368, 1.   , 0.135],
           [0.05 , 0.135, 1.   ]])
    """

    def _single_error(self, source: Source) -> float:
        return 0.0

    def _bind(self, source: Source) -> Bound:
        factor = source.dtype.type(gamma_of(self) * LOG2_E)
        return Bound(source, source.rows, factor * source.rows.absolute_sums())

    def rounding(self, a: Bound) -> Floats:
        """Return what ‖x − x′‖₁ loses: by differences, or by sums of sparse rows."""
        return distance_rounding(a)

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        (x, x_sums), (z, z_sums) = a.parts, b.parts
        measure = loops.kernel_tiles.Differences()
        factor = out.dtype.type(-gamma_of(self) * LOG2_E)
        if isinstance(x, DenseRows) and isinstance(z, DenseRows):
            sums(measure, x, z, out)
            loops.kernel_tiles.exponential(out, factor)
        else:
            matches(measure, x, z, out)
            loops.kernel_tiles.exponential_of_sums(out, factor, x_sums, z_sums)
