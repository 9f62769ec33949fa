"""Kernels are closed under sums, products, nonnegative multiples, whole powers and restriction.

    aK₁ + bK₂ (a, b ≥ 0),    K₁K₂,    Kᵖ (p = 1, 2, …),    K on some of the columns

Each tile is computed member by member while it is in cache. The operators flatten as they build,
so that a kernel prints, compares and is tuned in one form (see ``operators``).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.kernels.base import Kernel, unknown_parameter
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.rows import FloatArray
from maxmargin.kernels.tiling import scratch


class Composed(Kernel):
    """What all compositions share: they are as good as their worst member."""

    @property
    def _members(self) -> Sequence[Kernel]:
        raise NotImplementedError

    @property
    def psd(self) -> bool | None:
        """False if a member's is, else None if nobody can know, else True."""
        known = [member.psd for member in self._members]
        if False in known:
            return False
        return None if None in known else True

    @property
    def stationary(self) -> bool:
        """Whether all members are."""
        return all(member.stationary for member in self._members)

    @property
    def _tile_rows(self) -> int:  # type: ignore[override]
        return min(member._tile_rows for member in self._members)

    @property
    def _threaded(self) -> bool:  # type: ignore[override]
        return all(member._threaded for member in self._members)

    @property
    def takes_objects(self) -> bool:
        """Whether some member takes any objects."""
        return any(member.takes_objects for member in self._members)

    @property
    def takes_gram(self) -> bool:
        """Whether some member takes kernel values."""
        return any(member.takes_gram for member in self._members)

    @property
    def _cancels(self) -> bool:  # type: ignore[override]
        return any(member._cancels for member in self._members)

    def _check(self) -> None:
        for member in self._members:
            member._check()

    def _single_error(self, source: Source) -> float:
        return max(member._single_error(source) for member in self._members)


class Many(Composed):
    """A composition of a list of kernels, each reached by the name of its class.

    Members are named ``rbf``, ``linear``, …, also inside a multiple or a power; names that occur
    twice are numbered, ``rbf1`` and ``rbf2``. So ``(RBF() + Linear()).set_params(rbf__gamma=2.0)``
    works, and so does ``(3 * RBF() + Linear()).set_params(rbf__factor=2.0)``.
    """

    _list: str
    _sign: str
    _combine: Any
    _gathered: Any  # how rounding adds up

    @property
    def _members(self) -> list[Kernel]:
        members: list[Kernel] = getattr(self, self._list)
        return members

    def _names(self) -> list[str]:
        names = [member._name for member in self._members]
        total, seen = Counter(names), Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            if total[name] > 1:
                names[i] = f"{name}{seen[name]}"
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the list of members and, if deep, each member and its parameters by name."""
        parameters: dict[str, Any] = {self._list: getattr(self, self._list)}
        if deep:
            for name, member in zip(self._names(), self._members, strict=True):
                parameters[name] = member
                for key, value in member.get_params().items():
                    parameters[f"{name}__{key}"] = value
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

    def _check(self) -> None:
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
            member._check()

    def _bind(self, source: Source) -> Bound:
        return Bound(source, *(member._bind(source) for member in self._members))

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        first, *others = zip(self._members, a.parts, b.parts, strict=True)
        first[0]._tile(first[1], first[2], out)
        with scratch(out.shape, out.dtype) as values:
            for member, x, z in others:
                member._tile(x, z, values)
                self._combine(out, values, out=out)

    def _diag(self, a: Bound) -> FloatArray:
        values = [m._diag(x) for m, x in zip(self._members, a.parts, strict=True)]
        total = values[0]
        for value in values[1:]:
            total = self._combine(total, value)
        return total

    def rounding(self, a: Bound) -> npt.NDArray[np.float64]:
        """Return the largest of the members', or for a product their sum, and an ε for each."""
        each = [m.rounding(x) for m, x in zip(self._members, a.parts, strict=True)]
        return np.asarray(self._gathered(each, axis=0) + len(each))

    def __repr__(self) -> str:  # type: ignore[override, unused-ignore]
        # What the operators would not have built has no operator form.
        if len(self._members) < 2 or any(m._binding == self._binding for m in self._members):
            return super().__repr__()
        return self._sign.join(inside(member, self._binding) for member in self._members)


class Sum(Many):
    """The sum of kernels, as ``k1 + k2`` builds it.

    Parameters
    ----------
    loss : list of Kernel
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

    _list, _sign, _binding = "loss", " + ", 0
    _combine = staticmethod(np.add)
    _gathered = staticmethod(np.max)

    def __init__(self, loss: list[Kernel]) -> None:
        self.loss = loss


class Product(Many):
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

    _list, _sign, _binding = "factors", " * ", 1
    _combine = staticmethod(np.multiply)
    _gathered = staticmethod(np.sum)

    def __init__(self, factors: list[Kernel]) -> None:
        self.factors = factors


def inside(member: Kernel, binding: int) -> str:
    """Return the printed member, in parentheses unless it binds tighter than what is around."""
    return repr(member) if member._binding > binding else f"({member!r})"
