"""Rows of arrays in memory, a chunk at a time, without copying them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def chunks(X: Any, y: Any, rows: int = 1024) -> Iterator[tuple[Any, Any]]:
    """Iterate over consecutive rows of X and y as views.

    Parameters
    ----------
    X : array of shape (n, d), or CSR array or matrix
        The rows.
    y : array of shape (n,)
        Their labels.
    rows : int, default=1024
        Rows in a chunk, at least 1; the last chunk may be shorter.

    Returns
    -------
    iterator of (X, y)
        Views: changing a chunk's values changes the original.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.data import chunks
    >>> X, y = np.arange(10.0).reshape(5, 2), np.array([1, -1, 1, 1, -1])
    >>> [(part.shape, labels.tolist()) for part, labels in chunks(X, y, rows=3)]
    [((3, 2), [1, -1, 1]), ((2, 2), [1, -1])]
    """
    if rows < 1:
        raise ValueError(f"rows={rows}: a chunk needs at least one row")
    if not isinstance(X, np.ndarray) and not _is_csr(X):
        raise TypeError(
            f"X is a {type(X).__name__}; chunks are views of numpy arrays and CSR matrices: "
            "convert it first (numpy.asarray(X), or X.tocsr())"
        )
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)} labels")
    return _views(X, y, rows)


def _is_csr(X: Any) -> bool:
    return bool(sp.issparse(X)) and X.format == "csr"


def _views(X: Any, y: Any, rows: int) -> Iterator[tuple[Any, Any]]:
    for start in range(0, X.shape[0], rows):
        stop = min(start + rows, X.shape[0])
        part = _csr_rows(X, start, stop) if _is_csr(X) else X[start:stop]
        yield part, y[start:stop]


def _csr_rows(X: Any, start: int, stop: int) -> Any:
    # X[start:stop] would copy, and so does the constructor when given less than half of an array.
    first, last = X.indptr[start], X.indptr[stop]
    part = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    part.data = X.data[first:last]
    part.indices = X.indices[first:last]
    part.indptr = X.indptr[start : stop + 1] - first
    return part
