"""What kernel PCA works on: the centred Gram matrix, or features if there are few.

    K̃ = D^½GKGᵀD^½,  G = I − 1πᵀ        S = Σ wᵢ(φ(xᵢ) − μ)(φ(xᵢ) − μ)ᵀ = U Λ Uᵀ

with the weights w of the rows (all above 0), D = diag(w), π = w/Σw and μ = Σ πᵢφ(xᵢ); for equal
weights of 1 this is HKH with H = I − 11ᵀ/n. G is never applied to K, only to the columns that K is
multiplied with. If K(x, x′) = φ(x)·φ(x′), S has the non-zero eigenvalues of K̃; it is a sum over
rows, which may come in chunks. The projection of x is (φ(x) − μ)·u, or a sum of kernel values.
"""

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import scipy.linalg

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.feature_maps.nystroem import (
    KernelRows,
    choose_landmarks,
    cut_blocks,
    invert_root,
)
from maxmargin.estimators.svm.expansion import PreparedSupport, expanded
from maxmargin.kernels import Cosine, Kernel, Linear, Polynomial, Precomputed, PreparedRows
from maxmargin.kernels.prepared import as_dense
from maxmargin.kernels.tiles import StoredProduct, SymmetricProduct, overflow
from maxmargin.kernels.user_defined import FromMap
from maxmargin.problems.gram import Gram
from maxmargin.runtime import clock
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads

_PANEL = 2048  # columns whose products are summed at a time: float32 keeps its digits
_SHARES = 8  # of a given matrix, whatever the number of threads: BLAS rounds by the shape
_PROBE = 256  # rows on which the rounding of float32 is measured
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_PREPARED = PreparedSupport()


# ------------------------------------------------------------------- the centred Gram matrix


class CentredGram:
    """K̃ of a Gram matrix, whose values are computed from rows prepared in whichever type.

    With ``keep`` K is stored if it fits into the memory of the Gram matrix; otherwise its tiles are
    computed for each product and used while they are in cache.
    """

    def __init__(self, gram: Gram, rows: PreparedRows, weight: Floats, keep: bool = True) -> None:
        self.kernel, self.rows, self.threads = gram.kernel, rows, gram.threads
        self.given = isinstance(gram.kernel, Precomputed)
        fits = StoredProduct.stored_bytes(len(rows), rows.dtype) <= gram.memory
        self.kept = self.given or (keep and fits)
        stored = self.kept and not self.given
        product = StoredProduct if stored else SymmetricProduct
        self._half = product(gram.kernel, rows, gram.threads)
        rounded = gram.prepared if self.given else rows  # given values were rounded before
        self.eps = float(np.finfo(rounded.dtype).eps)
        self.weight, self.share = weight, weight / weight.sum()  # w and π
        self._means: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def matrix(self) -> Any:
        """K itself, not centred."""
        if self.given:
            return self.rows.parts[0].values
        return self.kernel.block(self.rows, self.rows, threads=self.threads)

    def dot(self, V: Floats) -> Floats:
        """Return D^½GKGᵀD^½ @ V."""
        # In units of the largest weight, so that products in float32 do not overflow.
        largest = float(self.weight.max())
        even = self.weight / largest
        root = np.sqrt(even)[:, np.newaxis]
        V = centre_columns(root * V, self.share)
        if self._means is not None:
            W = self._multiply(V)
        else:  # the means of K are one more column
            W = self._multiply(np.column_stack([V, even]))
            self._means, W = W[:, -1] / even.sum(), W[:, :-1]
        return np.asarray(largest * root * (W - self.share @ W))

    def _multiply(self, V: Floats) -> Floats:
        if not self.given:
            return self._half.dot(V)
        K, threads = self.matrix, self.threads or usual_threads()
        typed = np.ascontiguousarray(V.T, K.dtype)
        out = np.zeros((V.shape[1], len(V)))

        def multiply(ends: tuple[int, int]) -> None:
            begin, end = ends
            for left in range(0, len(V), _PANEL):
                clock.check()
                # VᵀK, not KV: BLAS is faster with the few columns on the left.
                some = slice(left, left + _PANEL)
                out[:, begin:end] += typed[:, some] @ K[some, begin:end]

        cuts = np.linspace(0, len(V), _SHARES + 1).astype(int).tolist()
        with one_blas_thread():
            share_work(multiply, deque(pairwise(cuts)), threads)
        return out.T

    @property
    def means(self) -> Floats:
        """The mean of each column of K: Kπ."""
        if self._means is None:
            even = self.weight / self.weight.max()
            self._means = self._multiply(even[:, np.newaxis])[:, 0] / even.sum()
        return self._means

    @cached_property
    def diagonal(self) -> Floats:
        """K(xᵢ, xᵢ)."""
        return self.kernel.diag(self.rows).astype(np.float64)

    @property
    def trace(self) -> float:
        """The sum of all eigenvalues of K̃."""
        return float(self.weight @ self.diagonal - self.weight @ self.means)

    @property
    def floor(self) -> float:
        """The largest eigenvalue of K̃ that may be only rounding."""
        return float(10 * self.eps * self.weight.sum() * max(np.abs(self.diagonal).max(), _TINY))

    def materialize(self) -> Floats:
        """Return K̃ as a new matrix, in float64."""
        K = np.array(self.matrix, dtype=np.float64, order="C")
        if self.given:
            K = (K + K.T) / 2
        self._means = _centre(K, self.weight)
        return K


def centre_columns(V: Floats, share: Floats) -> Floats:
    """Return GᵀV = V − π·(1ᵀV)."""
    return np.asarray(V - share[:, np.newaxis] * V.sum(axis=0))


def _centre(K: Floats, weight: Floats) -> Floats:
    """Replace a symmetric matrix K by D^½GKGᵀD^½, and return Kπ."""
    share, root = weight / weight.sum(), np.sqrt(weight)
    with one_blas_thread():  # several would round by their number
        means = np.asarray(share @ K)
        mean = float(share @ means)
    for top in range(0, len(K), 256):  # all of it while the rows are in cache
        rows = slice(top, top + 256)
        K[rows] -= means
        K[rows] -= (means[rows] - mean)[:, np.newaxis]
        K[rows] *= root
        K[rows] *= root[rows, np.newaxis]
    return means


def measure_rounding(
    kernel: Kernel, single: PreparedRows, double: PreparedRows, weight: Floats
) -> float:
    """Return ‖error‖/‖K̃‖ of kernel values in float32, on some of the rows."""
    rows = np.linspace(0, len(double) - 1, min(len(double), _PROBE)).astype(int)
    K = kernel.block(double[rows], double[rows]).astype(np.float64)
    error = kernel.block(single[rows], single[rows]).astype(np.float64) - K
    with one_blas_thread():
        largest = _centred_norm(K, weight[rows])
        return _centred_norm(error, weight[rows]) / largest if largest > 0 else np.inf


def _centred_norm(K: Floats, weight: Floats) -> float:
    """Return ‖D^½GKGᵀD^½‖₂ of the symmetric part of K."""
    K = (K + K.T) / 2
    _centre(K, weight)
    return float(np.abs(scipy.linalg.eigvalsh((K + K.T) / 2)).max())


# ------------------------------------------------------------------- features


def count_features(kernel: Kernel, X: Any) -> int | None:
    """Return the number of features of a kernel on rows; None if no such map is known."""
    if X.ndim < 2:
        return None
    if type(kernel) in (Linear, Cosine):
        return int(X.shape[1])
    if isinstance(kernel, FromMap):
        return int(kernel.prepare(X[:1]).parts[0].shape[1])
    if type(kernel) is Polynomial and kernel.psd and int(kernel.degree) >= 1:
        return _count_monomials(X.shape[1], int(kernel.degree), float(kernel.coef0) > 0)
    return None


class ExplicitFeatures:
    """The features of a kernel that has few: linear, cosine, low powers, ``FromMap``."""

    def __init__(self, kernel: Kernel, n_columns: int) -> None:
        self.kernel = kernel
        self.monomials: tuple[int, bool, Floats] | None = None  # degree, lower ones too?, weights
        if isinstance(kernel, Polynomial):
            degree, coef0 = int(kernel.degree), float(kernel.coef0)
            powers = _list_monomials(n_columns, degree, coef0 > 0)
            weights = _weigh_monomials(powers, float(kernel.gamma), coef0)
            self.monomials = degree, coef0 > 0, weights

    def compute(self, X: Any) -> Floats:
        """Return the features of rows."""
        features: Any = as_dense(self.kernel.prepare(X.astype(np.float64, copy=False)).parts[0])
        if self.monomials is not None:
            degree, lower, weights = self.monomials
            features = _expand(features, degree, lower) * weights
        if not np.isfinite(features).all():
            raise overflow(self.kernel)
        return np.asarray(features, dtype=np.float64)


# ------------------------------------------------------------------- monomials
#
# The features of the polynomial kernel in full, with their multinomial weights:
# (coef0 + γ x·x′)^p = Σₐ [p!/(a₀! a₁! … a_d!)] coef0^a₀ γ^|a| · xᵃ x′ᵃ,     a₀ = p − |a|


def _count_monomials(d: int, degree: int, lower: bool) -> int:
    """Return how many monomials of d columns have ``degree`` factors, or with ``lower``, up to."""
    return math.comb(d + degree, degree) if lower else math.comb(d + degree - 1, degree)


def _list_monomials(d: int, degree: int, lower: bool) -> Ints:
    """Return the columns in each product, −1 for none, in the order of ``_expand``."""
    levels = []
    for k in range(0 if lower else degree, degree + 1):
        chosen = chain.from_iterable(combinations_with_replacement(range(d), k))
        level = np.fromiter(chosen, np.int64).reshape(_count_monomials(d, k, False), k)
        levels.append(np.pad(level, ((0, 0), (0, degree - k)), constant_values=-1))
    return np.vstack(levels)


def _expand(X: Floats, degree: int, lower: bool) -> Floats:
    """Return the monomials of rows with exactly, or with ``lower`` up to, ``degree`` factors."""
    from sklearn.preprocessing import PolynomialFeatures  # slow to import

    monomials = PolynomialFeatures((0 if lower else degree, degree), include_bias=lower)
    return np.asarray(monomials.set_output(transform="default").fit_transform(X))


def _weigh_monomials(powers: Ints, gamma: float, coef0: float) -> Floats:
    """Return the root of each multinomial weight."""
    degree = powers.shape[1]
    factors = (powers >= 0).sum(axis=1)
    logs = math.lgamma(degree + 1) - np.array([math.lgamma(degree - k + 1) for k in factors])
    run = np.zeros(len(powers))
    for k in range(degree):  # a! of each exponent a is the product of the lengths of a run so far
        repeated = powers[:, k] == powers[:, k - 1] if k else np.zeros(len(powers), dtype=bool)
        run = np.where(repeated, run + 1, 1.0)
        logs -= np.where(powers[:, k] >= 0, np.log(run), 0.0)
    logs += factors * math.log(gamma)
    if coef0 > 0:
        logs += (degree - factors) * math.log(coef0)
    roots: Floats = np.exp(0.5 * logs)
    return roots


# ------------------------------------------------------------------- sums over rows


class Moments:
    """Weight, mean and scatter of features, merged chunk by chunk (Chan et al. 1979)."""

    def __init__(self, size: int, eps: float = _EPS, exact: bool = False) -> None:
        self.eps = eps  # the rounding of the values that features are computed from
        self.exact = exact  # each feature has all its digits: a large mean hides no small spread
        self.count = 0  # rows
        self.weight = 0.0  # of all of them
        self.mean = np.zeros(size)
        self.scatter = np.zeros((size, size))
        self.largest = 0.0  # ‖φ‖²

    def add(self, features: Floats, weight: Floats) -> None:
        """Add rows of features, each as many times as its weight says."""
        new, old = float(weight.sum()), self.weight
        share = weight / new
        mean = share @ features
        mean += share @ (features - mean)  # what rounding left of the sum
        self.largest = max(self.largest, float(np.einsum("ij,ij->i", features, features).max()))
        centred, shift = features - mean, mean - self.mean
        centred *= np.sqrt(weight)[:, np.newaxis]
        self.count += len(features)
        self.weight = old + new
        self.scatter += centred.T @ centred
        if old:
            self.scatter += np.outer(shift, shift) * (old * (new / self.weight))
        self.mean += shift * (new / self.weight)

    @property
    def trace(self) -> float:
        """The sum of all eigenvalues of the scatter."""
        return float(np.trace(self.scatter))

    @property
    def floor(self) -> float:
        """The largest eigenvalue that may be only rounding."""
        largest = max(self.largest, _TINY)
        if not self.exact:
            return 10 * self.eps * self.weight * largest
        sums = max(10.0, float(np.sqrt(self.count))) * self.trace
        return self.eps * (sums + 100 * self.eps * self.weight * largest)


class NystroemStream:
    """Moments of Nyström's features, and what these miss of the kernel, over all rows seen.

    ``Nystroem`` has the formulas. The first rows provide the landmarks.
    """

    def __init__(
        self, rows: KernelRows, weight: Floats, count: int, rng: np.random.Generator
    ) -> None:
        given = isinstance(rows.kernel, Precomputed)  # rounded before it came here
        eps = float(np.finfo(rows.X.dtype).eps) if given else _EPS
        self.landmarks, K = choose_landmarks(rows, count, "uniform", rng, weight)
        found = invert_root(K, 10 * eps)
        self.root, self.noise = found.root, found.noise
        self.spectrum = found.lowest, found.highest  # the ends of that of the landmarks
        self.moments = Moments(self.root.shape[1], eps)
        self.missed = 0.0  # tr D^½(K − K̂)D^½ as computed
        self.negative = 0.0  # what is below 0 on its diagonal, in absolute value

    def add(self, rows: KernelRows, weight: Floats) -> None:
        """Add rows, each as many times as its weight says."""
        every = np.arange(len(rows))
        for part in cut_blocks(len(rows), len(self.root)):
            features, left = rows.project(every[part], self.landmarks, self.root)
            self.moments.add(features, weight[part])
            self.missed += float(weight[part] @ left)
            self.negative -= float(weight[part] @ np.minimum(left, 0.0))

    @property
    def error_bound(self) -> float:
        """An upper bound of ‖D^½(K − K̂)D^½‖₂, if K is positive semidefinite."""
        # What is below 0 on the diagonal is rounding, and there may be as much of it elsewhere.
        per_row = self.noise / len(self.root)
        rounding = 2 * self.negative + self.moments.floor + self.moments.weight * per_row
        return self.missed + self.negative + rounding


# ------------------------------------------------------------------- projections


@dataclass(eq=False)
class KernelProjection:
    """Projections Σⱼ K(x, xⱼ) aⱼ − offset over training rows or landmarks."""

    kernel_: Kernel
    support_vectors_: Any  # the xⱼ; empty for a precomputed kernel
    coefficients: Floats  # the a: (n, k)
    offset: Floats  # the projections of the mean in feature space: (k,)
    base: Floats  # the mean in feature space as a sum over rows: Σⱼ baseⱼ φ(xⱼ)
    columns: Any = None  # of a precomputed matrix: those of these rows, unless they are all

    def project(self, X: Any, threads: int | None) -> Floats:
        """Return the projections of rows."""
        if isinstance(self.kernel_, Precomputed):
            values = X if self.columns is None else X[:, self.columns]
            return np.asarray(values.astype(np.float64) @ self.coefficients - self.offset)
        right = _PREPARED.of(self)
        return expanded(self.kernel_, X, right, self.coefficients, threads) - self.offset

    def flip(self, signs: Floats) -> None:
        """Multiply directions by ±1."""
        self.coefficients, self.offset = self.coefficients * signs, self.offset * signs

    def row_directions(self) -> tuple[Floats, Floats]:
        """Return x̄ and u of the linear kernel: row x has the projection (x − x̄)·u."""
        rows = self.support_vectors_.T
        return np.asarray(rows @ self.base), np.asarray(rows @ self.coefficients)


@dataclass(eq=False)
class FeatureProjection:
    """Projections (φ(x) − μ)·u by explicit features."""

    features: ExplicitFeatures
    mean: Floats
    directions: Floats

    def project(self, X: Any, threads: int | None) -> Floats:
        """Return the projections of rows."""
        out = np.empty((X.shape[0], self.directions.shape[1]))
        for rows in cut_blocks(X.shape[0], len(self.mean)):
            out[rows] = (self.features.compute(X[rows]) - self.mean) @ self.directions
        return out

    def flip(self, signs: Floats) -> None:
        """Multiply directions by ±1."""
        self.directions = self.directions * signs

    def row_directions(self) -> tuple[Floats, Floats]:
        """Return x̄ and u of the linear kernel: row x has the projection (x − x̄)·u."""
        return self.mean, self.directions
