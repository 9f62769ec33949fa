"""What feature maps share: rows in, features out, one block at a time."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.feature_maps.source_rows import SourceRows
from maxmargin.estimators.linear.blocked import as_source, is_source
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.rows.row_source import RowSource
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads
from maxmargin.validation.data import LARGEST_SQUARE, check_rows, refuse_overflow
from maxmargin.validation.parameters import NamedParameters

FAILURE = 1e-3  # the probability with which a stated bound may fail

LARGEST_SINGLE = 1e36  # the largest ‖x‖² of float32 rows whose features do not overflow

_NUMBERS = 1 << 21  # in the temporary arrays of a block: 16 MB
_FEWEST_ROWS = 64  # in a block, however wide it is


class FeatureMap(TransformerMixin, NamedParameters, BaseEstimator):
    """Base of the maps x ↦ φ(x); ``φ(x)·φ(x′)`` is a kernel, or nearly one.

    Dense features are written into one array, one block of rows at a time: apart from its result,
    ``transform`` needs memory for a few blocks of 16 MB.
    """

    n_components_: int

    # ------------------------------------------------------------ for subclasses

    def _learn(self, X: Any) -> None:
        """Set what the map needs; X is checked."""
        raise NotImplementedError

    def _fill(self, X: Any, out: Any) -> None:
        """Write the features of a block of rows."""
        raise NotImplementedError

    def _sparse_block(self, X: Any) -> Any:
        """Return the features of a block of rows as a sparse matrix, if ``_stays_sparse``."""
        raise NotImplementedError

    _takes_sources = False  # whether it learns from sums over columns, and some rows by number
    _stays_sparse = False  # whether sparse rows get sparse features
    _threaded = False  # whether several threads fill blocks at the same time

    def _width(self) -> int:
        """Return how many numbers a row needs while it is mapped."""
        return self.n_components_

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        X = check_rows(self, X, reset=reset)
        refuse_overflow(self, X, largest_squared_norm(X), largest_square(X))
        return X

    # ------------------------------------------------------------ scikit-learn's surface

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_components_")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows. Of what ``mm.data.open`` returns, the rows that a map learns from are read in a
            few passes: it is the map of the same rows in memory, but for rounding in γ.
        y : ignored
            For pipelines.
        """
        self.__dict__.pop("n_components_", None)  # if anything fails from here on, it is unfitted
        if is_source(X):
            self._learn(self._check_source(as_source(X, None)))
        else:
            self._learn(self._check_input(X, reset=True))
        return self

    def _check_source(self, source: RowSource) -> SourceRows:
        """Survey a source; return its rows as ``_learn`` sees them."""
        if not self._takes_sources:
            raise ValueError(
                f"{type(self).__name__} learns from rows in memory alone: fit it to some of the "
                "rows, then source.mapped(map) has the features of all."
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
        return self._map(self._check_input(X, reset=False))

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
        >>> phi = mm.RandomFourier(n_components=8).fit(X)
        >>> [part.shape for part in phi.transform_chunks(X, rows=80)]
        [(80, 8), (80, 8), (40, 8)]
        """
        check_is_fitted(self)
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"rows={rows!r} is not valid: it must be an integer >= 1.")
        return (self.transform(chunk) for chunk in _cut_chunks(X, int(rows)))

    # ------------------------------------------------------------ blocks

    def _map(self, X: Any) -> Any:
        n = X.shape[0]
        parts = cut_blocks(n, self._width())
        if self._stays_sparse and sp.issparse(X):
            return sp.vstack([self._sparse_block(X[part]) for part in parts], format="csr")
        out = np.empty((n, self.n_components_), dtype=float_type(X))

        def fill(part: slice) -> None:
            self._fill(X[part], out[part])

        if self._threaded and len(parts) > 1:
            with one_blas_thread():
                share_work(fill, deque(parts), min(usual_threads(), len(parts)))
        else:
            for part in parts:
                fill(part)
        return out


def cut_blocks(n: int, width: int) -> list[slice]:
    """Return slices of n rows whose temporary arrays, ``width`` numbers per row, stay small."""
    step = max(_FEWEST_ROWS, _NUMBERS // max(1, width))
    return [slice(start, start + step) for start in range(0, n, step)]


def largest_square(X: Any) -> float:
    """Return how large ‖x‖², or what is computed from it, may be in the type of X."""
    return LARGEST_SINGLE if X.dtype == np.float32 else LARGEST_SQUARE


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
