"""Nyström's features: any kernel, projected onto the span of some landmarks.

    φ(x) = Λ^(−½)Uᵀ k(x),    K(landmarks) = UΛUᵀ,    k(x) = (K(x, z₁), …, K(x, zₘ))

K̂ = ΦΦᵀ is the kernel of the projections, so K − K̂ is positive semidefinite: no error is larger
than its trace, ‖K − K̂‖₂ ≤ tr(K − K̂), which needs only the diagonal.
Williams and Seeger (NIPS 2000).

Landmarks are drawn uniformly or by leverage, or are the centres of clusters. The ridge leverage of
row i, [K(K + λI)⁻¹]ᵢᵢ, is how much it matters that i is among the landmarks. It is estimated from a
first, uniform choice: with features B of that choice and what they leave of the diagonal,
r = diag(K − BBᵀ), it is about bᵢ·(BᵀB + λI)⁻¹bᵢ + rᵢ/(rᵢ + λ).
Alaoui and Mahoney (NIPS 2015); Musco and Musco (NIPS 2017).
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.feature_maps.source_rows import SourceRows, is_sparse, resolved
from maxmargin.estimators.kernel_input import KernelInput, count_threads
from maxmargin.estimators.linear.blocked import as_source, is_source
from maxmargin.kernels import Kernel
from maxmargin.rows.row_source import RowSource
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.validation.data import LARGEST_SQUARE, generator
from maxmargin.validation.parameters import (
    NamedParameters,
    check_choice,
    check_number,
    check_threads,
)

_FAILURE = 1e-3  # the probability with which a stated bound may fail
_LARGEST_SINGLE = 1e36  # the largest ‖x‖² of float32 rows whose features do not overflow
_NUMBERS = 1 << 21  # in the temporary arrays of a block: 16 MB
_FEWEST_ROWS = 64  # in a block, however wide it is


@dataclass(frozen=True)
class LandmarkSettings:
    """How much is computed to choose landmarks and to measure what they miss."""

    candidates: int = 10  # rows per landmark from which leverage and clusters choose …
    fewest_candidates: int = 10_000  # … and how many there are at least
    error_rows: int = 500  # rows whose matrix of errors is formed
    one_thread_rows: int = 2000  # of a matrix, up to which LAPACK is faster on one thread
    one_thread_centres: int = 30_000  # numbers in all centres, up to which clustering is


_SETTINGS = LandmarkSettings()


class Nystroem(
    KernelInput,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    NamedParameters,
    BaseEstimator,
):
    """Nyström's features for any kernel, with a bound on what they miss.

    φ(x)·φ(x′) is the kernel of x and x′ projected, in feature space, onto the span of some
    landmarks. It is exact if all rows are landmarks. A linear machine on φ is the kernel machine
    whose weights are confined to that span.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "intersection",
        "precomputed", any object of ``mm.kernels``, or a function of two blocks of rows (or of two
        lists of whatever X holds) that returns the matrix of kernel values.
    n_components : int, default=100
        The largest number of features. There are no more than landmarks, nor than the dimensions
        that these span.
    landmarks : {"uniform", "leverage", "kmeans"}, default="uniform"
        Rows drawn uniformly; rows drawn by their leverage, which finds rare ones; or the centres of
        clusters, which are often the best and take longest. The last two use up to 10,000 rows, or
        ten per landmark if that is more.
    n_landmarks : int or None, default=None
        Landmarks; None: as many as n_components. With more, the leading directions are kept.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ > 0, or 1/(d·Var X), or 1/d. A Kernel object has its own.
    degree : int, default=3
        For "poly".
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    error_rows : int or None, default=10000
        Rows that errors are measured on; None: all. Of more rows, a sample is taken.
    random_state : int, Generator, RandomState or None, default=0
        For landmarks and samples. None: different in every fit.
    n_jobs : int or None, default=None
        Threads for kernel values; None or -1: as many as BLAS uses.

    Attributes
    ----------
    landmarks_ : array, CSR matrix or array of objects
        The landmarks; empty for kernel="precomputed".
    landmark_indices_ : ndarray or None
        Which rows they are; None for centres of clusters.
    root_ : ndarray of shape (n_landmarks, n_components_)
        UΛ^(−½): the features are kernel values with the landmarks times this.
    eigenvalues_ : ndarray of shape (n_components_,)
        Λ, largest first.
    kernel_ : Kernel
        The kernel, with numbers for all its parameters.
    n_components_ : int
        Features.
    error_ : float
        tr(K − K̂) over the training rows; from a sample, its estimate.
    error_bound_ : float
        ‖K − K̂‖₂ is at most this: ``error_``, and if that comes from a sample, what it may be above
        it, with probability 0.999 (Hoeffding). Infinite if the kernel is not positive semidefinite.
    relative_error_ : float
        tr(K − K̂)/tr(K): the part of the kernel's variance that is missed.
    spectral_estimate_ : float
        ‖K − K̂‖₂ of up to 500 rows, times n over their number: exact if these are all rows.
    error_rows_ : int
        How many rows ``error_`` was measured on.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(300, random_state=0)
    >>> phi = mm.Nystroem(n_components=60).fit(X)
    >>> phi.spectral_estimate_ <= phi.error_bound_
    True
    >>> phi.relative_error_ < 0.01
    True
    >>> mm.LinearSVC().fit(phi.transform(X), y).score(phi.transform(X), y)
    1.0
    """

    n_components_: int
    _kept_rows = "landmarks_"
    _instead: ClassVar = {
        "kernel_params": "Give a Kernel object, or a function with its parameters bound.",
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        n_components: int = 100,
        landmarks: str = "uniform",
        n_landmarks: int | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        error_rows: int | None = 10_000,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.error_rows = error_rows
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ------------------------------------------------------------ scikit-learn's surface

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_components_")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among rows, and measure what they miss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows. Of what ``mm.data.open`` returns, landmarks and sampled rows are read in a few
            passes: it is the map of the same rows in memory, but for rounding in γ.
        y : ignored
            For pipelines.
        """
        self.__dict__.pop("n_components_", None)  # if anything fails from here on, it is unfitted
        self.check_parameters()
        if is_source(X):
            self._learn(self._check_source(as_source(X, None)))
        else:
            self._learn(self._check_input(X, reset=True))
        return self

    def _check_source(self, source: RowSource) -> SourceRows:
        """Survey a source; return its rows as ``_learn`` sees them."""
        if self._named_kernel().takes_gram:
            raise ValueError(
                f"kernel={self.kernel!r} needs the matrix of all rows, but a source has rows: "
                "choose a kernel that is a function of two rows."
            )
        rows = SourceRows.of(source)
        self.n_features_in_ = rows.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if rows.feature_names is not None:
            self.feature_names_in_ = np.array(rows.feature_names, dtype=object)
        rows.refuse_overflow(rows.columns.largest_square, largest_square(rows))
        return rows

    def transform(self, X: Any) -> Any:
        """Return the features of rows: float32 for float32, float64 for everything else.

        Apart from its result, this needs memory for a block of 16 MB.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or source
            Rows.

        Returns
        -------
        array of shape (n, n_components_), or source
            Of a source, the view ``source.mapped(self)``: features are computed as it is read.
        """
        check_is_fitted(self)
        if is_source(X):
            return as_source(X, None).mapped(self)
        X = self._check_input(X, reset=False)
        out = np.empty((X.shape[0], self.n_components_), dtype=float_type(X))
        # Float64 landmarks keep directions that would be noise in float32.
        used = np.promote_types(out.dtype, self._type)
        for part in cut_blocks(X.shape[0], self._width()):
            out[part] = self._landmarks().features(X[part], self.root_, used)
        return out

    def transform_chunks(self, X: Any, rows: int = 10_000) -> Iterator[Any]:
        """Yield the features of one chunk of rows after another: only these are in memory.

        Parameters
        ----------
        X : array, sparse matrix or frame; or an iterable of such
            Rows to be cut into chunks; or chunks, from a file or a stream.
        rows : int, default=10000
            Rows per chunk, if X is to be cut.

        Yields
        ------
        array of shape (rows, n_components_)
            As ``transform`` returns it.

        Examples
        --------
        >>> import maxmargin as mm
        >>> X, y = mm.datasets.circles(200, random_state=0)
        >>> phi = mm.Nystroem(n_components=8).fit(X)
        >>> [part.shape for part in phi.transform_chunks(X, rows=80)]
        [(80, 8), (80, 8), (40, 8)]
        """
        check_is_fitted(self)
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"rows={rows!r} is not valid: it must be an integer >= 1.")
        return (self.transform(chunk) for chunk in _cut_chunks(X, int(rows)))

    # ------------------------------------------------------------ checks

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_number(self, "n_components", at_least=1, integer=True)
        check_choice(self, "landmarks", ("uniform", "leverage", "kmeans"))
        check_number(self, "n_landmarks", at_least=1, integer=True, optional=True)
        check_number(self, "error_rows", at_least=1, integer=True, optional=True)
        check_threads(self)
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            raise ValueError(
                f"n_landmarks={self.n_landmarks!r} is not valid for Nystroem: "
                f"n_components={self.n_components!r} features need at least as many landmarks."
            )

    def _named_kernel(self, objects: bool = False) -> Kernel:
        kernel = super()._named_kernel(objects)
        if self.landmarks == "kmeans" and (kernel.takes_gram or kernel.takes_objects):
            raise ValueError(
                f"landmarks='kmeans' needs rows of numbers, which kernel={kernel!r} does not take: "
                "choose 'uniform' or 'leverage'."
            )
        return kernel

    def _largest_square(self, X: Any) -> float:
        return largest_square(X)

    # ------------------------------------------------------------ landmarks and errors

    def _learn(self, X: Any) -> None:
        rng = generator(self.random_state)
        kernel = self._named_kernel(X.dtype.kind == "O")
        if not (kernel.takes_gram or kernel.takes_objects):
            kernel = resolved(kernel, X)
        self.kernel_ = kernel
        rows = KernelRows(kernel, X, count_threads(self.n_jobs))
        count = int(self.n_landmarks or self.n_components)
        landmarks, K = choose_landmarks(rows, count, self.landmarks, rng)
        self._type = float_type(X)
        found = invert_root(K, float(np.finfo(self._type).eps), int(self.n_components))
        self.root_, self.eigenvalues_ = found.root, found.eigenvalues
        self.landmarks_ = X[:0] if landmarks.rows is None else landmarks.rows
        self.landmark_indices_ = landmarks.indices
        self.n_components_ = self.root_.shape[1]
        self._measure(rows, rng)
        if found.lowest < -10 * found.noise or kernel.psd is False:
            self.error_bound_ = math.inf
            warn(
                f"{kernel!r} is not positive semidefinite: its features are those of the positive "
                "part on the landmarks, and there is no bound on their error.",
                UserWarning,
            )

    def _measure(self, rows: "KernelRows", rng: np.random.Generator) -> None:
        """Set the attributes about errors, from all rows or a sample."""
        n = len(rows)
        seen = n if self.error_rows is None else min(n, int(self.error_rows))
        sample = np.arange(n) if seen == n else np.sort(rng.choice(n, seen, replace=False))
        rows.keep(sample)
        left, total, largest = self._residuals(rows, sample)
        self.error_rows_ = seen
        self.error_ = n * float(left.mean())
        self.relative_error_ = float(left.sum()) / total if total > 0 else 0.0
        deviation = math.sqrt(math.log(1 / _FAILURE) / (2 * seen)) if seen < n else 0.0
        self.error_bound_ = self.error_ + n * largest * deviation
        few = min(seen, _SETTINGS.error_rows)
        some = sample[np.sort(rng.choice(seen, few, replace=False))]
        phi, _ = rows.project(some, self._landmarks(), self.root_)
        errors = rows.block(some) - phi @ phi.T
        largest_error = max(float(solve_eigen(errors, eigvals_only=True)[-1]), 0.0)
        self.spectral_estimate_ = n / few * largest_error

    def _residuals(self, rows: "KernelRows", sample: Ints) -> tuple[Floats, float, float]:
        """Return the diagonal of K − K̂ on a sample, tr K there, and the largest K(x, x) of all."""
        left, total, largest = np.empty(len(sample)), 0.0, 0.0
        for part in cut_blocks(len(sample), self._width()):
            phi, missed = rows.project(sample[part], self._landmarks(), self.root_)
            left[part] = np.maximum(missed, 0.0)
            total += float((missed + np.einsum("ij,ij->i", phi, phi)).sum())
        if len(sample) < len(rows):  # the bound depends on how large an unseen error may be
            largest = rows.largest_diagonal(getattr(self, "n_features_in_", 1))
        return left, total, largest

    def _width(self) -> int:
        return len(self.root_) + self.n_components_

    def _landmarks(self) -> "Landmarks":
        rows = None if self.kernel_.takes_gram else self.landmarks_
        return Landmarks(self.kernel_, rows, self.landmark_indices_, count_threads(self.n_jobs))


# ------------------------------------------------------------------- landmarks


class KernelRows:
    """Training rows and their kernel values, whether they are numbers, objects or a Gram matrix."""

    def __init__(self, kernel: Kernel, X: Any, threads: int | None) -> None:
        self.kernel, self.X, self.threads = kernel, X, threads

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Any) -> Any:
        """Return some rows in float64."""
        some = self.X[rows]
        return some if self.kernel.takes_objects else some.astype(np.float64, copy=False)

    def diagonal(self, rows: Ints) -> Floats:
        """Return K(x, x) of some rows."""
        if self.kernel.takes_gram:
            return np.asarray(self.X[rows, rows], dtype=np.float64)
        return self.kernel.diag(self.take(rows)).astype(np.float64)

    def largest_diagonal(self, width: int) -> float:
        """Return the largest K(x, x) of all rows, which have so many numbers each."""
        if isinstance(self.X, SourceRows):
            return self.X.largest_diagonal(self.kernel)
        every = np.arange(len(self))
        parts = cut_blocks(len(self), width)
        return max(float(self.diagonal(every[part]).max()) for part in parts)

    def keep(self, rows: Ints) -> None:
        """Say that some rows, which are ascending, will be asked for in pieces."""
        if isinstance(self.X, SourceRows):
            self.X.keep(rows)

    def block(self, rows: Ints) -> Floats:
        """Return K between some rows."""
        if self.kernel.takes_gram:
            K = self.X[np.ix_(rows, rows)].astype(np.float64)
            return np.asarray(0.5 * (K + K.T))
        return np.asarray(self.kernel.gram(self.take(rows)), dtype=np.float64)

    def project(self, rows: Ints, landmarks: "Landmarks", root: Floats) -> tuple[Floats, Floats]:
        """Return Nyström's features of some rows, and what they miss there: diag(K − K̂)."""
        phi = landmarks.features(self.take(rows), root)
        return phi, self.diagonal(rows) - np.einsum("ij,ij->i", phi, phi)

    def take_landmarks(self, rows: Ints) -> tuple["Landmarks", Floats]:
        """Return rows as landmarks, and K between them."""
        self.keep(rows)
        some = None if self.kernel.takes_gram else self.X[rows]
        return Landmarks(self.kernel, some, rows, self.threads), self.block(rows)


class Landmarks:
    """Rows that others are compared with; of a precomputed kernel, columns of its matrix."""

    def __init__(
        self, kernel: Kernel, rows: Any, indices: Ints | None, threads: int | None
    ) -> None:
        self.kernel, self.rows, self.indices, self.threads = kernel, rows, indices, threads

    def features(self, X: Any, root: Floats, dtype: Any = np.float64) -> Floats:
        """Return K of rows with the landmarks, in the given type, times ``root``."""
        kernel, landmarks, root = self.kernel, self.rows, root.astype(dtype, copy=False)
        if kernel.takes_gram:
            return np.asarray(X[:, self.indices].astype(dtype, copy=False) @ root)
        if not kernel.takes_objects:
            X, landmarks = X.astype(dtype, copy=False), landmarks.astype(dtype, copy=False)
        right = kernel.prepare(landmarks)
        return kernel.dot(kernel.prepare(X, like=right), right, root, self.threads)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "threads": None}


def limit_threads(n: int) -> AbstractContextManager[None]:
    """Keep LAPACK to one thread on small matrices, where several would wait for each other."""
    return one_blas_thread() if n <= _SETTINGS.one_thread_rows else nullcontext()


def solve_eigen(K: Floats, **asked: Any) -> Any:
    """Return eigenvalues and vectors of a symmetric matrix."""
    with limit_threads(len(K)):
        return scipy.linalg.eigh(K, check_finite=False, **asked)


class InverseRoot(NamedTuple):
    """R with R Rᵀ ≈ K⁻¹ on the leading eigenvectors of K."""

    root: Floats
    eigenvalues: Floats  # of these eigenvectors, largest first
    lowest: float  # the ends of the spectrum of K
    highest: float
    noise: float  # eigenvalues below it are rounding


def invert_root(K: Floats, eps: float, most: int | None = None) -> InverseRoot:
    """Return the inverse root of a kernel matrix on at most ``most`` eigenvectors.

    Directions whose eigenvalue is rounding are left out, so that duplicates do no harm. If none is
    left, there is one column of zeros.
    """
    eigenvalues, vectors = solve_eigen(K)
    noise = eps * len(K) * float(np.abs(eigenvalues).max(initial=0.0))
    ends = float(eigenvalues[0]), float(eigenvalues[-1])
    kept = np.flatnonzero(eigenvalues > noise)[::-1][:most]
    if not len(kept):
        return InverseRoot(np.zeros((len(K), 1)), np.zeros(1), *ends, noise)
    largest = np.abs(vectors[:, kept]).argmax(axis=0)
    signs = np.where(vectors[largest, kept] < 0, -1.0, 1.0)
    root = np.ascontiguousarray(signs * vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    return InverseRoot(root, eigenvalues[kept], *ends, noise)


def choose_landmarks(
    rows: KernelRows,
    count: int,
    method: str,
    rng: np.random.Generator,
    weight: Floats | None = None,
) -> tuple[Landmarks, Floats]:
    """Return ``count`` landmarks, or all rows if there are no more; and K between them.

    With "uniform" rows are drawn as often as their weights say, if they differ.
    """
    n = len(rows)
    if count >= n:
        return rows.take_landmarks(np.arange(n))
    if method == "uniform":
        even = weight is None or (weight == weight[0]).all()
        chances = None if weight is None or even else weight / weight.sum()
        return rows.take_landmarks(np.sort(rng.choice(n, count, replace=False, p=chances)))
    used = min(n, max(_SETTINGS.fewest_candidates, _SETTINGS.candidates * count))
    candidates = np.sort(rng.choice(n, used, replace=False))
    rows.keep(candidates)
    if method == "kmeans":
        return _find_centres(rows, candidates, count, rng)
    scores = _estimate_leverage(rows, candidates, count, rng)
    taken = rng.choice(len(candidates), count, replace=False, p=scores / scores.sum())
    return rows.take_landmarks(np.sort(candidates[taken]))


def _estimate_leverage(
    rows: KernelRows, candidates: Ints, count: int, rng: np.random.Generator
) -> Floats:
    """Return estimates of ridge leverages; λ is what half as many landmarks must leave."""
    first = rng.choice(candidates, min(count, len(candidates)), replace=False)
    pilot, K = rows.take_landmarks(np.sort(first))
    root = invert_root(K, float(np.finfo(np.float64).eps), count).root
    B, missed = rows.project(candidates, pilot, root)
    left = np.maximum(missed, 0.0)
    eigenvalues, vectors = solve_eigen(B.T @ B)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    half = max(1, count // 2)
    beyond = float(eigenvalues[: max(0, len(eigenvalues) - half)].sum())
    ridge = (beyond + float(left.sum())) / half
    if ridge <= 1e-12 * float(eigenvalues.max(initial=0.0)):
        return np.ones(len(candidates))  # a few landmarks span everything: any will do
    inside = np.square(B @ vectors) @ (1 / (eigenvalues + ridge))
    scores = np.minimum(inside + left / (left + ridge), 1.0)
    return np.asarray(scores + 1e-6 * scores.mean())  # every row has a chance


def _narrow_indices(X: Any) -> Any:
    """Return rows with the 32-bit indices that scikit-learn's clustering needs."""
    if not sp.issparse(X) or X.nnz > np.iinfo(np.int32).max:
        return X
    index = (X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False))
    return type(X)((X.data, *index), shape=X.shape)


def _find_centres(
    rows: KernelRows, candidates: Ints, count: int, rng: np.random.Generator
) -> tuple[Landmarks, Floats]:
    """Return the centres of clusters as landmarks, and K between them."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import

    kernel, X = rows.kernel, rows.X
    clusters = MiniBatchKMeans(
        count,
        batch_size=max(1024, 4 * count),
        max_iter=10,
        n_init=1,
        random_state=int(rng.integers(2**31)),
    )
    threads = 1 if count * X.shape[1] < _SETTINGS.one_thread_centres else None
    with threadpool_limits(threads), warnings.catch_warnings():
        # Of fewer distinct rows than centres, some centres are equal.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = clusters.fit(_narrow_indices(X[candidates])).cluster_centers_.astype(X.dtype)
    if is_sparse(X):
        centres = (sp.csr_array if isinstance(X, SourceRows) else type(X))(centres)
    K = np.asarray(kernel.gram(centres.astype(np.float64)), dtype=np.float64)
    return Landmarks(kernel, centres, None, rows.threads), K


# ------------------------------------------------------------------- blocks of rows


def cut_blocks(n: int, width: int) -> list[slice]:
    """Return slices of n rows whose temporary arrays, ``width`` numbers per row, stay small."""
    step = max(_FEWEST_ROWS, _NUMBERS // max(1, width))
    return [slice(start, start + step) for start in range(0, n, step)]


def largest_square(X: Any) -> float:
    """Return how large ‖x‖², or what is computed from it, may be in the type of X."""
    return _LARGEST_SINGLE if X.dtype == np.float32 else LARGEST_SQUARE


def float_type(X: Any) -> Any:
    """Return the type of features: float32 for float32 rows, float64 for everything else."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def _cut_chunks(X: Any, rows: int) -> Iterator[Any]:
    if not hasattr(X, "shape"):
        yield from X
        return
    # A frame with float labels would be sliced by labels, and some sparse formats have no slices.
    sliced = X.tocsr() if sp.issparse(X) else getattr(X, "iloc", X)
    for start in range(0, X.shape[0], rows):
        yield sliced[start : start + rows]
