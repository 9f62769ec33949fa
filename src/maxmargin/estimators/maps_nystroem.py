"""Nyström's features: any kernel, projected onto what some landmarks span.

    φ(x) = Λ^(−½)Uᵀ k(x),    K(landmarks) = UΛUᵀ,    k(x) = (K(x, z₁), …, K(x, zₘ))

K̂ = ΦΦᵀ is the kernel of the projections, so K − K̂ is positive semidefinite: no error is larger
than its trace, ‖K − K̂‖₂ ≤ tr(K − K̂), which needs the diagonal only.
Williams and Seeger (NIPS 2000).
"""

import math
import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from maxmargin.estimators.inputs import check_rows, generator
from maxmargin.estimators.kernel_models import as_objects, checked_gram
from maxmargin.estimators.maps_base import FeatureMap, blocks
from maxmargin.estimators.maps_fourier import DOUBT
from maxmargin.estimators.maps_landmarks import WAYS, Landmarks, Rows, choose, eigen, inverse_root
from maxmargin.estimators.parameters import check_choice, check_number, check_threads
from maxmargin.kernels import Kernel, Precomputed, as_kernel
from maxmargin.kernels.names import is_precomputed
from maxmargin.kernels.prepared import is_numeric

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LOOKED_AT = 500  # rows whose matrix of errors is formed


class Nystroem(ClassNamePrefixFeaturesOutMixin, FeatureMap):
    """Nyström's features for any kernel, with a bound on what they miss.

    φ(x)·φ(x′) is the kernel of x and x′ projected, in feature space, onto the span of some
    landmarks. It is exact where these are all rows. A linear machine on φ is the kernel machine
    whose weights are confined to that span.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "intersection",
        "precomputed", any object of ``mm.kernels``, or a function of two blocks of rows (or of two
        lists of whatever X holds) that returns the matrix of kernel values.
    n_components : int, default=100
        Features, at most: no more than there are landmarks, or than the kernel has directions among
        them.
    landmarks : {"uniform", "leverage", "kmeans"}, default="uniform"
        Rows, each as likely; rows by their leverage, which finds rare ones; or the centres of
        clusters, which are often the best and take longest. The last two look at 10,000 rows, or
        ten times the landmarks.
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
        For landmarks and samples. None: others in every fit.
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
        ‖K − K̂‖₂ as seen on up to 500 rows, times n over their number: exact if these are all.
    error_rows_ : int
        Rows that ``error_`` was measured on.

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

    # ------------------------------------------------------------ parameters and input

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = is_precomputed(self.kernel)
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        return tags

    def _check_parameters(self) -> None:
        check_number(self, "n_components", at_least=1, integer=True)
        check_choice(self, "landmarks", WAYS)
        check_number(self, "n_landmarks", at_least=1, integer=True, optional=True)
        check_number(self, "error_rows", at_least=1, integer=True, optional=True)
        check_threads(self)
        if self.n_landmarks is not None and self.n_landmarks < self.n_components:
            raise ValueError(
                f"n_landmarks={self.n_landmarks!r} is not valid for Nystroem: "
                f"n_components={self.n_components!r} features need as many landmarks, or more."
            )

    def _named_kernel(self, X: Any) -> Kernel:
        kernel = as_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if not is_numeric(X):
            kernel = kernel.for_objects()
        if kernel.takes_gram and not isinstance(kernel, Precomputed):
            raise ValueError(
                f"kernel={kernel!r} composes a precomputed matrix: compute the composed matrix "
                "yourself and pass that with kernel='precomputed'."
            )
        if self.landmarks == "kmeans" and (kernel.takes_gram or kernel.takes_objects):
            raise ValueError(
                f"landmarks='kmeans' needs rows of numbers, which kernel={kernel!r} does not take: "
                "choose 'uniform' or 'leverage'."
            )
        return kernel

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        if reset:
            self._check_parameters()
        kernel = self._named_kernel(X) if reset else self.kernel_
        if kernel.takes_objects:
            return as_objects(X)
        if kernel.takes_gram and sp.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported, as dense data is required: pass "
                "X.toarray()."
            )
        if not kernel.takes_gram:
            return super()._check_input(X, reset=reset)
        K = check_rows(self, X, reset=reset)
        return checked_gram(K) if reset else K

    # ------------------------------------------------------------ fitting

    def _learn(self, X: Any) -> None:
        rng = generator(self.random_state)
        kernel = self._named_kernel(X)
        if not (kernel.takes_gram or kernel.takes_objects):
            kernel = kernel.resolved(X)
        self.kernel_ = kernel
        rows = Rows(kernel, X, self._threads())
        count = int(self.n_landmarks or self.n_components)
        chosen = choose(rows, count, self.landmarks, rng)
        self._type = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        eps = 1.2e-7 if self._type == np.float32 else 2.2e-16
        self.root_, self.eigenvalues_, doubt = inverse_root(chosen.K, int(self.n_components), eps)
        self.landmarks_ = X[:0] if chosen.rows is None else chosen.rows
        self.landmark_indices_ = chosen.numbers
        self.n_components_ = self.root_.shape[1]
        self._measure(rows, rng)
        if doubt or kernel.psd is False:
            self._say_indefinite()

    def _say_indefinite(self) -> None:
        self.error_bound_ = math.inf
        warnings.warn(
            f"{self.kernel_!r} is not positive semidefinite: its features are those of the "
            "positive part on the landmarks, and no bound on their error holds.",
            UserWarning,
            stacklevel=4,
        )

    def _measure(self, rows: Rows, rng: np.random.Generator) -> None:
        """Set what is known of the errors, from all rows or a sample."""
        n = len(rows)
        seen = n if self.error_rows is None else min(n, int(self.error_rows))
        numbers = np.arange(n) if seen == n else np.sort(rng.choice(n, seen, replace=False))
        left, total, largest = self._residuals(rows, numbers)
        self.error_rows_ = seen
        self.error_ = n * float(left.mean())
        self.relative_error_ = float(left.sum()) / total if total > 0 else 0.0
        doubt = math.sqrt(math.log(1 / DOUBT) / (2 * seen)) if seen < n else 0.0
        self.error_bound_ = self.error_ + n * largest * doubt
        some = numbers[np.sort(rng.choice(seen, min(seen, _LOOKED_AT), replace=False))]
        self.spectral_estimate_ = n / len(some) * self._spectral(rows, some)

    def _residuals(self, rows: Rows, numbers: Ints) -> tuple[Floats, float, float]:
        """Return the diagonal of K − K̂ at some rows, tr K there, and the largest K(x, x) of all."""
        left, total, largest = np.empty(len(numbers)), 0.0, 0.0
        for part in blocks(len(numbers), self._width()):
            diagonal = rows.diagonal(numbers[part])
            phi = self._features(rows.wide(numbers[part]), np.dtype(np.float64))
            left[part] = np.maximum(diagonal - np.einsum("ij,ij->i", phi, phi), 0.0)
            total += float(diagonal.sum())
        if len(numbers) < len(rows):  # a bound needs to know how large an unseen error may be
            every = np.arange(len(rows))
            parts = blocks(len(rows), self.n_features_in_ if hasattr(self, "n_features_in_") else 1)
            largest = max(float(rows.diagonal(every[part]).max()) for part in parts)
        return left, total, largest

    def _spectral(self, rows: Rows, numbers: Ints) -> float:
        phi = self._features(rows.wide(numbers), np.dtype(np.float64))
        errors = rows.square(numbers) - phi @ phi.T
        return max(float(eigen(errors, eigvals_only=True)[-1]), 0.0)

    # ------------------------------------------------------------ mapping

    def _threads(self) -> int | None:
        return None if self.n_jobs in (None, -1) else int(self.n_jobs)

    def _width(self) -> int:
        return len(self.root_) + self.n_components_

    def _sides(self) -> Landmarks:
        rows = None if self.kernel_.takes_gram else self.landmarks_
        return Landmarks(
            self.kernel_, rows, self.landmark_indices_, np.empty((0, 0)), self._threads()
        )

    def _features(self, X: Any, dtype: Any) -> Any:
        """Return the features of rows computed in a type."""
        sides = self._sides()
        return sides.values(X, sides.prepared(dtype)) @ self.root_.astype(dtype, copy=False)

    def _mapped(self, X: Any) -> Any:
        # Of float64 landmarks, directions are kept that in float32 would be noise.
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        used = np.promote_types(dtype, self._type)
        sides, root = self._sides(), self.root_.astype(used, copy=False)
        prepared = sides.prepared(used)
        out = np.empty((X.shape[0], self.n_components_), dtype=dtype)
        for part in blocks(X.shape[0], self._width()):
            values = sides.values(X[part], prepared)
            if values.dtype == out.dtype == used:
                np.matmul(values, root, out=out[part])
            else:
                out[part] = values @ root
        return out
