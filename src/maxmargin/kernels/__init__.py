"""Kernels: K(x, x′) as objects that compose, compute Gram matrices and can be tuned.

>>> from maxmargin.kernels import RBF, Linear
>>> RBF(gamma=0.5) + 2 * Linear() ** 2
RBF(gamma=0.5) + 2 * Linear() ** 2
"""

from maxmargin.kernels.around import Columns, Power, Scaled
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bound import Bound
from maxmargin.kernels.check import KernelCheck, check_kernel
from maxmargin.kernels.composed import Product, Sum
from maxmargin.kernels.distances import RBF, Laplacian
from maxmargin.kernels.dot_products import Cosine, Linear, Polynomial, Sigmoid
from maxmargin.kernels.gaussian_process import FromSklearn, from_sklearn, to_sklearn
from maxmargin.kernels.given import Constant, FromFunction, FromMap
from maxmargin.kernels.histograms import ChiSquared, Intersection
from maxmargin.kernels.names import as_kernel
from maxmargin.kernels.precomputed import Precomputed
from maxmargin.kernels.prior import sample_prior

__all__ = [
    "RBF",
    "Bound",
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
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "check_kernel",
    "from_sklearn",
    "sample_prior",
    "to_sklearn",
]
