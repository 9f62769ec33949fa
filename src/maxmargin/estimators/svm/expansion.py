"""Kernel expansions f(x) = Σ aᵢ K(xᵢ, x) + b: parameters, input checks and prediction."""

from numbers import Integral
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators.kernel_input import KernelInput, count_threads, named_kernel
from maxmargin.estimators.machine import Machine
from maxmargin.geometry.inputs import row_products
from maxmargin.kernels import Kernel, Linear, Precomputed, PreparedRows
from maxmargin.validation.data import LARGEST_PRODUCT, LARGEST_SQUARE
from maxmargin.validation.parameters import (
    check_flag,
    check_memory,
    check_number,
    check_progress,
    check_threads,
)

_ROWS_AT_A_TIME = 1 << 14  # prepared for a prediction


class PreparedSupport:
    """Support vectors as their kernel sees them, computed once for each model."""

    def __init__(self) -> None:
        # Not in the models: there it would be pickled, and prediction would change them.
        self._kept: WeakKeyDictionary[Any, tuple[Any, Any, PreparedRows]] = WeakKeyDictionary()

    def of(self, model: Any) -> PreparedRows:
        """Return the support vectors of a model in float64, whatever type rows have.

        So scores are those that were certified: float32 errs by 1e-7 of Σ|a|, which may be large.
        """
        vectors, kernel = model.support_vectors_, model.kernel_
        known = self._kept.get(model)
        if known and known[0] is vectors and known[1] is kernel:
            return known[2]
        if not kernel.takes_objects:
            vectors = vectors.astype(np.float64, copy=False)
        prepared: PreparedRows = kernel.prepare(vectors)
        self._kept[model] = model.support_vectors_, kernel, prepared
        return prepared


def expanded(
    kernel: Kernel, X: Any, right: PreparedRows, coefficients: Floats, threads: int | None
) -> Floats:
    """Return Σⱼ K(xᵢ, zⱼ) aⱼₖ of rows X over support vectors z: a column for each column of a."""
    n = X.shape[0]
    scores = np.empty((n, coefficients.shape[1]))
    for start in range(0, n, _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        rows = X[part] if kernel.takes_objects else X[part].astype(right.dtype, copy=False)
        scores[part] = kernel.dot(kernel.prepare(rows, like=right), right, coefficients, threads)
    return scores


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
        check_number(self, "tol", at_least=0)
        if not (isinstance(self.max_iter, Integral) and self.max_iter == -1):
            check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_number(self, "cache_size", above=0, optional=True)
        check_memory(self)
        for name in ("shrinking", "warm_start", "trace"):
            check_flag(self, name)
        check_threads(self)
        check_progress(self)

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

    def pairwise_scores(self, X: Any) -> Floats:
        """Return the scores f of all planes: one column for each entry of ``intercept_``."""
        check_is_fitted(self)
        self._refuse_altered()
        X = self._check_input(X, reset=False)
        if type(self.kernel_) is Linear:
            w = np.ascontiguousarray(self.coef_.T)
            return np.asarray(row_products(X, w) + self.intercept_)
        a = self._coefficients()
        if isinstance(self.kernel_, Precomputed):
            columns = X if X.shape[1] == len(a) != self.n_features_in_ else X[:, self.support_]
            return np.asarray(columns @ a + self.intercept_)
        if not len(a):
            return np.tile(self.intercept_, (X.shape[0], 1))
        right = _PREPARED.of(self)
        return np.asarray(
            expanded(self.kernel_, X, right, a, count_threads(self.n_jobs)) + self.intercept_
        )

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
        if isinstance(self.kernel_, Precomputed) or not len(a):
            return self._given_products
        if type(self.kernel_) is Linear:
            return row_products(vectors, np.ascontiguousarray(self._linear_weights().T))
        return expanded(self.kernel_, vectors, _PREPARED.of(self), a, count_threads(self.n_jobs))

    def _weight_products(self) -> Floats:
        """Return the products of the weights of all scores with each other."""
        if type(self.kernel_) is Linear:
            w = self._linear_weights()
            return np.asarray(w @ w.T)
        return np.asarray(self._coefficients().T @ self._products())

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
