"""A kernel is the covariance of a Gaussian process: draw functions from it."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from maxmargin.kernels.check import check_kernel


def sample_prior(
    kernel: Any, X: Any, n_samples: int = 1, random_state: Any = None
) -> npt.NDArray[np.float64]:
    """Draw functions f ~ N(0, K) and return their values at the rows of X.

    Parameters
    ----------
    kernel : Kernel, name or function
        The covariance; it must be positive semidefinite on X.
    X : array of shape (n, d)
        Where the functions are evaluated.
    n_samples : int, default=1
        How many functions.
    random_state : int, RandomState or None
        Where the randomness comes from.

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
    functions: npt.NDArray[np.float64] = (draws * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return functions
