"""What every kernel is: a symmetric function K(x, x′) of two rows, with operators to compose it.

    K(x, x′) = Σₘ φₘ(x) φₘ(x′)

A kernel says how to fill one tile of a Gram matrix (``_tile``) and its diagonal (``_diag``) from
what it bound to the rows (``_bind``); the driver in ``tiling`` does the rest.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin.kernels import tiling
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.half import HalfGram
from maxmargin.kernels.rows import FloatArray


class Kernel:
    """Base of all kernels; subclass it, or wrap a function in ``FromFunction``.

    Kernels are values: parameters are stored as given and checked when used; ``==`` compares
    types and parameters; ``k1 + k2``, ``k1 * k2``, ``2 * k``, ``k + 1.0`` and ``k ** 3`` give new
    kernels with copies of their members.

    A subclass defines ``_bind``, ``_tile``, ``_diag`` and ``psd``.
    """

    __array_ufunc__: ClassVar[None] = None  # so that np.float64(2) * kernel asks the kernel
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    # How tightly the printed form binds: atoms 3, powers 2, products 1, sums 0.
    _binding: ClassVar[int] = 3

    @property
    def psd(self) -> bool | None:
        """Whether every Gram matrix is positive semidefinite; None if nobody can know."""
        return None

    @property
    def stationary(self) -> bool:
        """Whether K(x + c, x′ + c) = K(x, x′) for every shift c."""
        return False

    @property
    def takes_objects(self) -> bool:
        """Whether rows may be any objects, rather than vectors."""
        return False

    @property
    def takes_gram(self) -> bool:
        """Whether kernel values come in the place of rows."""
        return False

    def for_objects(self) -> "Kernel":
        """Return the kernel that takes lists of objects where this one takes rows, if it can."""
        return self._rebuilt(lambda member: member.for_objects())

    # ------------------------------------------------------------ values

    def gram(self, A: Any, B: Any = None) -> FloatArray:
        """Return the matrix of K(aᵢ, bⱼ).

        Parameters
        ----------
        A : array, sparse matrix, frame or list of rows
            The rows on the left.
        B : the same, optional
            The rows on the right. Without it the matrix is K(A, A): symmetric to the last bit,
            with ``diag(A)`` as its diagonal.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            In float32 if both are float32, else in float64.
        """
        self._check()
        left = Source.of(A)
        right = left if B is None else Source.of(B)
        self._refuse_widths(left.width, right.width)
        dtype = np.promote_types(left.dtype, right.dtype)
        b = self.bind(right.cast(dtype))
        return self.between(b if B is None else self.bind(left.cast(dtype), like=b), b)

    def diag(self, A: Any) -> FloatArray:
        """Return K(aᵢ, aᵢ) for rows, or for a ``Bound``."""
        bound = A if isinstance(A, Bound) else self.bind(A)
        values = self._diag(bound)
        if not np.isfinite(values).all():
            raise ValueError(tiling.overflow_message(self))
        return values

    def bind(self, X: Any, like: Bound | None = None) -> Bound:
        """Return what the kernel needs of the rows of X, computed once; see ``between``.

        Parameters
        ----------
        X : array, sparse matrix, frame or list of rows
            The rows.
        like : Bound, optional
            The rows these will be compared with, bound before. Kernels of distances measure from
            an origin amid the rows, so that a large mean costs no digits; both sides need the same.
        """
        self._check()
        source = Source.of(X)
        if like is not None:
            source = source.measured_from(like.origin)
        elif self._cancels:
            source = source.measured_from(source.mean())
        return self._bind(source)

    def bind_single(self, X: Any) -> Bound | None:
        """Return rows bound in float32, or None where its rounding would show.

        The origin of what comes from here is its own: compare it with itself only.
        """
        self._check()
        source = Source.of(X)
        if self._single_error(source) > tiling.SINGLE_ERROR or source.largest() > 1e15:
            return None
        if self.stationary:  # then a shift changes nothing, and takes no digits afterwards
            source = source.about_mean()
        return self.bind(source.cast(np.float32))

    def between(
        self, a: Bound, b: Bound, out: FloatArray | None = None, threads: int | None = None
    ) -> FloatArray:
        """Return the matrix of K between bound rows.

        Parameters
        ----------
        a, b : Bound
            Made by this kernel's ``bind``, or slices of it. If they are the same object, only
            half of the matrix is computed.
        out : ndarray, optional
            Where to write: of the right shape and type.
        threads : int, optional
            How many threads may work; by default as many as BLAS would use. The result does not
            depend on it.
        """
        self._refuse_unequal(a, b)
        shape = (len(a), len(b))
        if out is None:
            out = np.empty(shape, a.dtype)
        elif out.shape != shape or out.dtype != a.dtype:
            raise ValueError(
                f"out must have shape {shape} and type {a.dtype}, got {out.shape} and {out.dtype}"
            )
        tiling.fill(self, a, b, out, threads)
        return out

    def combine(
        self, a: Bound, b: Bound, weights: FloatArray, threads: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Return K(a, b) @ weights, without ever having K: the scores of an expansion.

        Parameters
        ----------
        a, b : Bound
            As in ``between``: of the same object, only half of the values are computed.
        weights : ndarray of shape (len(b), m)
            Coefficients, a column for each function.
        threads : int, optional
            As in ``between``.

        Returns
        -------
        ndarray of shape (len(a), m)
            In float64.
        """
        self._refuse_unequal(a, b)
        if a is b:
            return HalfGram(self, a, threads).times(weights)
        return tiling.combine(self, a, b, weights, threads)

    def combine_with_sizes(
        self,
        a: Bound,
        b: Bound,
        weights: FloatArray,
        threads: int | None = None,
        *,
        partial: bool = False,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return K(a, b) @ weights as ``combine``, and |K(a, b)| @ |weights|: it bounds rounding.

        With ``partial``, rows that a time limit left no time for are NaN, the last ones first.
        """
        self._refuse_unequal(a, b)
        both = tiling.combine(self, a, b, weights, threads, sizes=True, partial=partial)
        return both[:, : weights.shape[1]], both[:, weights.shape[1] :]

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return r ≥ 0 for each row: what values in float64 may be off by, in units of ε.

        A value computed for x and x′ is within ε(r(x) + r(x′))·√(K(x, x)K(x′, x′)) of K(x, x′).
        Values that somebody else gives are what they are: they are not off.
        """
        return np.zeros(len(a))

    def sharpened(self, a: Bound) -> Bound:
        """Return rows for values that are as exact as float64 allows, if that is quickly done.

        They meet each other only.
        """
        return a

    def resolved(self, X: Any, weight: Any = None) -> Self:
        """Return a copy with numbers in the place of gamma="scale" and gamma="auto".

        Parameters
        ----------
        X : array, sparse matrix, frame or list of rows
            The rows that settle the variance.
        weight : array of shape (n,), optional
            How many times each row counts in it.
        """
        source = Source.of(X)
        source.weight = weight
        return self._resolved(source)

    # ------------------------------------------------------------ parameters

    # scikit-learn's protocol without its base class: that would print a kernel inside an
    # estimator by its parameters, not as the formula it is.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name and, if deep, those of parameters that have some."""
        own = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        nested = {
            f"{name}__{key}": inner
            for name, value in own.items()
            if deep and hasattr(value, "get_params")
            for key, inner in value.get_params().items()
        }
        return {**own, **nested}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by the names that ``get_params`` shows."""
        own = self.get_params(deep=False)
        for path, value in params.items():
            name, _, rest = path.partition("__")
            if name not in own:
                raise ValueError(unknown_parameter(self, path))
            if rest:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    @property
    def _name(self) -> str:
        """What the kernel is called in the parameters of a sum or product."""
        return type(self).__name__.lower()

    # ------------------------------------------------------------ for subclasses

    _tile_rows: int = 2**30  # at most so many rows in a tile
    _threaded: bool = True  # tiles may be computed side by side
    _cancels: bool = False  # distances come from norms, so that a large mean costs digits

    def _check(self) -> None:
        """Raise for parameters that make no kernel."""

    def _single_error(self, source: Source) -> float:
        """Return what float32 would do to values beyond its own precision; inf: not for it."""
        return np.inf

    def _refuse_unequal(self, a: Bound, b: Bound) -> None:
        self._refuse_widths(a.width, b.width)
        if a.dtype != b.dtype:
            raise ValueError(f"both sides must be bound in one type, got {a.dtype} and {b.dtype}")
        if not _same(a.origin, b.origin):
            raise ValueError("both sides must be measured from one origin: bind(X, like=the other)")

    def _refuse_widths(self, left: int | None, right: int | None) -> None:
        if left is not None and right is not None and left != right:
            raise ValueError(
                f"{type(self).__name__}: both sides need the same number of columns, "
                f"got {left} and {right}"
            )

    def _bind(self, source: Source) -> Bound:
        """Return what ``_tile`` and ``_diag`` need of the rows."""
        raise NotImplementedError(f"{type(self).__name__} does not define _bind")

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        """Fill a C-contiguous tile with K(a, b)."""
        raise NotImplementedError(f"{type(self).__name__} does not define _tile")

    def _diag(self, a: Bound) -> FloatArray:
        """Return K(aᵢ, aᵢ)."""
        raise NotImplementedError(f"{type(self).__name__} does not define _diag")

    def _resolved(self, source: Source) -> Self:
        return self._rebuilt(lambda member: member._resolved(source))

    def _copied(self) -> Self:
        return self._rebuilt(lambda member: member._copied())

    def _rebuilt(self, change: Callable[["Kernel"], "Kernel"]) -> Self:
        def changed(value: Any) -> Any:
            if isinstance(value, Kernel):
                return change(value)
            if isinstance(value, list | tuple):
                return type(value)(changed(member) for member in value)
            return value

        parameters = self.get_params(deep=False)
        return type(self)(**{name: changed(value) for name, value in parameters.items()})

    # ------------------------------------------------------------ composition

    def __add__(self, other: Any) -> "Kernel":
        total: Kernel = _operators().added(self, other)
        return total

    def __radd__(self, other: Any) -> "Kernel":
        if isinstance(other, int) and other == 0:
            return self  # sum() starts from 0
        total: Kernel = _operators().added(other, self)
        return total

    def __mul__(self, other: Any) -> "Kernel":
        product: Kernel = _operators().multiplied(self, other)
        return product

    def __rmul__(self, other: Any) -> "Kernel":
        product: Kernel = _operators().multiplied(other, self)
        return product

    def __pow__(self, exponent: Any) -> "Kernel":
        power: Kernel = _operators().raised(self, exponent)
        return power

    # ------------------------------------------------------------ identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return type(self) is type(other) and all(_same(mine[k], theirs[k]) for k in mine)

    def __repr__(self) -> str:
        shown = [
            f"{name}={literal(getattr(self, name))}"
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if not _same(getattr(self, name), parameter.default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(mine: Any, other: Any) -> bool:
    if mine is other:
        return True
    if isinstance(mine, Kernel) or isinstance(other, Kernel):
        return bool(mine == other)
    if isinstance(mine, list | tuple) and isinstance(other, list | tuple):
        return len(mine) == len(other) and all(map(_same, mine, other))
    if isinstance(mine, np.ndarray | list | tuple) or isinstance(other, np.ndarray):
        try:
            return np.array_equal(np.asarray(mine), np.asarray(other))
        except ValueError:  # ragged
            return False
    return type(other) is not type and bool(mine == other)


def unknown_parameter(kernel: Kernel, name: str) -> str:
    """Return the sentence for a parameter that the kernel does not have."""
    return (
        f"Invalid parameter {name!r} for {kernel!r}. "
        f"Valid parameters are: {sorted(kernel.get_params())}."
    )


def literal(value: Any) -> str:
    """Return a value as Python would read it back."""
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return getattr(value, "__qualname__", None) or repr(value)


def _operators() -> Any:
    # What they build are kernels themselves: these can only be imported once this class exists.
    from maxmargin.kernels import operators

    return operators
