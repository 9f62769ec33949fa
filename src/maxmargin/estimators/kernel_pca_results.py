"""What kernel PCA found: directions in feature space as sums over rows, and how sure they are."""

from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.estimators.kernel_models import PreparedSupport, expanded
from maxmargin.estimators.kernel_pca_maps import Explicit, chunks
from maxmargin.kernels import Kernel, Precomputed

Floats = npt.NDArray[np.float64]

_PREPARED = PreparedSupport()
_TIE = 1e-6  # relative, between loadings that count as equally large


class KernelPCAStatus(Enum):
    """How kernel PCA ended; the value is a sentence."""

    EXACT = "eigenpairs of the whole matrix, by LAPACK"
    CONVERGED = "every residual is at most tol times the largest eigenvalue"
    APPROXIMATE = "eigenpairs of the Nyström matrix, which is within error_bound_ of the kernel's"
    MAX_ITER = (
        "stopped at max_iter before the residuals were below tol; raise max_iter, or loosen tol"
    )
    MAX_TIME = (
        "stopped at max_time before the residuals were below tol; raise max_time, loosen tol, or "
        "choose eigen_solver='nystroem'"
    )
    INDEFINITE = (
        "the kernel matrix is indefinite: it has no feature space, and directions with negative "
        "eigenvalues were left out; see mm.check_kernel"
    )

    def __reduce__(self) -> Any:  # by its value, for skops, which does not know enums
        return type(self), (self.value,)


class Expansion:
    """Projections Σⱼ K(x, xⱼ) aⱼ − offset over training rows, or over landmarks."""

    def __init__(
        self, kernel: Kernel, rows: Any, coefficients: Floats, offset: Floats, columns: Any = None
    ) -> None:
        self.kernel_, self.support_vectors_ = kernel, rows
        self.coefficients, self.offset = coefficients, offset
        self.columns = columns  # of a precomputed matrix: those of the landmarks

    def of(self, X: Any, threads: int | None) -> Floats:
        """Return the projections of new rows."""
        if isinstance(self.kernel_, Precomputed):
            values = X if self.columns is None else X[:, self.columns]
            return np.asarray(values.astype(np.float64) @ self.coefficients - self.offset)
        right = _PREPARED.of(self)
        return expanded(self.kernel_, X, right, self.coefficients, threads) - self.offset


class FeatureExpansion:
    """Projections (φ(x) − μ)·u by explicit features."""

    def __init__(self, features: Explicit, mean: Floats, directions: Floats) -> None:
        self.features, self.mean, self.directions = features, mean, directions

    def of(self, X: Any, threads: int | None) -> Floats:
        """Return the projections of new rows."""
        out = np.empty((X.shape[0], self.directions.shape[1]))
        for rows in chunks(X, len(self.mean)):
            out[rows] = (self.features.of(X[rows]) - self.mean) @ self.directions
        return out


def signs(V: Floats) -> Floats:
    """Return the sign of the largest |loading| of each column, the first of those that tie."""
    if not len(V):
        return np.ones(V.shape[1])
    size = np.abs(V)
    first = np.argmax(size >= (1 - _TIE) * size.max(axis=0), axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)


def inverse_roots(values: Floats) -> Floats:
    """Return 1/√λ, and 0 for λ = 0."""
    positive = values > 0
    return np.where(positive, 1 / np.sqrt(np.where(positive, values, 1.0)), 0.0)


def padded(values: Floats, count: int) -> Floats:
    """Return values, or columns, with zeros up to ``count``."""
    missing = count - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values
