"""Kernels are closed under sums, products, nonnegative multiples, whole powers and restriction.

    aK₁ + bK₂ (a, b ≥ 0),    K₁K₂,    Kᵖ (p = 1, 2, …),    K on some of the columns

Each tile is computed member by member while it is in cache. The operators flatten as they build,
so that a kernel prints, compares and is tuned in one form.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from numbers import Real
from typing import Any, Self

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel, check_real, check_whole, literal, unknown_parameter
from maxmargin.kernels.prepared import FloatArray, PreparedRows, Source
from maxmargin.kernels.tiles import scratch

Converter = Callable[[Kernel], Any]


def _over_members(fold: Callable[[Iterable[Any]], Any], name: str) -> Any:
    """Return the property that folds an attribute of all members into one value."""
    return property(lambda self: fold(getattr(member, name) for member in self._members))


class Composition(Kernel):
    """What all compositions share: what they are follows from what their members are."""

    @property
    def _members(self) -> Sequence[Kernel]:
        raise NotImplementedError

    # False if it is False for a member, else None if it is unknown for one, else True.
    psd = _over_members(partial(min, key=(False, None, True).index), "psd")
    stationary = _over_members(all, "stationary")
    thread_safe = _over_members(all, "thread_safe")
    takes_objects = _over_members(any, "takes_objects")
    takes_gram = _over_members(any, "takes_gram")
    needs_centring = _over_members(any, "needs_centring")
    max_tile_rows = _over_members(min, "max_tile_rows")


class MemberList(Composition):
    """A composition of a list of kernels, each reached by the name of its class.

    Members are named ``rbf``, ``linear``, …, also inside a multiple or a power; names that occur
    twice are numbered, ``rbf1`` and ``rbf2``. So ``(RBF() + Linear()).set_params(rbf__gamma=2.0)``
    works, and so does ``(3 * RBF() + Linear()).set_params(rbf__factor=2.0)``.
    """

    _list: str
    _sign: str
    _join: Any  # two tiles into one
    _total_rounding: Any  # of the members

    @property
    def _members(self) -> list[Kernel]:
        members: list[Kernel] = getattr(self, self._list)
        return members

    def _names(self) -> list[str]:
        names = [member.short_name for member in self._members]
        total, seen = Counter(names), Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            if total[name] > 1:
                names[i] = f"{name}{seen[name]}"
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the list of members and, if deep, each member and its parameters by name."""
        parameters: dict[str, Any] = {self._list: self._members}
        if deep:
            for name, member in zip(self._names(), self._members, strict=True):
                inner = {f"{name}__{key}": value for key, value in member.get_params().items()}
                parameters |= {name: member, **inner}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set the list, members, or parameters of members, by the names ``get_params`` shows."""
        if self._list in params:
            setattr(self, self._list, params.pop(self._list))
        # Members before their parameters, and all names as they were before any member changed.
        position = {name: i for i, name in enumerate(self._names())}
        for name in sorted(params, key=lambda name: name.count("__")):
            member, _, parameter = name.partition("__")
            if member not in position:
                raise ValueError(unknown_parameter(self, name))
            if parameter:
                self._members[position[member]].set_params(**{parameter: params[name]})
            else:
                self._members[position[member]] = params[name]
        return self

    def check_parameters(self) -> None:
        """Check the list and the parameters of its members."""
        members = getattr(self, self._list)
        if not isinstance(members, list | tuple) or not members:
            raise TypeError(
                f"{type(self).__name__}: {self._list} must be a list of kernels, got {members!r}"
            )
        for member in members:
            if not isinstance(member, Kernel):
                raise TypeError(
                    f"{type(self).__name__}: {self._list} must hold kernels, got {member!r}"
                )
            member.check_parameters()

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Let each member prepare the rows."""
        return PreparedRows(source, *(member.prepare_rows(source) for member in self._members))

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Compute member after member, the first in place."""
        first, *others = zip(self._members, a.parts, b.parts, strict=True)
        first[0].fill_tile(first[1], first[2], out)
        with scratch(out.shape, out.dtype) as values:
            for member, x, z in others:
                member.fill_tile(x, z, values)
                self._join(out, values, out=out)

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Let each member narrow its rows."""
        pairs = zip(self._members, a.parts, strict=True)
        narrow = [member.narrowed(part) for member, part in pairs]
        return None if None in narrow else a.narrowed(narrow)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Join the diagonals of the members."""
        values = (m.diagonal(x) for m, x in zip(self._members, a.parts, strict=True))
        return np.asarray(reduce(self._join, values))

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the largest rounding of terms, or the sum over factors, plus an ε for each."""
        each = [m.rounding(x) for m, x in zip(self._members, a.parts, strict=True)]
        return np.asarray(self._total_rounding(each, axis=0) + len(each))

    def sharpened(self, a: PreparedRows) -> PreparedRows:
        """Return the rows with the sharpened parts of the members."""
        pairs = zip(self._members, a.parts, strict=True)
        return a.with_parts(member.sharpened(part) for member, part in pairs)

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        # What the operators would not have built has no operator form.
        if len(self._members) < 2 or any(m.precedence == self.precedence for m in self._members):
            return super().__repr__()
        return self._sign.join(parenthesize(member, self.precedence) for member in self._members)


class Sum(MemberList):
    """The sum of kernels, as ``k1 + k2`` builds it.

    Parameters
    ----------
    terms : list of Kernel
        At least one.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> kernel = RBF(gamma=0.5) + Linear()
    >>> kernel.set_params(rbf__gamma=2.0)
    RBF(gamma=2.0) + Linear()
    >>> kernel.diag([[1.0], [2.0]])
    array([2., 5.])
    """

    _list, _sign, precedence = "terms", " + ", 0
    _join = staticmethod(np.add)
    _total_rounding = staticmethod(np.max)

    def __init__(self, terms: list[Kernel]) -> None:
        self.terms = terms

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Add the gradients of the terms."""
        return np.asarray(sum(term.weighted_gradient(X, Z, W) for term in self.terms))

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return the sum of the converted terms."""
        return reduce(gp.Sum, map(convert, self.terms))


class Product(MemberList):
    """The product of kernels, as ``k1 * k2`` builds it.

    Parameters
    ----------
    factors : list of Kernel
        At least one.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, Linear
    >>> (RBF() * Linear()).diag([[1.0], [2.0]])
    array([1., 4.])
    >>> sorted((RBF() * RBF()).get_params())
    ['factors', 'rbf1', 'rbf1__gamma', 'rbf2', 'rbf2__gamma']
    """

    _list, _sign, precedence = "factors", " * ", 1
    _join = staticmethod(np.multiply)
    _total_rounding = staticmethod(np.sum)

    def __init__(self, factors: list[Kernel]) -> None:
        self.factors = factors

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Add the gradients of the factors, weighted by the values of the other factors."""
        values = [factor.gram(X, Z) for factor in self.factors]
        total = np.zeros_like(X)
        for k, factor in enumerate(self.factors):
            others = np.prod([*values[:k], *values[k + 1 :], np.ones_like(W)], axis=0)
            total += factor.weighted_gradient(X, Z, W * others)
        return total

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return the product of the converted factors."""
        return reduce(gp.Product, map(convert, self.factors))


# ---------------------------------------------------------------- of one kernel


class Wrapper(Composition):
    """A composition of one kernel, whose parameters it passes through under their own names."""

    kernel: Kernel

    @property
    def _members(self) -> tuple[Kernel]:
        return (self.kernel,)

    @property
    def short_name(self) -> str:
        """The name of the inner kernel."""
        return self.kernel.short_name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its own parameters and, if deep, those of the inner kernel beside them."""
        inner = self.kernel.get_params() if deep and isinstance(self.kernel, Kernel) else {}
        return {**inner, **super().get_params(deep=False)}

    def set_params(self, **params: Any) -> Self:
        """Set its own parameters; all others go to the inner kernel, also as ``kernel__gamma``."""
        own = self.get_params(deep=False)
        for name in sorted(params, key=lambda name: name not in own):
            inner = name.removeprefix("kernel__")
            if name in own:
                setattr(self, name, params[name])
            elif inner.partition("__")[0] in self.kernel.get_params():
                self.kernel.set_params(**{inner: params[name]})
            else:
                raise ValueError(unknown_parameter(self, inner))
        return self

    def check_parameters(self) -> None:
        """Check the inner kernel."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"{type(self).__name__}: kernel must be a Kernel, got {self.kernel!r}")
        self.kernel.check_parameters()

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Let the inner kernel prepare the rows."""
        return self.kernel.prepare_rows(source)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Compute values of the inner kernel and map them in place."""
        self.kernel.fill_tile(a, b, out)
        self._map(out)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Map the diagonal of the inner kernel."""
        values = self.kernel.diagonal(a)
        self._map(values[None, :])
        return values

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Return what the inner kernel makes of them."""
        return self.kernel.narrowed(a)

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the rounding of the inner kernel, plus one."""
        return self.kernel.rounding(a) + 1

    def sharpened(self, a: PreparedRows) -> PreparedRows:
        """Return the sharpened rows of the inner kernel."""
        return self.kernel.sharpened(a)

    def _map(self, values: FloatArray) -> None:
        """Turn values of the inner kernel into values of this one, in place."""


class Scaled(Wrapper):
    """A nonnegative multiple of a kernel, as ``2 * k`` builds it.

    Parameters
    ----------
    kernel : Kernel
        The kernel to multiply.
    factor : float
        At least 0.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> kernel = 2 * RBF()
    >>> kernel.get_params()
    {'gamma': 1.0, 'kernel': RBF(), 'factor': 2}
    >>> kernel.set_params(gamma=0.5, factor=3.0)
    3.0 * RBF(gamma=0.5)
    """

    precedence = 1

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def check_parameters(self) -> None:
        """Check the inner kernel and the factor."""
        super().check_parameters()
        check_real(self, "factor", at_least=0)

    def _map(self, values: FloatArray) -> None:
        values *= values.dtype.type(self.factor)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Multiply the weights by the factor."""
        return self.kernel.weighted_gradient(X, Z, float(self.factor) * W)

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return a constant times the converted kernel."""
        return gp.Product(gp.ConstantKernel(self.factor), convert(self.kernel))

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        if isinstance(self.kernel, Scaled):
            return super().__repr__()
        return f"{literal(self.factor)} * {parenthesize(self.kernel, 0)}"


class Power(Wrapper):
    """A whole power of a kernel, as ``k ** 3`` builds it.

    Parameters
    ----------
    kernel : Kernel
        The kernel to raise to a power.
    exponent : int
        At least 1.

    Examples
    --------
    >>> from maxmargin.kernels import Linear, Polynomial
    >>> (Linear() + 1.0) ** 2 == Polynomial(degree=2)
    False
    >>> X = [[1.0], [2.0]]
    >>> bool((((Linear() + 1.0) ** 2).gram(X) == Polynomial(degree=2).gram(X)).all())
    True
    """

    precedence = 2

    def __init__(self, kernel: Kernel, exponent: int) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def check_parameters(self) -> None:
        """Check the inner kernel and the exponent."""
        super().check_parameters()
        check_whole(self, "exponent", at_least=1)

    def _map(self, values: FloatArray) -> None:
        number = values.dtype.type
        loops.kernel_tiles.affine_power(values, number(1), number(0), int(self.exponent))

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the rounding of the inner kernel, once for each multiplication."""
        return int(self.exponent) * super().rounding(a)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂Kᵖ = p Kᵖ⁻¹ ∂K."""
        p = int(self.exponent)
        inner = self.kernel.gram(X, Z)
        return self.kernel.weighted_gradient(X, Z, W * (p * inner ** (p - 1)))

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return a power of the converted kernel."""
        return gp.Exponentiation(convert(self.kernel), self.exponent)

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        if isinstance(self.kernel, Power | Scaled):
            return super().__repr__()
        return f"{parenthesize(self.kernel, self.precedence)} ** {literal(self.exponent)}"


class Columns(Wrapper):
    """A kernel of some of the columns.

    Parameters
    ----------
    kernel : Kernel
        The kernel of these columns.
    columns : list of int
        Column numbers; negative ones count from the end.
    of : int, optional
        The number of columns that X must have; any number by default.

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

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Let the inner kernel prepare these columns."""
        inner: PreparedRows = self.kernel.prepare_rows(self._restrict(source))
        # Both sides must have the same number of columns, not just the same selection.
        inner.width, inner.origin = source.width, source.origin
        return inner

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Return what the inner kernel makes of them."""
        return super().narrowed(a)

    def resolve(self, source: Source) -> Self:
        """Resolve the inner kernel on these columns."""
        restricted = self._restrict(source)
        return self._rebuild(lambda member: member.resolve(restricted))

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Return the gradient of the inner kernel in these columns, 0 in all others."""
        inner = self.kernel.weighted_gradient(X[:, self.columns], Z[:, self.columns], W)
        total = np.zeros_like(X)
        for k, column in enumerate(self.columns):  # one may occur twice
            total[:, column] += inner[:, k]
        return total

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return the converted kernel of these columns."""
        from maxmargin.kernels.gaussian_process import OnColumns

        return OnColumns(convert(self.kernel), self.columns, self.of)

    def _restrict(self, source: Source) -> Source:
        numbers = np.asarray(self.columns)
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise TypeError(
                f"Columns: columns must be a list of column numbers, got {self.columns!r}"
            )
        width = source.rows.shape[1]
        if self.of is not None and width != self.of:
            raise ValueError(f"{self!r}: X must have {self.of} columns, got {width}")
        if numbers.min() < -width or numbers.max() >= width:
            raise ValueError(
                f"Columns: columns must be below {width}, the number of columns of X, "
                f"got {self.columns!r}"
            )
        return source.take_columns(numbers)


# ---------------------------------------------------------------- what operators build


class Constant(Kernel):
    """The same value for every pair of rows.

    Parameters
    ----------
    value : float
        At least 0.

    Examples
    --------
    >>> from maxmargin.kernels import Constant, RBF
    >>> RBF() + 1.0
    RBF() + Constant(value=1.0)
    >>> Constant(2.0).gram(["any", "thing"])
    array([[2., 2.],
           [2., 2.]])
    """

    psd = True
    stationary = True
    float32_safe = True

    def __init__(self, value: float) -> None:
        self.value = value

    def check_parameters(self) -> None:
        """Raise an error unless the value is a number of at least 0."""
        check_real(self, "value", at_least=0)

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep nothing of the rows but their number."""
        return PreparedRows(source)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile with the value."""
        out.fill(self.value)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return the value for each row."""
        return np.full(len(a), self.value, a.dtype)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(X)

    def to_gaussian_process(self, gp: Any, convert: Converter) -> Any:
        """Return ConstantKernel."""
        return gp.ConstantKernel(self.value)


def parenthesize(member: Kernel, precedence: int) -> str:
    """Return the printed member, in parentheses unless it binds tighter than its surroundings."""
    return repr(member) if member.precedence > precedence else f"({member!r})"


def add(left: Any, right: Any) -> Kernel:
    """Return left + right, flat; a number becomes a constant."""
    terms: list[Kernel] = []
    for side in (left, right):
        if _is_number(side):
            constant = Constant(_plain(side))
            constant.check_parameters()
            terms.append(constant)
        elif isinstance(side, Kernel):
            terms += side.terms if isinstance(side, Sum) else [side]
        else:
            return NotImplemented  # type: ignore[no-any-return]
    return Sum([term.copy() for term in terms])


def multiply(left: Any, right: Any) -> Kernel:
    """Return left * right, flat, with all numbers collected in front."""
    numbers: list[Any] = []
    factors: list[Kernel] = []
    for side in (left, right):
        if isinstance(side, Scaled):
            numbers.append(side.factor)
        inner = side.kernel if isinstance(side, Scaled) else side
        if isinstance(inner, Kernel):
            factors += inner.factors if isinstance(inner, Product) else [inner]
        elif _is_number(inner):
            numbers.append(inner)
        else:
            return NotImplemented  # type: ignore[no-any-return]
    copies = [member.copy() for member in factors]
    product = copies[0] if len(copies) == 1 else Product(copies)
    return _scale(product, math.prod(numbers)) if numbers else product


def raise_to(kernel: Kernel, exponent: Any) -> Kernel:
    """Return kernel ** exponent, with powers of powers and of multiples written out."""
    if not _is_number(exponent):
        return NotImplemented  # type: ignore[no-any-return]
    if isinstance(kernel, Scaled):
        return _scale(raise_to(kernel.kernel, exponent), kernel.factor**exponent)
    inner = kernel.kernel if isinstance(kernel, Power) else kernel
    power = Power(inner.copy(), _plain(exponent))
    check_whole(power, "exponent", at_least=1)
    if isinstance(kernel, Power):
        power.exponent *= kernel.exponent
    return power


def _scale(kernel: Kernel, factor: Any) -> Scaled:
    scaled = Scaled(kernel, _plain(factor))
    check_real(scaled, "factor", at_least=0)
    return scaled


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number
