"""Kernels of the dot product x·x′: linear, polynomial, cosine, sigmoid."""

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.gamma import WithGamma
from maxmargin.kernels.parameters import gamma_of, real, whole
from maxmargin.kernels.rows import FloatArray, products

Floats = npt.NDArray[np.float64]


class Linear(Kernel):
    """The dot product, K = x·x′.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> Linear().gram([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    @property
    def psd(self) -> bool:
        """True."""
        return True

    def _single_error(self, source: Source) -> float:
        return 0.0

    def _bind(self, source: Source) -> Bound:
        return Bound(source, source.rows)

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        products(a.parts[0], b.parts[0], out)

    def _diag(self, a: Bound) -> FloatArray:
        norms: FloatArray = a.parts[0].squared_norms()
        return norms

    def rounding(self, a: Bound) -> Floats:
        """Return half an ε for each product in the sum."""
        return np.full(len(a), 0.5 * (a.parts[0].loss + 8))


class Polynomial(WithGamma, Linear):
    """Powers of an affine function of the dot product, K = (γ x·x′ + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        The power, at least 0.
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; the two words are numbers after ``resolved(X)``.
    coef0 : float, default=1.0
        Weighs low powers against high ones. Below 0 the kernel is not positive semidefinite.

    Examples
    --------
    >>> from maxmargin.kernels import Polynomial
    >>> Polynomial(degree=2).gram([[1.0, 2.0], [3.0, 4.0]])
    array([[ 36., 144.],
           [144., 676.]])
    """

    def __init__(self, degree: int = 3, gamma: float | str = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def psd(self) -> bool:
        """Whether coef0 ≥ 0: then every coefficient of the expanded power is ≥ 0."""
        return real(self, "coef0") >= 0

    def _check(self) -> None:
        gamma_of(self), real(self, "coef0"), whole(self, "degree", at_least=0)

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        super()._tile(a, b, out)
        number = out.dtype.type
        loops.kernel_tiles.affine_power(
            out, number(gamma_of(self)), number(real(self, "coef0")), int(self.degree)
        )

    def _diag(self, a: Bound) -> FloatArray:
        values = super()._diag(a)
        number = values.dtype.type
        loops.kernel_tiles.affine_power(
            values[None, :], number(gamma_of(self)), number(real(self, "coef0")), int(self.degree)
        )
        return values

    def rounding(self, a: Bound) -> Floats:
        """Return what the sum loses, and what the power makes of it."""
        return max(int(self.degree), 1) * (super().rounding(a) + 3)


class Sigmoid(WithGamma, Linear):
    """The hyperbolic tangent of the dot product, K = tanh(γ x·x′ + coef0).

    It is *not* positive semidefinite (``psd`` is False): a solution found with it is never
    certified as optimal.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; the two words are numbers after ``resolved(X)``.
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

    def __init__(self, gamma: float | str = 1.0, coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def psd(self) -> bool:
        """False."""
        return False

    def _check(self) -> None:
        gamma_of(self), real(self, "coef0")

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        super()._tile(a, b, out)
        self._squash(out)

    def _diag(self, a: Bound) -> FloatArray:
        values = super()._diag(a)
        self._squash(values)
        return values

    def _squash(self, values: FloatArray) -> None:
        values *= values.dtype.type(gamma_of(self))
        values += values.dtype.type(real(self, "coef0"))
        np.tanh(values, out=values)


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

    def _bind(self, source: Source) -> Bound:
        # Divided by the largest value first, so that squares of tiny or huge rows stay in range.
        largest = source.rows.largest()
        rows = source.rows.scaled(1 / np.where(largest > 0, largest, 1).astype(largest.dtype))
        norms = np.sqrt(rows.squared_norms())
        return Bound(
            source, rows.scaled(1 / np.where(norms > 0, norms, 1).astype(norms.dtype)), norms
        )

    def _diag(self, a: Bound) -> FloatArray:
        ones: FloatArray = (a.parts[1] > 0).astype(a.dtype)
        return ones
