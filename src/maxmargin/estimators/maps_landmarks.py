"""Which rows stand for all of them: uniform, by leverage, or the centres of clusters.

The ridge leverage of row i, [K(K + λI)⁻¹]ᵢᵢ, is how much it matters that i is among the landmarks.
It is estimated from a first, uniform choice of landmarks: with features B of that choice and what
they leave of the diagonal, r = diag(K − BBᵀ), it is about bᵢ·(BᵀB + λI)⁻¹bᵢ + rᵢ/(rᵢ + λ).
Alaoui and Mahoney (NIPS 2015); Musco and Musco (NIPS 2017).
"""

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.blas import one_blas_thread

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WAYS = ("uniform", "leverage", "kmeans")
_CANDIDATES = 10  # times the landmarks: so many rows, at least, are looked at …
_FEWEST_CANDIDATES = 10_000  # … but not fewer than these
_WORTH_THREADS = 600  # rows of a matrix, below which threads wait for each other
_WORTH_OPENMP = 30_000  # numbers in all centres


class Rows:
    """Training rows as landmarks see them, whatever they are: numbers, objects, kernel values."""

    def __init__(self, kernel: Kernel, X: Any, threads: int | None) -> None:
        self.kernel, self.X, self.threads = kernel, X, threads

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def wide(self, numbers: Ints) -> Any:
        """Return some rows in float64."""
        rows = self.X[numbers]
        return rows if self.kernel.takes_objects else rows.astype(np.float64, copy=False)

    def diagonal(self, numbers: Ints) -> Floats:
        """Return K(x, x) of some rows."""
        if self.kernel.takes_gram:
            return np.asarray(self.X[numbers, numbers], dtype=np.float64)
        return self.kernel.diag(self.wide(numbers)).astype(np.float64)

    def square(self, numbers: Ints) -> Floats:
        """Return K between some rows."""
        if self.kernel.takes_gram:
            K = self.X[np.ix_(numbers, numbers)].astype(np.float64)
            return np.asarray(0.5 * (K + K.T))
        return np.asarray(self.kernel.gram(self.wide(numbers)), dtype=np.float64)

    def chosen(self, numbers: Ints) -> "Landmarks":
        """Return rows as landmarks."""
        rows = None if self.kernel.takes_gram else self.X[numbers]
        return Landmarks(self.kernel, rows, numbers, self.square(numbers), self.threads)


class Landmarks:
    """Rows to compare others with, and K between them."""

    def __init__(
        self, kernel: Kernel, rows: Any, numbers: Ints | None, K: Floats, threads: int | None
    ) -> None:
        self.kernel, self.rows, self.numbers, self.K = kernel, rows, numbers, K
        self.threads = threads

    def prepared(self, dtype: Any) -> PreparedRows | None:
        """Return the landmarks as their kernel sees them; None if kernel values are given."""
        if self.kernel.takes_gram:
            return None
        rows = self.rows
        return self.kernel.prepare(
            rows if self.kernel.takes_objects else rows.astype(dtype, copy=False)
        )

    def values(self, X: Any, prepared: PreparedRows | None) -> Any:
        """Return K of rows with the landmarks, in the type of these as they are prepared."""
        if prepared is None:
            return X[:, self.numbers]
        if not self.kernel.takes_objects:
            X = X.astype(prepared.dtype, copy=False)
        return self.kernel.block(
            self.kernel.prepare(X, like=prepared), prepared, threads=self.threads
        )


def eigen(K: Floats, **asked: Any) -> Any:
    """Return eigenvalues and vectors of a symmetric matrix, without idle threads."""
    with one_blas_thread() if len(K) < _WORTH_THREADS else nullcontext():
        return scipy.linalg.eigh(K, check_finite=False, **asked)


def inverse_root(K: Floats, most: int, eps: float) -> tuple[Floats, Floats, bool]:
    """Return R with R Rᵀ ≈ K⁻¹ on the leading eigenvectors, their eigenvalues, and doubt.

    Directions whose eigenvalue is rounding are left out: duplicates do no harm. The last is whether
    some eigenvalue is negative beyond rounding: then K is no kernel's.
    """
    eigenvalues, vectors = eigen(K)
    noise = eps * len(K) * float(np.abs(eigenvalues).max(initial=0.0))
    kept = np.flatnonzero(eigenvalues > noise)[::-1][:most]
    indefinite = bool(eigenvalues[0] < -10 * noise)
    if not len(kept):
        return np.zeros((len(K), 1)), np.zeros(1), indefinite
    largest = np.abs(vectors[:, kept]).argmax(axis=0)
    signs = np.where(vectors[largest, kept] < 0, -1.0, 1.0)
    return signs * vectors[:, kept] / np.sqrt(eigenvalues[kept]), eigenvalues[kept], indefinite


def choose(rows: Rows, count: int, way: str, rng: np.random.Generator) -> Landmarks:
    """Return so many landmarks; all rows if there are no more."""
    n = len(rows)
    if count >= n:
        return rows.chosen(np.arange(n))
    if way == "uniform":
        return rows.chosen(np.sort(rng.choice(n, count, replace=False)))
    looked_at = min(n, max(_FEWEST_CANDIDATES, _CANDIDATES * count))
    candidates = np.sort(rng.choice(n, looked_at, replace=False))
    if way == "kmeans":
        return _centres(rows, candidates, count, rng)
    scores = leverage_scores(rows, candidates, count, rng)
    taken = rng.choice(len(candidates), count, replace=False, p=scores / scores.sum())
    return rows.chosen(np.sort(candidates[taken]))


def leverage_scores(rows: Rows, candidates: Ints, count: int, rng: np.random.Generator) -> Floats:
    """Return about the ridge leverage of rows; λ is what half as many landmarks must leave."""
    pilot = rows.chosen(np.sort(rng.choice(candidates, min(count, len(candidates)), replace=False)))
    root, _, _ = inverse_root(pilot.K, count, float(np.finfo(np.float64).eps))
    prepared = pilot.prepared(np.float64)
    B = pilot.values(rows.wide(candidates), prepared) @ root
    left = np.maximum(rows.diagonal(candidates) - np.einsum("ij,ij->i", B, B), 0.0)
    eigenvalues, vectors = eigen(B.T @ B)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    half = max(1, count // 2)
    beyond = float(eigenvalues[: max(0, len(eigenvalues) - half)].sum())
    ridge = (beyond + float(left.sum())) / half
    if ridge <= 1e-12 * float(eigenvalues.max(initial=0.0)):
        return np.ones(len(candidates))  # few landmarks span everything: any will do
    inside = np.square(B @ vectors) @ (1 / (eigenvalues + ridge))
    scores = np.minimum(inside + left / (left + ridge), 1.0)
    return np.asarray(scores + 1e-6 * scores.mean())  # all have a chance


def _narrow(X: Any) -> Any:
    """Return rows with the indices that scikit-learn's clusters take."""
    if not sp.issparse(X) or X.nnz > np.iinfo(np.int32).max:
        return X
    index = (X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False))
    return type(X)((X.data, *index), shape=X.shape)


def _centres(rows: Rows, candidates: Ints, count: int, rng: np.random.Generator) -> Landmarks:
    """Return the centres of clusters, which are no rows."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import

    kernel, X = rows.kernel, rows.X
    clusters = MiniBatchKMeans(
        count,
        batch_size=max(1024, 4 * count),
        max_iter=10,
        n_init=1,
        random_state=int(rng.integers(2**31)),
    )
    threads = 1 if count * X.shape[1] < _WORTH_OPENMP else None
    with (
        threadpool_limits(threads),
        warnings.catch_warnings(),
    ):  # fewer distinct rows than centres: these repeat themselves
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = clusters.fit(_narrow(X[candidates])).cluster_centers_.astype(X.dtype)
    if sp.issparse(X):
        centres = type(X)(centres)
    K = np.asarray(kernel.gram(centres.astype(np.float64)), dtype=np.float64)
    return Landmarks(kernel, centres, None, K, rows.threads)
