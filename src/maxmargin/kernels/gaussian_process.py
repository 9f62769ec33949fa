"""To and from the kernels of scikit-learn's Gaussian processes."""

from functools import reduce
from typing import Any

import numpy as np

from maxmargin.kernels.around import Columns, Power, Scaled
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.bound import Bound, Source
from maxmargin.kernels.composed import Product, Sum
from maxmargin.kernels.distances import RBF, Laplacian
from maxmargin.kernels.dot_products import Cosine, Linear, Polynomial, Sigmoid
from maxmargin.kernels.given import Constant
from maxmargin.kernels.histograms import ChiSquared
from maxmargin.kernels.rows import FloatArray


class FromSklearn(Kernel):
    """A Gaussian-process kernel of scikit-learn that has no counterpart here, called as it is.

    Parameters
    ----------
    gp_kernel : sklearn.gaussian_process.kernels.Kernel
        For example ``Matern(nu=1.5)``.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from maxmargin.kernels import FromSklearn
    >>> FromSklearn(Matern(nu=0.5)).gram([[0.0], [1.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    def __init__(self, gp_kernel: Any) -> None:
        self.gp_kernel = gp_kernel

    @property
    def psd(self) -> bool | None:
        """True for covariances known to be such in any number of columns, None for others."""
        return True if _is_covariance(self.gp_kernel) else None

    @property
    def stationary(self) -> bool:
        """What scikit-learn says."""
        return bool(self.gp_kernel.is_stationary())

    def _check(self) -> None:
        from sklearn.gaussian_process import kernels as gp

        if not isinstance(self.gp_kernel, gp.Kernel):
            raise TypeError(
                "FromSklearn: gp_kernel must be one of sklearn.gaussian_process.kernels, "
                f"got {self.gp_kernel!r}"
            )
        _refuse_noise(self.gp_kernel)

    def _bind(self, source: Source) -> Bound:
        return Bound(source, source.rows)

    def _tile(self, a: Bound, b: Bound, out: FloatArray) -> None:
        out[...] = self.gp_kernel(_dense(a), _dense(b))

    def _diag(self, a: Bound) -> FloatArray:
        return np.asarray(self.gp_kernel.diag(_dense(a)), a.dtype)


def from_sklearn(gp_kernel: Any) -> Kernel:
    """Return the kernel that equals one of scikit-learn's Gaussian-process kernels.

    RBF, ConstantKernel, DotProduct, sums, products, whole powers and PairwiseKernel have
    counterparts; any other kernel is wrapped in ``FromSklearn``. WhiteKernel is refused: it adds
    noise to the diagonal of a training matrix, and is not a function of two points.

    Examples
    --------
    >>> from sklearn.gaussian_process import kernels as gp
    >>> from maxmargin.kernels import from_sklearn
    >>> from_sklearn(2.0 * gp.RBF(length_scale=0.5) + gp.DotProduct(sigma_0=1.0))
    2.0 * RBF(gamma=2.0) + Linear() + Constant(value=1.0)
    """
    from sklearn.gaussian_process import kernels as gp

    from maxmargin.kernels import for_sklearn

    wrapped = FromSklearn(gp_kernel)
    wrapped._check()
    match gp_kernel:
        case for_sklearn.AsSklearn():
            return gp_kernel.kernel
        case for_sklearn.OnColumns():
            return Columns(from_sklearn(gp_kernel.kernel), gp_kernel.columns)
        case gp.Sum():
            return from_sklearn(gp_kernel.k1) + from_sklearn(gp_kernel.k2)
        case gp.Product():
            left, right = from_sklearn(gp_kernel.k1), from_sklearn(gp_kernel.k2)
            return right * (left.value if isinstance(left, Constant) else left)
        case gp.Exponentiation() if float(gp_kernel.exponent).is_integer():
            return from_sklearn(gp_kernel.kernel) ** int(gp_kernel.exponent)
        case gp.ConstantKernel():
            return Constant(float(gp_kernel.constant_value))
        case gp.DotProduct():
            return Linear() + float(gp_kernel.sigma_0) ** 2
        case gp.PairwiseKernel():
            return _from_pairwise(gp_kernel) or wrapped
        # Matern is a subclass of RBF, and another kernel.
        case gp.RBF() if type(gp_kernel) is gp.RBF:
            return _from_rbf(np.atleast_1d(gp_kernel.length_scale))
    return wrapped


def _from_rbf(lengths: Any) -> Kernel:
    members = [RBF(float(1 / (2 * length**2))) for length in lengths]
    if len(members) == 1:
        return members[0]
    return Product([Columns(member, [k], of=len(members)) for k, member in enumerate(members)])


def _from_pairwise(pairwise: Any) -> Kernel | None:
    gamma = float(pairwise.gamma)
    extra = dict(pairwise.pairwise_kernels_kwargs or {})
    coef0 = extra.pop("coef0", 1)
    degree = extra.pop("degree", 3)
    known: dict[str, Kernel] = {
        "linear": Linear(),
        "cosine": Cosine(),
        "rbf": RBF(gamma),
        "laplacian": Laplacian(gamma),
        "chi2": ChiSquared(gamma),
        "sigmoid": Sigmoid(gamma, coef0),
        "poly": Polynomial(degree, gamma, coef0),
        "polynomial": Polynomial(degree, gamma, coef0),
    }
    return None if extra or not isinstance(pairwise.metric, str) else known.get(pairwise.metric)


def to_sklearn(kernel: Kernel) -> Any:
    """Return a Gaussian-process kernel for scikit-learn with the same values.

    Gaussian, constant, linear and other pairwise kernels and their compositions, also on some of
    the columns, get hyperparameters that scikit-learn's optimiser can reach; any other kernel is
    wrapped as it is, with none.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, to_sklearn
    >>> to_sklearn(2.0 * RBF(gamma=2.0))
    1.41**2 * RBF(length_scale=0.5)
    """
    kernel._check()
    from sklearn.gaussian_process import kernels as gp

    from maxmargin.kernels import for_sklearn

    match kernel:
        case FromSklearn():
            return kernel.gp_kernel
        case Sum():
            return reduce(gp.Sum, map(to_sklearn, kernel.loss))
        case Product():
            return reduce(gp.Product, map(to_sklearn, kernel.factors))
        case Scaled():
            return gp.Product(gp.ConstantKernel(kernel.factor), to_sklearn(kernel.kernel))
        case Power():
            return gp.Exponentiation(to_sklearn(kernel.kernel), kernel.exponent)
        case Columns():
            return for_sklearn.OnColumns(to_sklearn(kernel.kernel), kernel.columns)
        case Constant():
            return gp.ConstantKernel(kernel.value)
        case RBF():
            return gp.RBF(length_scale=_length(kernel))
    return _to_pairwise(kernel) or for_sklearn.AsSklearn(kernel)


def _to_pairwise(kernel: Kernel) -> Any:
    from sklearn.gaussian_process import kernels as gp

    names = {Linear: "linear", Cosine: "cosine", Laplacian: "laplacian", ChiSquared: "chi2"}
    parameters = kernel.get_params(deep=False)
    gamma = parameters.pop("gamma", 1.0)
    name = names.get(type(kernel)) or {Polynomial: "poly", Sigmoid: "sigmoid"}.get(type(kernel))
    if name is None:
        return None
    return gp.PairwiseKernel(metric=name, gamma=gamma, pairwise_kernels_kwargs=parameters or None)


def _length(kernel: RBF) -> float:
    return float(1 / np.sqrt(2 * float(kernel.gamma)))


def _is_covariance(gp_kernel: Any) -> bool:
    # Not ExpSineSquared (one column only), nor whatever PairwiseKernel may be given.
    from sklearn.gaussian_process import kernels as gp

    match gp_kernel:
        case gp.KernelOperator(k1=left, k2=right):
            return _is_covariance(left) and _is_covariance(right)
        case gp.Exponentiation(kernel=inner, exponent=exponent):
            return _is_covariance(inner) and float(exponent).is_integer()
        case (
            gp.RBF() | gp.Matern() | gp.RationalQuadratic() | gp.DotProduct() | gp.ConstantKernel()
        ):
            return True
    return False


def _refuse_noise(gp_kernel: Any) -> None:
    from sklearn.gaussian_process import kernels as gp

    if isinstance(gp_kernel, gp.CompoundKernel):
        raise ValueError("CompoundKernel is several kernels: convert each by itself")
    parts = [gp_kernel, *gp_kernel.get_params().values()]
    if any(isinstance(part, gp.WhiteKernel) for part in parts):
        raise ValueError(
            "WhiteKernel is noise on the diagonal of a training matrix, not a function of two "
            "points: leave it out (an SVM's C, or a GP's alpha, plays its part)"
        )


def _dense(a: Bound) -> Any:
    # A copy: some of scikit-learn's loops refuse read-only arrays.
    values = a.parts[0].values
    return values.copy() if isinstance(values, np.ndarray) else values.toarray()
