"""Kernel expansions f(x) = Σ aᵢ K(xᵢ, x) + b: parameters, input checks and prediction."""

from collections import deque
from contextlib import nullcontext
from numbers import Integral
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators.kernel_input import KernelInput, count_threads, named_kernel
from maxmargin.estimators.linear.blocked import as_source as as_row_source
from maxmargin.estimators.linear.blocked import by_parts, is_source
from maxmargin.estimators.machine import Machine
from maxmargin.geometry.inputs import row_products
from maxmargin.kernels import Kernel, Linear, Precomputed, PreparedRows
from maxmargin.kernels.prepared import Source, SparseRows
from maxmargin.kernels.tiles import (
    SMALL_PRODUCT,
    TILE_BYTES,
    TILE_COLUMNS,
    overflow,
    scratch,
)
from maxmargin.loops.records import read_only
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads
from maxmargin.validation.data import LARGEST_PRODUCT, LARGEST_SQUARE
from maxmargin.validation.parameters import (
    check_flag,
    check_memory,
    check_number,
)

_ROWS_AT_A_TIME = 1 << 14  # prepared for a prediction
_FEW_VALUES = 1 << 17  # up to which there is no need for tiles
_WORTH_TWO_PASSES = 1 << 20  # kernel values: fewer are computed in float64 as fast


class PreparedSupport:
    """Support vectors as their kernel sees them, computed once for each model."""

    def __init__(self) -> None:
        # Not in the models: there it would be pickled, and prediction would change them.
        self._kept: WeakKeyDictionary[Any, _Support] = WeakKeyDictionary()

    def of(self, model: Any) -> PreparedRows:
        """Return the support vectors of a model in float64, whatever type rows have.

        So scores are those that were certified: float32 errs by 1e-7 of Σ|a|, which may be large.
        """
        return self._support(model).prepared

    def narrowed(self, model: Any) -> tuple[PreparedRows, Floats] | None:
        """Return them in float32 with the relative error that each adds to a kernel value.

        None: no bound on errors is known that is a part of values.
        """
        support = self._support(model)
        if "narrow" not in vars(support):
            support.narrow = narrow_rows(model.kernel_, support.prepared)
        return support.narrow

    def _support(self, model: Any) -> "_Support":
        vectors, kernel = model.support_vectors_, model.kernel_
        known = self._kept.get(model)
        if known is None or known.vectors is not vectors or known.kernel is not kernel:
            prepared = kernel.prepare(as_source(kernel, vectors, np.float64))
            self._kept[model] = known = _Support(vectors, kernel, prepared)
        return known


class _Support:
    narrow: tuple[PreparedRows, Floats] | None  # once it was asked for

    def __init__(self, vectors: Any, kernel: Kernel, prepared: PreparedRows) -> None:
        self.vectors, self.kernel, self.prepared = vectors, kernel, prepared


def as_source(kernel: Kernel, X: Any, dtype: Any) -> Any:
    """Return rows that were checked before, so that a kernel does not check them again."""
    if kernel.takes_objects:
        return X
    X = X.astype(dtype, copy=False)
    source = Source(X)
    source.rows = SparseRows.of(X) if sp.issparse(X) else read_only(X)
    return source


def narrow_rows(kernel: Kernel, rows: PreparedRows) -> tuple[PreparedRows, Floats] | None:
    """Return rows in float32 and what each adds to the relative error of a kernel value."""
    narrow = kernel.narrowed(rows) if kernel.nonnegative and rows.dtype == np.float64 else None
    bounds = None if narrow is None else kernel.float32_rounding(narrow)
    if narrow is None or bounds is None or bounds[1].any() or bounds[0].max() > _MOST_ERROR:
        return None
    return narrow, bounds[0]


class WeightedVectors(NamedTuple):
    """Consecutive support vectors, the scores they have a part in, and their coefficients there."""

    vectors: slice
    scores: Any
    coefficients: Floats


def expanded(
    kernel: Kernel, X: Any, right: PreparedRows, coefficients: Floats, threads: int | None
) -> Floats:
    """Return Σⱼ K(xᵢ, zⱼ) aⱼₖ of rows X over support vectors z: a column for each column of a."""
    whole = WeightedVectors(slice(None), slice(None), coefficients)
    return expanded_by_blocks(kernel, X, right, [whole], coefficients.shape[1], threads)


def expanded_by_blocks(
    kernel: Kernel,
    X: Any,
    right: PreparedRows,
    blocks: list[WeightedVectors],
    count: int,
    threads: int | None,
) -> Floats:
    """Return ``count`` sums of kernel values, each over those blocks that have a part in it."""
    n = X.shape[0]
    scores = np.zeros((n, count))
    for start in range(0, n, _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        rows = kernel.prepare(as_source(kernel, X[part], right.dtype), like=right)
        products = multiply_blocks(kernel, rows, right, blocks, threads)
        add_blocks(scores[part], blocks, products)
    return scores


def add_blocks(scores: Floats, blocks: list[WeightedVectors], products: list[Floats]) -> None:
    """Add what each block contributes to the scores that it has a part in."""
    if len(blocks) == 1:
        scores[:, blocks[0].scores] += products[0]
        return
    by_score = np.zeros(scores.T.shape)
    for block, product in zip(blocks, products, strict=True):
        by_score[block.scores] += product.T
    scores += by_score.T


def multiply_blocks(
    kernel: Kernel,
    rows: PreparedRows,
    right: PreparedRows,
    blocks: list[WeightedVectors],
    threads: int | None,
) -> list[Floats]:
    """Return K(x, z) @ a of each block, while the values of some rows with all z are in cache."""
    if len(blocks) == 1 and len(rows) * len(right) > _FEW_VALUES:
        return [kernel.dot(rows, right, blocks[0].coefficients, threads)]
    height = max(1, min(kernel.max_tile_rows, TILE_BYTES // (right.dtype.itemsize * len(right))))
    typed = [np.ascontiguousarray(block.coefficients, right.dtype) for block in blocks]
    products = [np.empty((len(rows), a.shape[1])) for a in typed]

    def multiply(top: int) -> None:
        some = slice(top, top + height)
        with scratch((len(rows[some]), len(right)), right.dtype) as K:
            kernel.fill_tile(rows[some], right, K)
            for block, a, product in zip(blocks, typed, products, strict=True):
                product[some] = K[:, block.vectors] @ a

    tops = deque(range(0, len(rows), height))
    small = len(rows) * len(right) * (right.width or 1) <= SMALL_PRODUCT
    with nullcontext() if small else one_blas_thread():
        multiply(tops.popleft())  # alone: it compiles loops and builds what is built lazily
        if tops:
            helpers = min(threads or usual_threads(), len(tops)) if kernel.thread_safe else 1
            share_work(multiply, tops, helpers)
    if not all(np.isfinite(product).all() for product in products):
        raise overflow(kernel)
    return products


# ------------------------------------------------------------------- what float32 can decide
#
# A kernel value k in float32 is within (eᵗ − 1)k of what it should be, t = t(x) + t(z); sums over
# the columns of a tile, and the rounding of coefficients, cost a part σ of Σ|a|k as well. So a
# further column Σ |a|k(t(z) + σ + τ) bounds all errors, where τ is a usual t(x): it is increased
# in proportion for rows with a larger one.

_U = 2.0**-24  # half of float32's ε
_MOST_ERROR = 0.05  # of a kernel value: beyond it nothing is computed in float32
_UNDERFLOW = 1e-36  # what a term may lose by it


def rough_scores(
    kernel: Kernel,
    X: Any,
    right: PreparedRows,
    narrow: tuple[PreparedRows, Floats],
    blocks: list[WeightedVectors],
    count: int,
    threads: int | None,
) -> tuple[Floats, Floats] | None:
    """Return the sums of ``expanded_by_blocks`` in float32, and bounds on the errors of each block.

    The error of a sum is no more than the sum of those of the blocks that have a part in it. None:
    these rows have no form in float32.
    """
    columns, errors = narrow
    scores, bounds = np.zeros((X.shape[0], count)), np.zeros((X.shape[0], len(blocks)))
    largest = max(float(np.abs(block.coefficients).max(initial=0.0)) for block in blocks)
    scale = 2.0 ** np.ceil(np.log2(largest)) if largest > 0 else 1.0
    for start in range(0, X.shape[0], _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        rows = kernel.prepare(as_source(kernel, X[part], right.dtype), like=right)
        if (narrow_x := narrow_rows(kernel, rows)) is None:
            return None
        own = narrow_x[1]
        usual = float(own.mean())
        with_bounds = []
        for vectors, places, a in blocks:
            longest = TILE_COLUMNS if len(blocks) == 1 else len(a)
            sums = 1.01 * (longest + 4) * _U
            sizes = np.abs(a).max(axis=1) * (errors[vectors] + usual + sums)
            weights = np.column_stack([a, sizes]) / scale
            with_bounds.append(WeightedVectors(vectors, places, weights))
        more = (1.2 * scale) * np.maximum(own / usual, 1.0)
        products = multiply_blocks(kernel, narrow_x[0], columns, with_bounds, threads)
        for k, product in enumerate(products):
            bounds[part, k] = more * product[:, -1]
        add_blocks(scores[part], blocks, [scale * product[:, :-1] for product in products])
    return scores, bounds + scale * len(columns) * _UNDERFLOW


_PREPARED = PreparedSupport()
# By model, but not in it: looking at a model does not change it.
_PRODUCTS: WeakKeyDictionary[Any, tuple[Any, Floats, Floats]] = WeakKeyDictionary()


class KernelExpansion(KernelInput, Machine):
    """The parameters of kernel machines, and how they predict."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    memory: Any
    cache_size: Any

    # Whether with the linear kernel the linear machine solves the same problem.
    _has_linear_machine: ClassVar[bool] = False
    _kept_rows = "support_vectors_"
    _bounds_new_rows = False
    support_vectors_: Any
    _given_products: Floats  # of a precomputed matrix, which is not kept
    _weights: Floats  # w of the linear machine
    _weights_of: Floats  # and the coefficients it belongs to

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._named_kernel()
        if not (isinstance(self.max_iter, Integral) and self.max_iter == -1):
            check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "cache_size", above=0, optional=True)
        check_memory(self)
        check_flag(self, "shrinking")
        super().check_parameters()

    def _bytes(self) -> int | None:
        """Return the memory for kernel values; None: what is free decides."""
        if not isinstance(self.memory, str):
            return int(self.memory)
        return None if self.cache_size is None else int(float(self.cache_size) * (1 << 20))

    def _coefficients(self) -> Floats:
        """Return the coefficients of the support vectors, one column for each score."""
        return np.asarray(self.dual_coef_, dtype=np.float64).T

    def _is_linear(self, kernel: Kernel) -> bool:
        """Return whether the linear machine solves the same problem."""
        return self._has_linear_machine and type(kernel) is Linear

    # ------------------------------------------------------------ input

    def _named_kernel(self, objects: bool = False) -> Kernel:
        return named_kernel(self, objects)

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        """Return rows, kernel values or objects; kernel values also with support vectors only."""
        if not reset and self.kernel_.takes_gram and not sp.issparse(X):
            narrow = getattr(X, "shape", (0, 0))[1:] == (len(self.support_),)
            if narrow and len(self.support_) != self.n_features_in_:
                return check_array(X, dtype=[np.float64, np.float32])
        return super()._check_input(X, reset=reset)

    def _largest_square(self, _X: Any) -> float:
        return LARGEST_PRODUCT if self._is_linear(self._named_kernel()) else LARGEST_SQUARE

    # ------------------------------------------------------------ prediction

    @property
    def coef_(self) -> Floats:
        """The weights w, which exist for the linear kernel only."""
        check_is_fitted(self)
        if type(self.kernel_) is not Linear:
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self._linear_weights()

    def _linear_weights(self) -> Floats:
        if hasattr(self, "_weights") and np.array_equal(self._weights_of, self.dual_coef_):
            w = self._weights.view()
        else:
            w = np.asarray((self.support_vectors_.T @ self._coefficients()).T)
        w.flags.writeable = False
        return w

    def distance(self, X: Any) -> Floats:
        """Return the signed distance f/‖w‖ of each row in feature space; 0/0 is 0.

        Of shape (n,), or (n, n_planes) if there are several planes.
        """
        scores = self.pairwise_scores(X)
        lengths = self._lengths
        distances = scores / np.where(lengths > 0, lengths, 1.0)
        return np.asarray(distances[:, 0] if distances.shape[1] == 1 else distances)

    def _blocks(self) -> list[WeightedVectors]:
        """Return the coefficients of the support vectors, without those that are always 0."""
        return [WeightedVectors(slice(None), slice(None), self._coefficients())]

    def pairwise_scores(self, X: Any) -> Floats:
        """Return the scores f of all planes: one column for each entry of ``intercept_``."""
        if is_source(X):
            return np.asarray(by_parts(as_row_source(X, None), self.pairwise_scores))
        return self._scores(self._check_new_rows(X))

    def _check_new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        self._refuse_altered()
        return self._check_input(X, reset=False)

    def _scores(self, X: Any) -> Floats:
        if type(self.kernel_) is Linear:
            w = np.ascontiguousarray(self.coef_.T)
            return np.asarray(row_products(X, w) + self.intercept_)
        if isinstance(self.kernel_, Precomputed):
            a = self._coefficients()
            columns = X if X.shape[1] == len(a) != self.n_features_in_ else X[:, self.support_]
            return np.asarray(columns @ a + self.intercept_)
        if not len(self.support_):
            return np.tile(self.intercept_, (X.shape[0], 1))
        return np.asarray(self._expanded(X) + self.intercept_)

    def _expanded(self, X: Any) -> Floats:
        right, count = _PREPARED.of(self), len(self.intercept_)
        threads = count_threads(self.n_jobs)
        return expanded_by_blocks(self.kernel_, X, right, self._blocks(), count, threads)

    def _rough_scores(self, X: Any) -> tuple[Floats, Floats] | None:
        """Return scores in float32 with bounds on their errors, where that saves time."""
        values = X.shape[0] * len(self.support_)
        if type(self.kernel_) is Linear or self.kernel_.takes_gram or values < _WORTH_TWO_PASSES:
            return None
        if (narrow := _PREPARED.narrowed(self)) is None:
            return None
        right, count = _PREPARED.of(self), len(self.intercept_)
        threads = count_threads(self.n_jobs)
        found = rough_scores(self.kernel_, X, right, narrow, self._blocks(), count, threads)
        return None if found is None else (found[0] + self.intercept_, found[1])

    def _refuse_altered(self) -> None:
        n = len(self.support_)
        whole = isinstance(self.kernel_, Precomputed) or self.support_vectors_.shape[0] == n
        shape = np.shape(self.dual_coef_)
        if not (whole and shape[1:] == (n,) and int(np.sum(self.n_support_)) == n):
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: dual_coef_, "
                "support_, support_vectors_ and n_support_ do not belong together. Fit it again."
            )

    # ------------------------------------------------------------ lengths

    def _products(self) -> Floats:
        """Return w·φ(x) of the support vectors, a column for each score.

        Computed on first use and cached: this costs as much as one prediction.
        """
        known = _PRODUCTS.get(self)
        same = known and known[0] is self.support_vectors_
        if known and same and np.array_equal(known[1], self.dual_coef_):
            return known[2]
        products = self._computed_products()
        _PRODUCTS[self] = self.support_vectors_, self.dual_coef_.copy(), products
        return products

    def _computed_products(self) -> Floats:
        a, vectors = self._coefficients(), self.support_vectors_
        if type(self.kernel_) is Linear:
            return row_products(vectors, np.ascontiguousarray(self._linear_weights().T))
        if isinstance(self.kernel_, Precomputed) or not len(a):
            return self._given_products
        return self._expanded(vectors)

    @property
    def _lengths(self) -> Floats:
        """‖w‖ of each score."""
        if type(self.kernel_) is Linear:
            return np.asarray(np.linalg.norm(self._linear_weights(), axis=1))
        squares = (self._coefficients() * self._products()).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def _margins(self) -> Floats:
        check_is_fitted(self)
        lengths = self._lengths
        margins = np.full(len(lengths), np.inf)
        np.divide(1.0, lengths, out=margins, where=lengths > 0)
        return margins

    def _among_rows(self, values: Floats) -> Floats:
        """Return values of the support vectors as values of all rows, 0 for the others."""
        check_is_fitted(self)
        out = np.zeros((*values.shape[:-1], self.shape_fit_[0]), dtype=values.dtype)
        out[..., self.support_] = values
        return out
