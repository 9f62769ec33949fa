"""Kernel parameters as a vector of logarithms, as Gaussian processes of scikit-learn have them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

from maxmargin.kernels import (
    RBF,
    Columns,
    Constant,
    FromSklearn,
    Kernel,
    Power,
    Product,
    Scaled,
    Sum,
    to_sklearn,
)

Floats = npt.NDArray[np.float64]

_WITHOUT_GAMMA = ("linear", "cosine")  # pairwise kernels that do not look at it


def covariance(kernel: Kernel) -> Any:
    """Return the covariance with the values of a kernel, its real parameters free to move."""
    stated = clone(to_sklearn(kernel))  # a copy: it may be the user's own
    for part in [stated, *stated.get_params().values()]:
        if isinstance(part, gp.PairwiseKernel) and part.metric in _WITHOUT_GAMMA:
            part.gamma_bounds = "fixed"
    return stated


def with_theta(kernel: Kernel, theta: Floats) -> Kernel:
    """Return the kernel with parameters as a covariance has them, in the order of ``theta``."""
    return _put(kernel, iter(np.exp(np.asarray(theta, dtype=np.float64)).tolist()))


def _put(kernel: Kernel, values: Iterator[float]) -> Kernel:
    match kernel:
        case FromSklearn():
            stated = covariance(kernel)
            found = [next(values) for _ in range(stated.n_dims)]
            return FromSklearn(stated.clone_with_theta(np.log(found)) if found else stated)
        case Sum():
            return Sum([_put(term, values) for term in kernel.terms])
        case Product():
            return Product([_put(factor, values) for factor in kernel.factors])
        case Scaled():
            factor = next(values)
            return Scaled(_put(kernel.kernel, values), factor)
        case Power():
            return Power(_put(kernel.kernel, values), kernel.exponent)
        case Columns():
            return Columns(_put(kernel.kernel, values), kernel.columns, kernel.of)
        case Constant():
            return Constant(next(values))
        case RBF():
            return RBF(1 / (2 * next(values) ** 2))
    if covariance(kernel).n_dims:
        return type(kernel)(**{**kernel.get_params(deep=False), "gamma": next(values)})
    return kernel
