"""Our kernels as covariances of scikit-learn's Gaussian processes (imported when needed)."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as gp

from maxmargin.kernels.base import Kernel


class AsSklearn(gp.Kernel):
    """A covariance without hyperparameters, with the values of one of our kernels.

    Examples
    --------
    >>> from maxmargin.kernels import Intersection
    >>> from maxmargin.kernels.for_sklearn import AsSklearn
    >>> AsSklearn(Intersection())([[0.5, 0.5], [1.0, 0.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

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
        """Return whether shifts do not matter."""
        return self.kernel.stationary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the kernel alone: its parameters are fixed here."""
        return {"kernel": self.kernel}


class OnColumns(gp.Kernel):
    """A covariance of some of the columns, with the hyperparameters of the one inside.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from maxmargin.kernels.for_sklearn import OnColumns
    >>> OnColumns(RBF(), [0])(np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Any, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix of these columns and, if asked, its gradient."""
        return self.kernel(self._of(X), None if Y is None else self._of(Y), eval_gradient)

    def diag(self, X: Any) -> Any:
        """Return the diagonal of the Gram matrix."""
        return self.kernel.diag(self._of(X))

    def is_stationary(self) -> bool:
        """Return whether shifts do not matter."""
        return bool(self.kernel.is_stationary())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return kernel and columns and, if deep, the parameters of the kernel."""
        inner = self.kernel.get_params() if deep else {}
        nested = {f"kernel__{name}": value for name, value in inner.items()}
        return {"kernel": self.kernel, "columns": self.columns, **nested}

    @property
    def hyperparameters(self) -> list[Any]:
        """What the optimiser may change, under the names of ``get_params``."""
        return [
            gp.Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Any:
        """The logarithms of the hyperparameters."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: Any) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Any:
        """The logarithms of their bounds."""
        return self.kernel.bounds

    def _of(self, X: Any) -> Any:
        return np.asarray(X)[:, np.asarray(self.columns)]
