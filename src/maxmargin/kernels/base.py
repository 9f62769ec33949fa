"""What every kernel is: a symmetric function K(x, x′) of two rows, with operators to compose it.

    K(x, x′) = Σₘ φₘ(x) φₘ(x′)

A kernel says what it computes of rows once (``prepare_rows``) and how to fill one tile of a Gram
matrix (``fill_tile``) and its diagonal (``diagonal``) from that; the driver in ``tiles`` does the
rest.
"""

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import tiles
from maxmargin.kernels.prepared import FloatArray, PreparedRows, Source
from maxmargin.validation.parameters import as_float

# What a class says about values that are computed as it computes them.
_ABOUT_VALUES = (
    "weighted_gradient", "to_gaussian_process", "pairwise_metric", "narrowed", "float32_rounding",
    "nonnegative", "bounded", "sums", "gaussian_factor",
)  # fmt: skip


class Kernel:
    """Base of all kernels; subclass it, or wrap a function in ``FromFunction``.

    Kernels are values: parameters are stored as given and checked when used; ``==`` compares
    types and parameters; ``k1 + k2``, ``k1 * k2``, ``2 * k``, ``k + 1.0`` and ``k ** 3`` give new
    kernels with copies of their members.

    A subclass defines ``fill_tile``, ``diagonal`` and ``psd``, and ``prepare_rows`` if it needs
    more than the rows; everything else under "For subclasses" below has a default that is safe.
    """

    __array_ufunc__: ClassVar[None] = None  # so that np.float64(2) * kernel asks the kernel
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # New values: what the base class says about its own values no longer holds.
        if {"prepare_rows", "fill_tile"} & vars(cls).keys():
            for name in _ABOUT_VALUES:
                if name not in vars(cls):
                    setattr(cls, name, getattr(Kernel, name))

    psd: bool | None = None  # whether every Gram matrix is positive semidefinite; None: unknown
    stationary: bool = False  # whether K(x + c, x′ + c) = K(x, x′) for every shift c
    takes_objects: bool = False  # whether rows may be any objects, rather than vectors
    takes_gram: bool = False  # whether the input is a matrix of kernel values instead of rows

    def for_objects(self) -> "Kernel":
        """Return the kernel that takes lists of objects where this one takes rows, if it can."""
        return self._rebuild(lambda member: member.for_objects())

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
        if B is None:
            both = self.prepare(A)
            return self.block(both, both)
        left, right = Source(A), Source(B)
        dtype = np.promote_types(left.dtype, right.dtype)
        left, right = left.cast(dtype), right.cast(dtype)
        self._check_pair(left, right)
        b = self.prepare(right)
        return self.block(self.prepare(left, like=b), b)

    def diag(self, A: Any) -> FloatArray:
        """Return K(aᵢ, aᵢ) for rows, or for ``PreparedRows``."""
        values = self.diagonal(A if isinstance(A, PreparedRows) else self.prepare(A))
        if not np.isfinite(values).all():
            raise tiles.overflow(self)
        return values

    def prepare(self, X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return what the kernel needs of the rows of X, computed once; see ``block``.

        Parameters
        ----------
        X : array, sparse matrix, frame or list of rows
            The rows.
        like : PreparedRows, optional
            The rows with which these will be compared. Kernels of distances measure from an origin
            near the rows, so that a large mean costs no digits; both sides need the same origin.
        """
        self.check_parameters()
        source = X if isinstance(X, Source) else Source(X)
        if like is not None:
            source.origin = like.origin
        elif self.needs_centring:
            source.origin = source.mean()
        return self.prepare_rows(source)

    def block(
        self,
        a: PreparedRows,
        b: PreparedRows,
        out: FloatArray | None = None,
        threads: int | None = None,
    ) -> FloatArray:
        """Return the matrix of K between prepared rows.

        Parameters
        ----------
        a, b : PreparedRows
            Made by this kernel's ``prepare``, or slices of it. If they are the same object, only
            half of the matrix is computed.
        out : ndarray, optional
            Where to write the values: an array of the right shape and type.
        threads : int, optional
            The number of threads; by default as many as BLAS would use. The result does not depend
            on it.
        """
        self._check_pair(a, b)
        shape = (len(a), len(b))
        if out is None:
            out = np.empty(shape, a.dtype)
        elif out.shape != shape or out.dtype != a.dtype:
            raise ValueError(
                f"out must have shape {shape} and type {a.dtype}, got {out.shape} and {out.dtype}"
            )
        tiles.fill_block(self, a, b, out, threads)
        return out

    def dot(
        self, a: PreparedRows, b: PreparedRows, weights: FloatArray, threads: int | None = None
    ) -> Floats:
        """Return K(a, b) @ weights without storing K: the scores of an expansion.

        Parameters
        ----------
        a, b : PreparedRows
            As in ``block``: if they are the same object, only half of the values are computed.
        weights : ndarray of shape (len(b), m)
            Coefficients, one column for each function.
        threads : int, optional
            As in ``block``.

        Returns
        -------
        ndarray of shape (len(a), m)
            In float64.
        """
        self._check_pair(a, b)
        if a is b:
            return tiles.SymmetricProduct(self, a, threads).dot(weights)
        return tiles.dot(self, a, b, weights, threads)

    def dot_with_magnitudes(
        self,
        a: PreparedRows,
        b: PreparedRows,
        weights: FloatArray,
        threads: int | None = None,
        *,
        partial: bool = False,
    ) -> tuple[Floats, Floats]:
        """Return K(a, b) @ weights, and |K(a, b)| @ |weights|, which bounds its rounding.

        If both are the same object, only half of the values are computed. With ``partial``, rows
        that were not reached within the time limit are NaN, instead of an error.
        """
        self._check_pair(a, b)
        if a is b:
            product = tiles.SymmetricProduct(self, a, threads)
            both = product.dot(weights, magnitudes=True, partial=partial)
        else:
            both = tiles.dot(
                self, a, b, weights, threads, magnitudes=True, partial=partial, run=tiles.RUN_64
            )
        return both[:, : weights.shape[1]], both[:, weights.shape[1] :]

    def sharpened(self, a: PreparedRows) -> PreparedRows:
        """Return rows with values as exact as float64 allows, if these are quick to compute.

        Compare them only with each other.
        """
        return a

    def resolved(self, X: Any, weight: Any = None) -> Self:
        """Return a copy with numbers instead of gamma="scale" and gamma="auto".

        Parameters
        ----------
        X : array, sparse matrix, frame or list of rows
            The rows whose variance decides.
        weight : array of shape (n,), optional
            How many times each row counts in the variance.
        """
        source = Source(X)
        source.weight = weight
        return self.resolve(source)

    def _check_pair(self, a: PreparedRows | Source, b: PreparedRows | Source) -> None:
        if a.width is not None and b.width is not None and a.width != b.width:
            raise ValueError(
                f"{type(self).__name__}: both sides need the same number of columns, "
                f"got {a.width} and {b.width}"
            )
        if a.dtype != b.dtype:
            raise ValueError(
                f"both sides must be prepared in one number type, got {a.dtype} and {b.dtype}"
            )
        if a.origin is not b.origin and not _same(a.origin, b.origin):
            raise ValueError(
                "both sides must be measured from one origin: prepare(X, like=the other side)"
            )

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

    def copy(self) -> Self:
        """Return a kernel with the same parameters and with copies of its members."""
        return self._rebuild(lambda member: member.copy())

    def _rebuild(self, change: Callable[["Kernel"], "Kernel"]) -> Self:
        """Return a kernel with the same parameters and with changed members."""
        rebuilt = copy.copy(self)
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                setattr(rebuilt, name, change(value))
            elif isinstance(value, list | tuple):
                members = (change(each) if isinstance(each, Kernel) else each for each in value)
                setattr(rebuilt, name, type(value)(members))
        return rebuilt

    # ------------------------------------------------------------ for subclasses: values

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Return what ``fill_tile`` and ``diagonal`` need of the rows: by default the rows."""
        return PreparedRows(source, source.rows)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a C-contiguous tile with K(a, b)."""
        raise NotImplementedError(f"{type(self).__name__} does not define fill_tile")

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return K(aᵢ, aᵢ), in the type of the rows; ``diag`` checks it."""
        raise NotImplementedError(f"{type(self).__name__} does not define diagonal")

    def check_parameters(self) -> None:
        """Raise an error for parameters that make no kernel."""

    def resolve(self, source: Source) -> Self:
        """Return a copy with numbers for parameters that depend on the data."""
        return self._rebuild(lambda member: member.resolve(source))

    # ------------------------------------------------------------ for subclasses: about the values

    nonnegative: bool = False  # no value is below 0
    bounded: bool = False  # no value overflows

    def rounding(self, a: PreparedRows) -> Floats:
        """Return r ≥ 0 for each row: the rounding error of values in float64, in units of ε.

        A value computed for x and x′ is within ε(r(x) + r(x′))·√(K(x, x)K(x′, x′)) of K(x, x′).
        Values computed by a function of the user are exact by definition: 0, the default.
        """
        return np.zeros(len(a))

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Return Σⱼ Wᵢⱼ ∂K(xᵢ, zⱼ)/∂xᵢ for each row xᵢ; an error by default.

        With a weight for each pair, sums, products and powers follow the rules of calculus: a
        product passes the values of the other factors on as weights. At a kink the derivative is
        the mean of both sides.

        Parameters
        ----------
        X, Z : arrays of shape (m, d) and (n, d)
            Rows, in float64.
        W : array of shape (m, n)
            A weight for each pair.

        Returns
        -------
        array of shape (m, d)
        """
        known = {
            kernel.__name__
            for kernel in _subclasses(Kernel)
            if kernel.weighted_gradient is not Kernel.weighted_gradient
        }
        raise TypeError(
            f"the derivative of {self!r} is not known; it is for {', '.join(sorted(known))}."
        )

    # The name by which sklearn.metrics.pairwise_kernels computes the same values, if it does.
    pairwise_metric: ClassVar[str | None] = None

    def to_gaussian_process(self, gp: Any, convert: Callable[["Kernel"], Any]) -> Any:
        """Return scikit-learn's Gaussian-process kernel with the same values, None if it has none.

        ``gp`` is ``sklearn.gaussian_process.kernels``, which is slow to import. ``convert`` does
        the same for the members of a composition, and always returns a kernel.
        """
        if self.pairwise_metric is None:
            return None
        parameters = self.get_params(deep=False)
        gamma = parameters.pop("gamma", 1.0)
        return gp.PairwiseKernel(
            metric=self.pairwise_metric, gamma=gamma, pairwise_kernels_kwargs=parameters or None
        )

    # ------------------------------------------------------------ for subclasses: speed

    max_tile_rows: int = 2**30  # a tile has no more rows than that
    thread_safe: bool = True  # several tiles may be computed at the same time
    needs_centring: bool = False  # distances come from norms, so that a large mean costs digits
    float32_safe: bool = False  # values in float32 lose no digits beyond its own precision

    def sums(self, b: PreparedRows, weights: FloatArray, run: int) -> Any:
        """Return what adds up K(a, b) @ weights without tiles; None: nothing does.

        That is an object with the methods of ``GaussianSums``.
        """
        return None

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Return rows prepared in float64 in float32, or None if its rounding would show.

        Compare them only with each other.
        """
        return a.narrowed() if self.float32_safe else None

    def gaussian_factor(self, a: PreparedRows) -> float | None:
        """Return the f for which values are 2^(f·x·z − p(x) − p(z)), or None.

        Parts of the prepared rows are then dense rows x, and the p.
        """
        return None

    def float32_rounding(self, a: PreparedRows) -> tuple[Floats, Floats] | None:
        """Return r and s for each of some narrowed rows: the error of values in float32.

        With t = r(x) + r(x′), the value k computed for x and x′ is within
        (eᵗ − 1)|k| + (s(x) + s(x′))·√(K(x, x)K(x′, x′)) + 1e-37 of K(x, x′), where x and x′ are the
        rows that were given, before any rounding. None: no bound is known.
        """
        return None

    # ------------------------------------------------------------ composition

    def __add__(self, other: Any) -> "Kernel":
        return compose.add(self, other)

    def __radd__(self, other: Any) -> "Kernel":
        if isinstance(other, int) and other == 0:
            return self  # sum() starts from 0
        return compose.add(other, self)

    def __mul__(self, other: Any) -> "Kernel":
        return compose.multiply(self, other)

    def __rmul__(self, other: Any) -> "Kernel":
        return compose.multiply(other, self)

    def __pow__(self, exponent: Any) -> "Kernel":
        return compose.raise_to(self, exponent)

    # ------------------------------------------------------------ identity

    # How tightly the printed form binds: atoms 3, powers 2, products 1, sums 0.
    precedence: ClassVar[int] = 3

    @property
    def short_name(self) -> str:
        """The name of the kernel in the parameters of a sum or product."""
        return type(self).__name__.lower()

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


def _subclasses(kernel: type[Kernel]) -> Iterator[type[Kernel]]:
    for subclass in kernel.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _same(mine: Any, other: Any) -> bool:
    if mine is other:
        return True
    if isinstance(mine, list | tuple) and isinstance(other, list | tuple):
        return len(mine) == len(other) and all(map(_same, mine, other))
    if isinstance(mine, np.ndarray | list | tuple) or isinstance(other, np.ndarray):
        try:
            return np.array_equal(np.asarray(mine), np.asarray(other))
        except ValueError:  # ragged
            return False
    return type(other) is not type and bool(mine == other)


def unknown_parameter(kernel: Kernel, name: str) -> str:
    """Return the error message for a parameter that the kernel does not have."""
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


# ---------------------------------------------------------------- checks of parameters


def check_real(kernel: Kernel, name: str, *, at_least: float = -math.inf) -> float:
    """Return a parameter as a finite number."""
    value = getattr(kernel, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{type(kernel).__name__}: {name} must be a number, got {value!r}")
    if not math.isfinite(as_float(value)):
        raise ValueError(f"{type(kernel).__name__}: {name} must be finite, got {value!r:.60}")
    if value < at_least:
        raise ValueError(
            f"{type(kernel).__name__}: {name} must be at least {at_least}, got {value!r}: "
            "a negative multiple of a kernel is not positive semidefinite"
        )
    return float(value)


def check_whole(kernel: Kernel, name: str, *, at_least: int) -> int:
    """Return a parameter as a whole number."""
    value = getattr(kernel, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{type(kernel).__name__}: {name} must be a whole number, got {value!r}")
    if not isinstance(value, Integral) or value < at_least:
        raise ValueError(
            f"{type(kernel).__name__}: {name} must be a whole number of at least {at_least}, got "
            f"{value!r}: other powers of a kernel need not be positive semidefinite"
        )
    return int(value)


# ---------------------------------------------------------------- the scale gamma


class KernelWithGamma(Kernel):
    """A kernel with a scale γ > 0, or the words "scale" and "auto" until ``resolved(X)``."""

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma

    @property
    def _gamma(self) -> float:
        """γ as a checked number."""
        value: Any = self.gamma
        name = type(self).__name__
        if isinstance(value, str) and value in ("scale", "auto"):
            raise ValueError(
                f"{name}: gamma={value!r} depends on the data; "
                "call kernel.resolved(X) first and use what it returns"
            )
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(
                f"{name}: gamma must be a number above 0, 'scale' or 'auto', got {value!r}"
            )
        if not 0 < as_float(value) < math.inf:
            raise ValueError(
                f"{name}: gamma must be a finite number above 0, got {value!r:.60}; "
                "gamma='scale' is a safe start"
            )
        return float(value)

    def check_parameters(self) -> None:
        """Raise an error unless γ is a number above 0."""
        self._gamma  # noqa: B018

    def resolve(self, source: Source) -> Self:
        """Return a copy with a number for γ, as scikit-learn's SVMs define the two words.

        "scale" is 1/(d·Var X), or 1 if all values are equal; "auto" is 1/d.
        """
        resolved = copy.copy(self)
        rule = self.gamma if isinstance(self.gamma, str) else None
        if rule == "scale":
            spread = source.rows.shape[1] * source.variance()
            resolved.gamma = 1.0 / spread if spread > 0 else 1.0
        elif rule == "auto":
            resolved.gamma = 1.0 / source.rows.shape[1]
        resolved.check_parameters()
        return resolved


# Operators build sums and products, which are kernels: their module needs the class above.
from maxmargin.kernels import compose  # noqa: E402
