"""Points with given products: Z with ZZᵀ = K, by the Cholesky factor with pivoting."""

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpstrf

Floats = npt.NDArray[np.float64]


def pivoted_factor(K: Floats, precision: float) -> Floats:
    """Return Z with ZZᵀ = K, its diagonal scaled to 1 for the while.

    It stops where what is left of every row is at most ``precision`` of its diagonal entry.
    """
    unit = np.sqrt(np.maximum(K.diagonal(), 0.0))
    unit[unit == 0.0] = 1.0
    scaled = K / unit
    scaled /= unit[:, np.newaxis]
    # It is symmetric, so that its transpose is the same in the order that LAPACK works in.
    factor, pivots, rank, _ = dpstrf(scaled.T, tol=precision, lower=1, overwrite_a=1)
    triangle = np.tril(factor[:, :rank])
    del scaled, factor  # large
    triangle *= unit[pivots - 1, np.newaxis]
    Z = np.zeros((len(K), max(rank, 1)))
    Z[pivots - 1, :rank] = triangle
    return Z
