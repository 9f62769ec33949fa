"""Gaussian processes: to and from scikit-learn's covariances, and draws from a prior.

A kernel's own counterpart stands in its class (``to_gaussian_process``, ``pairwise_metric``). This
module imports ``sklearn.gaussian_process``, so it is imported only when it is used.
"""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as gp
from sklearn.utils import check_random_state

from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.check import check_kernel
from maxmargin.kernels.compose import Columns, Constant, Product
from maxmargin.kernels.dot_products import Linear
from maxmargin.kernels.names import as_kernel
from maxmargin.kernels.prepared import FloatArray, PreparedRows, as_dense
from maxmargin.kernels.stationary import RBF


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
    def psd(self) -> bool | None:  # type: ignore[override]
        """True for covariances that are positive semidefinite in any dimension, None for others."""
        return True if _is_covariance(self.gp_kernel) else None

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        """Whether scikit-learn says so."""
        return bool(self.gp_kernel.is_stationary())

    def check_parameters(self) -> None:
        """Raise an error unless it is a kernel of scikit-learn, without noise."""
        if not isinstance(self.gp_kernel, gp.Kernel):
            raise TypeError(
                "FromSklearn: gp_kernel must be one of sklearn.gaussian_process.kernels, "
                f"got {self.gp_kernel!r}"
            )
        _check_noiseless(self.gp_kernel)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Call scikit-learn's kernel."""
        # Copies: some of scikit-learn's loops refuse read-only arrays.
        out[...] = self.gp_kernel(as_dense(a.parts[0]).copy(), as_dense(b.parts[0]).copy())

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Call scikit-learn's ``diag``."""
        return np.asarray(self.gp_kernel.diag(as_dense(a.parts[0]).copy()), a.dtype)

    def to_gaussian_process(self, gp: Any, convert: Any) -> Any:
        """Return the kernel that is wrapped."""
        return self.gp_kernel


def from_sklearn(gp_kernel: Any) -> Kernel:
    """Return the kernel that equals one of scikit-learn's Gaussian-process kernels.

    RBF, ConstantKernel, DotProduct, sums, products, whole powers and PairwiseKernel have
    counterparts; any other kernel is wrapped in ``FromSklearn``. WhiteKernel is refused: it adds
    noise to the diagonal of a training matrix, and is not a function of two points.

    Parameters
    ----------
    gp_kernel : sklearn.gaussian_process.kernels.Kernel
        A kernel of scikit-learn's Gaussian processes.

    Returns
    -------
    Kernel
        A kernel with the same values.

    Examples
    --------
    >>> from sklearn.gaussian_process import kernels as gp
    >>> from maxmargin.kernels import from_sklearn
    >>> from_sklearn(2.0 * gp.RBF(length_scale=0.5) + gp.DotProduct(sigma_0=1.0))
    2.0 * RBF(gamma=2.0) + Linear() + Constant(value=1.0)
    """
    wrapped = FromSklearn(gp_kernel)
    wrapped.check_parameters()
    match gp_kernel:
        case AsSklearn():
            return gp_kernel.kernel
        case OnColumns():
            return Columns(from_sklearn(gp_kernel.kernel), gp_kernel.columns, gp_kernel.of)
        case gp.Sum():
            return from_sklearn(gp_kernel.k1) + from_sklearn(gp_kernel.k2)
        case gp.Product():
            left, right = from_sklearn(gp_kernel.k1), from_sklearn(gp_kernel.k2)
            return (left.value if isinstance(left, Constant) else left) * right
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
            return _from_rbf(np.atleast_1d(gp_kernel.length_scale).tolist())
    return wrapped


def _from_rbf(lengths: list[float]) -> Kernel:
    members = [RBF(1 / (2 * length**2)) for length in lengths]
    if len(members) == 1:
        return members[0]
    return Product([Columns(member, [k], len(members)) for k, member in enumerate(members)])


# Metrics of PairwiseKernel that as_kernel knows by the same name.
_PAIRWISE = ("chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid")


def _from_pairwise(pairwise: Any) -> Kernel | None:
    extra = dict(pairwise.pairwise_kernels_kwargs or {})
    coef0, degree = extra.pop("coef0", 1), extra.pop("degree", 3)
    if extra or pairwise.metric not in _PAIRWISE:
        return None
    gamma = float(pairwise.gamma)
    return as_kernel(pairwise.metric, gamma=gamma, degree=degree, coef0=coef0)


def _is_covariance(gp_kernel: Any) -> bool:
    # Not ExpSineSquared (one column only), nor whatever PairwiseKernel may be given.
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


def _check_noiseless(gp_kernel: Any) -> None:
    if isinstance(gp_kernel, gp.CompoundKernel):
        raise ValueError("CompoundKernel is several kernels: convert each by itself")
    parts = [gp_kernel, *gp_kernel.get_params().values()]
    if any(isinstance(part, gp.WhiteKernel) for part in parts):
        raise ValueError(
            "WhiteKernel is noise on the diagonal of a training matrix, not a function of two "
            "points: leave it out (an SVM's C or a GP's alpha takes its place)"
        )


# ---------------------------------------------------------------- from ours to theirs


def to_sklearn(kernel: Kernel) -> Any:
    """Return a Gaussian-process kernel for scikit-learn with the same values.

    Gaussian, constant, linear and other pairwise kernels and their compositions, also on some of
    the columns, get hyperparameters that scikit-learn's optimiser can reach; any other kernel is
    wrapped as it is, with none.

    Parameters
    ----------
    kernel : Kernel
        Any kernel of ``mm.kernels``.

    Returns
    -------
    sklearn.gaussian_process.kernels.Kernel
        A kernel for scikit-learn's Gaussian processes.

    Examples
    --------
    >>> from maxmargin.kernels import RBF, to_sklearn
    >>> to_sklearn(2.0 * RBF(gamma=2.0))
    1.41**2 * RBF(length_scale=0.5)
    """
    kernel.check_parameters()
    counterpart = kernel.to_gaussian_process(gp, to_sklearn)
    return AsSklearn(kernel) if counterpart is None else counterpart


class AsSklearn(gp.Kernel):
    """A covariance with the values of one of our kernels, without hyperparameters."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix and, if asked, its gradient in no parameters."""
        K = self.kernel.gram(X, Y)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Any:
        """Return the diagonal of the Gram matrix."""
        return self.kernel.diag(X)

    def is_stationary(self) -> bool:
        """Return whether K(x + c, x′ + c) = K(x, x′)."""
        return self.kernel.stationary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the kernel alone: its parameters are fixed."""
        return {"kernel": self.kernel}


class OnColumns(gp.Kernel):
    """A covariance of some of the columns, with the hyperparameters of the inner one."""

    def __init__(self, kernel: Any, columns: Any, of: int | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.of = of

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix of these columns and, if asked, its gradient."""
        return self.kernel(self._take(X), None if Y is None else self._take(Y), eval_gradient)

    def diag(self, X: Any) -> Any:
        """Return the diagonal of the Gram matrix."""
        return self.kernel.diag(self._take(X))

    def is_stationary(self) -> bool:
        """Return whether K(x + c, x′ + c) = K(x, x′)."""
        return bool(self.kernel.is_stationary())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its own parameters and, if deep, those of the kernel."""
        inner = self.kernel.get_params() if deep else {}
        nested = {f"kernel__{name}": value for name, value in inner.items()}
        return {"kernel": self.kernel, "columns": self.columns, "of": self.of, **nested}

    @property
    def hyperparameters(self) -> list[Any]:
        """The hyperparameters that the optimiser may change, named as in ``get_params``."""
        return [
            gp.Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]

    def _take(self, X: Any) -> Any:
        return np.asarray(X)[:, np.asarray(self.columns)]


# ---------------------------------------------------------------- draws


def sample_prior(kernel: Any, X: Any, n_samples: int = 1, random_state: Any = None) -> Floats:
    """Draw functions f ~ N(0, K) and return their values at the rows of X.

    Parameters
    ----------
    kernel : Kernel, name or function
        The covariance; it must be positive semidefinite on X.
    X : array of shape (n, d)
        Where the functions are evaluated.
    n_samples : int, default=1
        The number of functions.
    random_state : int, RandomState or None
        The seed or generator.

    Returns
    -------
    ndarray of shape (n_samples, n)

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF, sample_prior
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> f = sample_prior(RBF(gamma=10.0), X, n_samples=3, random_state=0)
    >>> f.shape
    (3, 50)
    """
    if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}")
    found = check_kernel(kernel, X)
    if not found.psd:
        raise ValueError(f"no Gaussian process has {kernel!r} as its covariance: {found}")
    values, vectors = found.spectrum
    draws = check_random_state(random_state).standard_normal((n_samples, len(values)))
    functions: Floats = (draws * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return functions
