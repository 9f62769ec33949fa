"""What ``+``, ``*`` and ``**`` build: flat sums and products with all numbers in front."""

import math
from numbers import Real
from typing import Any

import numpy as np

from maxmargin.kernels.around import Power, Scaled
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.composed import Product, Sum
from maxmargin.kernels.given import Constant
from maxmargin.kernels.parameters import nonnegative, whole


def added(left: Any, right: Any) -> Any:
    """Return left + right, flat; a number becomes a constant."""
    sides = [_constant(side) if _is_number(side) else side for side in (left, right)]
    if not all(isinstance(side, Kernel) for side in sides):
        return NotImplemented
    loss = [side.loss if isinstance(side, Sum) else [side] for side in sides]
    return Sum([term._copied() for members in loss for term in members])


def multiplied(left: Any, right: Any) -> Any:
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
            return NotImplemented
    copies = [member._copied() for member in factors]
    product = copies[0] if len(copies) == 1 else Product(copies)
    return _scaled(product, math.prod(numbers)) if numbers else product


def raised(kernel: Kernel, exponent: Any) -> Any:
    """Return kernel ** exponent, with powers of powers and of multiples written out."""
    if not _is_number(exponent):
        return NotImplemented
    if isinstance(kernel, Scaled):
        return _scaled(raised(kernel.kernel, exponent), kernel.factor**exponent)
    inner = kernel.kernel if isinstance(kernel, Power) else kernel
    power = Power(inner._copied(), _plain(exponent))
    whole(power, "exponent", at_least=1)
    if isinstance(kernel, Power):
        power.exponent *= kernel.exponent
    return power


def _scaled(kernel: Kernel, factor: Any) -> Scaled:
    scaled = Scaled(kernel, _plain(factor))
    nonnegative(scaled, "factor")
    return scaled


def _constant(value: Any) -> Constant:
    constant = Constant(_plain(value))
    nonnegative(constant, "value")
    return constant


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number
