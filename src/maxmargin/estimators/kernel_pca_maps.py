"""Kernel PCA through features: K(x, x′) = φ(x)·φ(x′) with few features.

    S = Σ (φ(xᵢ) − μ)(φ(xᵢ) − μ)ᵀ = U Λ Uᵀ,    projection (φ(x) − μ)·u,    v = (Φ − 1μᵀ)u/√λ

S has the non-zero eigenvalues of HKH. It is a sum over rows, so rows may come in chunks.
"""

from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin.estimators.kernel_pca_eigen import Eigenpairs, dense, few_threads
from maxmargin.kernels import Cosine, Kernel, Linear, Polynomial
from maxmargin.kernels.tiles import overflow_message
from maxmargin.kernels.user_defined import FromMap

Floats = npt.NDArray[np.float64]

MOST_FEATURES = 2000
_VALUES_AT_A_TIME = 1 << 22
_EPS = float(np.finfo(np.float64).eps)


class Explicit:
    """The features of a kernel that has few: linear, cosine, low powers, a map of yours."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def size(self, X: Any) -> int | None:
        """Return the number of features; None if the kernel has no map that is known."""
        kind = type(self.kernel)
        if kind in (Linear, Cosine):
            return int(X.shape[1])
        if isinstance(self.kernel, FromMap):
            return int(self.kernel.prepare(X[:1]).parts[0].values.shape[1])
        if kind is Polynomial and self.kernel.psd and int(self.kernel.degree) >= 1:  # type: ignore[attr-defined]
            degree = int(self.kernel.degree)  # type: ignore[attr-defined]
            variables = int(X.shape[1]) + (float(self.kernel.coef0) > 0)  # type: ignore[attr-defined]
            return comb(variables + degree - 1, degree)
        return None

    def of(self, X: Any) -> Floats:
        """Return a row of features for each row."""
        values = self.kernel.prepare(X.astype(np.float64, copy=False)).parts[0].values
        values = values.toarray() if sp.issparse(values) else values
        features = self._powers(values) if type(self.kernel) is Polynomial else values
        if not np.isfinite(features).all():
            raise ValueError(overflow_message(self.kernel))
        return np.asarray(features, dtype=np.float64)

    def _powers(self, X: Floats) -> Floats:
        """Return √(m!/Πα!) Π x̃^α over all α of sum m: (x̃·x̃′)^m with x̃ = (√γ x, √coef0)."""
        kernel: Any = self.kernel
        degree, shift = int(kernel.degree), float(kernel.coef0)
        X = X * np.sqrt(float(kernel.gamma))
        if shift > 0:
            X = np.column_stack([X, np.full(len(X), np.sqrt(shift))])
        chosen = list(combinations_with_replacement(range(X.shape[1]), degree))
        weights = [
            factorial(degree) / prod(factorial(one.count(j)) for j in set(one)) for one in chosen
        ]
        columns = np.array(chosen)
        features = X[:, columns[:, 0]] * np.sqrt(weights)
        for k in range(1, degree):
            features *= X[:, columns[:, k]]
        return np.asarray(features)


class Landmarks:
    """Nyström's features K(x, L) K(L, L)^(−1/2) of m landmark rows L."""

    def __init__(self, kernel: Kernel, prepared: Any, threads: int | None, eps: float) -> None:
        self.kernel, self.prepared, self.threads = kernel, prepared, threads
        K = kernel.block(prepared, prepared).astype(np.float64)
        with few_threads(len(K)):
            values, vectors = scipy.linalg.eigh((K + K.T) / 2)
        # Directions that are rounding would be blown up by the root.
        self.rounding = 10 * eps * float(np.abs(values).max())  # of K̂, for each row
        real = values > len(K) * self.rounding
        self.root = vectors[:, real] / np.sqrt(values[real])
        self.range = float(values[0]), float(values[-1])
        self.indefinite = self.range[0] < -len(K) * self.rounding

    def of(self, X: Any) -> Floats:
        """Return a row of features for each row."""
        left = self.kernel.prepare(X, like=self.prepared)
        return self.kernel.dot(left, self.prepared, self.root, self.threads)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "threads": None}


class Moments:
    """Count, mean and scatter of features, merged chunk by chunk (Chan et al. 1979).

    Parameters
    ----------
    size : int
        The number of features.
    eps : float
        The rounding of what they are computed from.
    exact : bool
        Whether each feature has all its digits: then a large mean hides no small spread.
    """

    def __init__(self, size: int, eps: float = _EPS, exact: bool = False) -> None:
        self.eps, self.exact = eps, exact
        self.count = 0
        self.mean = np.zeros(size)
        self.scatter = np.zeros((size, size))
        self.largest = 0.0  # ‖φ‖²

    def add(self, features: Floats) -> None:
        """Take in rows of features."""
        new, old = len(features), self.count
        mean = features.mean(axis=0)
        mean += (features - mean).mean(axis=0)  # what rounding left of the sum
        self.largest = max(self.largest, float(np.einsum("ij,ij->i", features, features).max()))
        centred, shift = features - mean, mean - self.mean
        self.count = old + new
        self.scatter += centred.T @ centred
        if old:
            self.scatter += np.outer(shift, shift) * (old * new / self.count)
        self.mean += shift * (new / self.count)

    @property
    def floor(self) -> float:
        """What rounding alone can make of an eigenvalue 0."""
        largest = max(self.largest, float(np.finfo(np.float64).tiny))
        if not self.exact:
            return 10 * self.eps * self.count * largest
        sums = max(10.0, float(np.sqrt(self.count))) * float(np.trace(self.scatter))
        return self.eps * (sums + 100 * self.eps * self.count * largest)

    def eigenpairs(self, count: int) -> Eigenpairs:
        """Return the largest of the scatter; residuals are those of v, for HKH."""
        count = min(count, len(self.mean))
        found = dense(self.scatter, count, whole=False)
        r = self.scatter @ found.vectors - found.vectors * found.values
        squares = np.einsum("ij,ij->j", r, self.scatter @ r)
        safe = np.where(found.values > self.floor, found.values, np.inf)
        return found._replace(residuals=np.sqrt(np.maximum(squares, 0.0) / safe), lowest=0.0)


def chunks(X: Any, width: int) -> Any:
    """Yield X in slices whose features are not too many values."""
    step = max(1, _VALUES_AT_A_TIME // max(1, width))
    for top in range(0, X.shape[0], step):
        yield slice(top, min(top + step, X.shape[0]))
