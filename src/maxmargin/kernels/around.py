"""Compositions of one kernel: a multiple, a power, a restriction to columns."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.kernels.base import Kernel, literal, unknown_parameter
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.composed import Composed, inside
from maxmargin.kernels.parameters import nonnegative, whole
from maxmargin.kernels.rows import FloatArray


class Around(Composed):
    """A composition of one kernel, whose parameters it passes through under their own names."""

    kernel: Kernel

    @property
    def _members(self) -> tuple[Kernel]:
        return (self.kernel,)

    @property
    def _name(self) -> str:
        return self.kernel._name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the own parameters and, if deep, the inner kernel's beside them."""
        own: dict[str, Any] = super().get_params(deep=False)
        inner = self.kernel.get_params() if deep and isinstance(self.kernel, Kernel) else {}
        return {**inner, **own}

    def set_params(self, **params: Any) -> Self:
        """Set own parameters; what is not one goes to the inner kernel."""
        for name in list(params):
            if name in self.get_params(deep=False):
                setattr(self, name, params.pop(name))
        # The long form kernel__gamma is accepted too.
        inner = {name.removeprefix("kernel__"): value for name, value in params.items()}
        for name in inner:
            valid = self.kernel.get_params()
            if name not in valid and name.partition("__")[0] not in valid:
                raise ValueError(unknown_parameter(self, name))
        if inner:
            self.kernel.set_params(**inner)
        return self

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"{type(self).__name__}: kernel must be a Kernel, got {self.kernel!r}")
        self.kernel._check()

    def _bind(self, source: Source) -> Bound:
        return self.kernel._bind(source)

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        self.kernel._tile(a, b, out)
        self._map(out)

    def _diag(self, a: Bound) -> FloatArray:
        values = self.kernel._diag(a)
        self._map(values[None, :])
        return values

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return what the inner kernel loses, and one rounding more."""
        return self.kernel.rounding(a) + 1

    def sharpened(self, a: Bound) -> Bound:
        """Return what the inner kernel does."""
        return self.kernel.sharpened(a)

    def _map(self, values: FloatArray) -> None:
        """Turn values of the inner kernel into one's own, in place."""


class Scaled(Around):
    """A nonnegative multiple of a kernel, as ``2 * k`` builds it.

    Parameters
    ----------
    kernel : Kernel
        What is multiplied.
    factor : float
        By what: at least 0.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> kernel = 2 * RBF()
    >>> kernel.get_params()
    {'gamma': 1.0, 'kernel': RBF(), 'factor': 2}
    >>> kernel.set_params(gamma=0.5, factor=3.0)
    3.0 * RBF(gamma=0.5)
    """

    _binding = 1

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def _check(self) -> None:
        super()._check()
        nonnegative(self, "factor")

    def _map(self, values: FloatArray) -> None:
        values *= values.dtype.type(self.factor)

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        if isinstance(self.kernel, Scaled):
            return super().__repr__()
        return f"{literal(self.factor)} * {inside(self.kernel, 0)}"


class Power(Around):
    """A whole power of a kernel, as ``k ** 3`` builds it.

    Parameters
    ----------
    kernel : Kernel
        What is raised.
    exponent : int
        To what: at least 1.

    Examples
    --------
    >>> from maxmargin.kernels import Linear, Polynomial
    >>> (Linear() + 1.0) ** 2 == Polynomial(degree=2)
    False
    >>> X = [[1.0], [2.0]]
    >>> bool((((Linear() + 1.0) ** 2).gram(X) == Polynomial(degree=2).gram(X)).all())
    True
    """

    _binding = 2

    def __init__(self, kernel: Kernel, exponent: int) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def _check(self) -> None:
        super()._check()
        whole(self, "exponent", at_least=1)

    def _map(self, values: FloatArray) -> None:
        number = values.dtype.type
        loops.kernel_tiles.affine_power(values, number(1), number(0), int(self.exponent))

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return the inner kernel's as often as it is multiplied."""
        return int(self.exponent) * super().rounding(a)

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        if isinstance(self.kernel, Power | Scaled):
            return super().__repr__()
        return f"{inside(self.kernel, self._binding)} ** {literal(self.exponent)}"


class Columns(Around):
    """A kernel of some of the columns.

    Parameters
    ----------
    kernel : Kernel
        What is computed.
    columns : list of int
        Of which columns; negative numbers count from the end.
    of : int, optional
        How many columns X must have altogether; any number by default.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Columns, Linear
    >>> kernel = Columns(RBF(), [0]) * Columns(Linear(), [1, 2])
    >>> kernel.gram([[1.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    array([[4., 0.],
           [0., 9.]])
    """

    def __init__(self, kernel: Kernel, columns: Any, of: int | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.of = of

    def _bind(self, source: Source) -> Bound:
        inner: Bound = self.kernel._bind(self._restricted(source))
        # Both sides must have the same number of columns, not just the same selection.
        inner.width, inner.origin = source.width, source.origin
        return inner

    def _single_error(self, source: Source) -> float:
        return self.kernel._single_error(self._restricted(source))

    def _resolved(self, source: Source) -> Self:
        restricted = self._restricted(source)
        return self._rebuilt(lambda member: member._resolved(restricted))

    def _restricted(self, source: Source) -> Source:
        numbers = np.asarray(self.columns)
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise TypeError(
                f"Columns: columns must be a list of column numbers, got {self.columns!r}"
            )
        width = source.rows.values.shape[1]
        if self.of is not None and width != self.of:
            raise ValueError(f"{self!r}: X must have {self.of} columns, got {width}")
        if numbers.min() < -width or numbers.max() >= width:
            raise ValueError(
                f"Columns: columns must be below {width}, the number of columns of X, "
                f"got {self.columns!r}"
            )
        return source.columns(numbers)
