"""Kernels: K(x, x′) as objects that compose, compute Gram matrices and can be tuned.

>>> from maxmargin.kernels import RBF, Linear
>>> RBF(gamma=0.5) + 2 * Linear() ** 2
RBF(gamma=0.5) + 2 * Linear() ** 2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bumps import gaussian_bumps
from maxmargin.kernels.check import KernelCheck, check_kernel
from maxmargin.kernels.compose import Columns, Constant, Power, Product, Scaled, Sum
from maxmargin.kernels.dot_products import Cosine, Linear, Polynomial, Sigmoid
from maxmargin.kernels.histograms import ChiSquared, Intersection
from maxmargin.kernels.names import as_kernel
from maxmargin.kernels.precomputed import Precomputed
from maxmargin.kernels.prepared import PreparedRows
from maxmargin.kernels.stationary import RBF, Laplacian
from maxmargin.kernels.user_defined import FromFunction, FromMap

if TYPE_CHECKING:
    from maxmargin.kernels.gaussian_process import (
        FromSklearn,
        from_sklearn,
        sample_prior,
        to_sklearn,
    )

__all__ = [
    "RBF",
    "ChiSquared",
    "Columns",
    "Constant",
    "Cosine",
    "FromFunction",
    "FromMap",
    "FromSklearn",
    "Intersection",
    "Kernel",
    "KernelCheck",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Power",
    "Precomputed",
    "PreparedRows",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "check_kernel",
    "from_sklearn",
    "gaussian_bumps",
    "sample_prior",
    "to_sklearn",
]

# scikit-learn's Gaussian processes are imported when one of these is first used.
_GAUSSIAN_PROCESS = ("FromSklearn", "from_sklearn", "sample_prior", "to_sklearn")


def __getattr__(name: str) -> Any:
    if name in _GAUSSIAN_PROCESS:
        return getattr(import_module("maxmargin.kernels.gaussian_process"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
