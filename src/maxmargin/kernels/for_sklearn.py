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
