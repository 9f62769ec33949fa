"""Kernels of the dot product x·x′: linear, polynomial, cosine, sigmoid."""

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel, KernelWithGamma, check_real, check_whole
from maxmargin.kernels.prepared import (
    FloatArray,
    PreparedRows,
    Rows,
    Source,
    SparseRows,
    count_terms,
    fill_products,
    squared_norms,
)


class Linear(Kernel):
    """The dot product, K = x·x′.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> Linear().gram([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    psd = True
    float32_safe = True
    pairwise_metric = "linear"

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile with dot products."""
        fill_products(a, b, out)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return ‖x‖²."""
        return squared_norms(a.parts[0])

    def rounding(self, a: PreparedRows) -> Floats:
        """Return half an ε for each product in the sum, and what preparing the rows costs."""
        return np.full(len(a), 0.5 * (count_terms(a.parts[0]) + 8))

    def float32_rounding(self, a: PreparedRows) -> tuple[Floats, Floats] | None:
        """Return half of what d products and their sum, and rounding both rows, cost."""
        return _product_rounding(a, 1, 0.0)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂x = z."""
        return W @ Z


_U = 2.0**-24  # half of float32's ε
_MODERATE = 1e-12  # γ between this and its inverse: its products do not underflow
_SHORTEST = 1e-20  # ‖x‖² of a row whose products do not underflow in float32
_MOST_ROUNDING, _MOST_TERMS = 0.1, 1e4


def _product_rounding(a: PreparedRows, degree: int, coef0: float) -> tuple[Floats, Floats] | None:
    """Return what ``Kernel.float32_rounding`` does, for powers of coef0 + γ x·x′.

    By Cauchy and Schwarz no sum of |xₖ||x′ₖ| is above ‖x‖‖x′‖. Both rows are rounded, which counts
    2, and the affine function counts 4. A row of zeros may be one that underflowed: then all of
    x·x′ is lost, which shows only without coef0.
    """
    rows = a.parts[0]
    norms, terms = squared_norms(rows, np.float64), count_terms(rows)
    part = _U * degree * (terms + 8)
    short = ((norms > 0) & (norms < _SHORTEST)).any()
    if part > _MOST_ROUNDING or terms > _MOST_TERMS or short:
        return None
    part *= 0.5 * (1 + 2 * part)
    return np.zeros(len(a)), np.where((norms > 0) | (coef0 > _MODERATE**0.5), part, 1.0)


class MappedProduct(KernelWithGamma, Linear):
    """A function of the dot product; ``_map`` applies it in place, to a matrix."""

    def _map(self, values: FloatArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _map")

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Map a tile of dot products."""
        super().fill_tile(a, b, out)
        self._map(out)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Map ‖x‖²."""
        values = super().diagonal(a)
        self._map(values[None, :])
        return values


class Polynomial(MappedProduct):
    """Powers of an affine function of the dot product, K = (γ x·x′ + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        The power, at least 0.
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; ``resolved(X)`` replaces the two words by numbers.
    coef0 : float, default=1.0
        Weighs low powers against high ones. Below 0 the kernel is not positive semidefinite.

    Examples
    --------
    >>> from maxmargin.kernels import Polynomial
    >>> Polynomial(degree=2).gram([[1.0, 2.0], [3.0, 4.0]])
    array([[ 36., 144.],
           [144., 676.]])
    """

    pairwise_metric = "poly"

    def __init__(self, degree: int = 3, gamma: float | str = 1.0, coef0: float = 1.0) -> None:
        super().__init__(gamma)
        self.degree = degree
        self.coef0 = coef0

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether coef0 ≥ 0: then every coefficient of the expanded power is ≥ 0."""
        return check_real(self, "coef0") >= 0

    def check_parameters(self) -> None:
        """Check all three."""
        super().check_parameters()
        check_real(self, "coef0")
        check_whole(self, "degree", at_least=0)

    def _map(self, values: FloatArray) -> None:
        gamma, coef0 = values.dtype.type(self._gamma), values.dtype.type(self.coef0)
        loops.kernel_tiles.affine_power(values, gamma, coef0, int(self.degree))

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the rounding of the affine function, once for each factor of the power."""
        return max(int(self.degree), 1) * (super().rounding(a) + 3)

    def float32_rounding(self, a: PreparedRows) -> tuple[Floats, Floats] | None:
        """Return the rounding of the affine function, once for each factor of the power.

        With γ‖x‖² + coef0 for the lengths, no part of it is larger than their product.
        """
        if not self.psd or not _MODERATE < self._gamma < 1 / _MODERATE:
            return None
        return _product_rounding(a, max(int(self.degree), 1), float(self.coef0))

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂x = degree γ (γ x·z + coef0)^(degree − 1) z."""
        degree = int(self.degree)
        if degree == 0:
            return np.zeros_like(X)
        inner = self._gamma * (X @ Z.T) + float(self.coef0)
        return (W * (degree * self._gamma * inner ** (degree - 1))) @ Z


class Sigmoid(MappedProduct):
    """The hyperbolic tangent of the dot product, K = tanh(γ x·x′ + coef0).

    It is *not* positive semidefinite (``psd`` is False): a solution found with it is never
    certified as optimal.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; ``resolved(X)`` replaces the two words by numbers.
    coef0 : float, default=0.0
        The shift inside the tangent.

    Examples
    --------
    >>> from maxmargin.kernels import Sigmoid
    >>> kernel = Sigmoid(gamma=0.5, coef0=-1.0)
    >>> kernel.psd
    False
    >>> kernel.gram([[1.0], [2.0]]).round(3)
    array([[-0.462,  0.   ],
           [ 0.   ,  0.762]])
    """

    psd = False
    pairwise_metric = "sigmoid"

    def __init__(self, gamma: float | str = 1.0, coef0: float = 0.0) -> None:
        super().__init__(gamma)
        self.coef0 = coef0

    def check_parameters(self) -> None:
        """Check both."""
        super().check_parameters()
        check_real(self, "coef0")

    def _map(self, values: FloatArray) -> None:
        values *= values.dtype.type(self._gamma)
        values += values.dtype.type(self.coef0)
        np.tanh(values, out=values)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂x = γ (1 − K²) z."""
        return (W * (self._gamma * (1.0 - self.gram(X, Z) ** 2))) @ Z


class Cosine(Linear):
    """The cosine of the angle between rows, K = x·x′ / (‖x‖ ‖x′‖).

    A row of zeros has no direction: its kernel with every row, itself included, is 0.

    Examples
    --------
    >>> from maxmargin.kernels import Cosine
    >>> Cosine().gram([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]).round(3)
    array([[1.   , 0.707, 0.   ],
           [0.707, 1.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """

    pairwise_metric = "cosine"

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep x/‖x‖ and ‖x‖, up to a factor."""
        # Divided by the largest value first, so that squares of tiny or huge rows stay in range.
        rows = source.rows
        if isinstance(rows, SparseRows):
            rows = _divide(rows, abs(rows.matrix).max(axis=1).toarray().ravel())
        else:
            rows = _divide(rows, np.abs(rows).max(axis=1))
        norms = np.sqrt(squared_norms(rows))
        return PreparedRows(source, _divide(rows, norms), norms)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return 1, or 0 for a row of zeros."""
        return np.asarray(a.parts[1] > 0, a.dtype)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂x = (z/‖z‖ − K x/‖x‖)/‖x‖, and 0 for a row of zeros."""
        x_norms = np.linalg.norm(X, axis=1, keepdims=True)
        z_norms = np.linalg.norm(Z, axis=1, keepdims=True)
        x_norms[x_norms == 0] = z_norms[z_norms == 0] = np.inf
        K = (W * self.gram(X, Z)).sum(axis=1, keepdims=True)
        return np.asarray((W @ (Z / z_norms) - K * X / x_norms) / x_norms)


def _divide(rows: Rows, lengths: FloatArray) -> Rows:
    """Return each row divided by its length, a row of zeros as it is."""
    factors = 1 / np.where(lengths > 0, lengths, 1).astype(lengths.dtype)
    if not isinstance(rows, SparseRows):
        return np.asarray(rows * factors[:, None])
    matrix = rows.matrix.copy()
    matrix.data *= np.repeat(factors, np.diff(matrix.indptr))
    return SparseRows.of(matrix)
