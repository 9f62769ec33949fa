"""What feature maps share: rows in, features out, a block at a time."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.inputs import check_rows, refuse_overflow
from maxmargin.estimators.parameters import NamedParameters
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels.blas import one_blas_thread, usual_threads
from maxmargin.kernels.tiles import share_work

_NUMBERS = 1 << 21  # in the temporary arrays of a block: 16 MB
_FEWEST_ROWS = 64  # in a block, however wide


class FeatureMap(TransformerMixin, NamedParameters, BaseEstimator):
    """Base of the maps x ↦ φ(x); ``φ(x)·φ(x′)`` is a kernel, or nearly one.

    Dense features are written into one array, a block of rows at a time: beyond the answer itself,
    ``transform`` needs a few blocks of 16 MB.
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

    _stays_sparse = False  # whether sparse rows get sparse features
    _side_by_side = False  # whether blocks are filled by several threads

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
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            There for the sake of pipelines.
        """
        self.__dict__.pop("n_components_", None)  # whatever fails from here on leaves it unfitted
        self._learn(self._check_input(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of rows: float32 for float32, float64 for everything else.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        array of shape (n, n_components_)
        """
        check_is_fitted(self)
        return self._mapped(self._check_input(X, reset=False))

    def transform_chunks(self, X: Any, rows: int = 10_000) -> Iterator[Any]:
        """Yield the features of a chunk of rows after the other: no more than these in memory.

        Parameters
        ----------
        X : array, sparse matrix or frame; or an iterable of such
            Rows, cut into chunks here; or chunks as they come, from a file or a stream.
        rows : int, default=10000
            Rows in a chunk that is cut here.

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
        return (self.transform(chunk) for chunk in _chunks(X, int(rows)))

    # ------------------------------------------------------------ blocks

    def _mapped(self, X: Any) -> Any:
        n = X.shape[0]
        parts = blocks(n, self._width())
        if self._stays_sparse and sp.issparse(X):
            return sp.vstack([self._sparse_block(X[part]) for part in parts], format="csr")
        out = np.empty((n, self.n_components_), dtype=_dtype(X))

        def fill(part: slice) -> None:
            self._fill(X[part], out[part])

        if self._side_by_side and len(parts) > 1:
            with one_blas_thread():
                share_work(fill, deque(parts), min(usual_threads(), len(parts)))
        else:
            for part in parts:
                fill(part)
        return out


def blocks(n: int, width: int) -> list[slice]:
    """Return n rows in blocks whose temporary arrays, of so many columns, stay small."""
    step = max(_FEWEST_ROWS, _NUMBERS // max(1, width))
    return [slice(start, start + step) for start in range(0, n, step)]


def largest_square(X: Any) -> float:
    """Return how large ‖x‖², or what is computed of it, may be in the type of X."""
    return 1e36 if X.dtype == np.float32 else 1e290


def _dtype(X: Any) -> Any:
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def _chunks(X: Any, rows: int) -> Iterator[Any]:
    if not hasattr(X, "shape"):
        yield from X
        return
    # Slices of a frame are of labels where these are floats, and not all sparse formats have any.
    sliced = X.tocsr() if sp.issparse(X) else getattr(X, "iloc", X)
    for start in range(0, X.shape[0], rows):
        yield sliced[start : start + rows]
