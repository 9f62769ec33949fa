"""Rows in blocks: every pass over rows is a map over these, and cannot tell where they live."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from maxmargin.threads import share_work, usual_threads

_MOST_BLOCKS = 8
_BLOCK_NUMBERS = 1 << 16  # in a block, at least …
_BLOCK_COLUMNS = 8  # … and per column: passes that add rows up do so in a vector for each block
_WORTH_A_THREAD = 1 << 19  # numbers read in a pass

Found = TypeVar("Found")


class RowsInMemory:
    """Rows of an array or a CSR matrix, cut into blocks by their size alone.

    A block is worked through in order by one thread, so that what is summed up from the blocks, in
    their order, is the same to the last bit whatever the number of threads. What belongs to a row
    (its dual, its score) stays with its block.
    """

    def __init__(self, X: Any, threads: int | None = None) -> None:
        self._n = int(X.shape[0])
        self.numbers = float(X.nnz if hasattr(X, "nnz") else X.size)
        least = max(_BLOCK_NUMBERS, _BLOCK_COLUMNS * (X.shape[1] if X.ndim == 2 else 1))
        count = int(np.clip(self.numbers // least, 1, _MOST_BLOCKS))
        edges = np.linspace(0, self._n, count + 1).astype(np.int64).tolist()
        self._blocks = list(pairwise(edges))
        self._threads = threads

    def map(self, step: Callable[[int, int], Found], numbers: float | None = None) -> list[Found]:
        """Return what a step gives for each block of rows (begin, end), in their order.

        ``numbers`` says how many numbers the whole pass reads, if not those of the rows. Little
        work is done in one go.
        """
        if (self.numbers if numbers is None else numbers) < _WORTH_A_THREAD:
            return [step(0, self._n)]
        found: list[Any] = [None] * len(self._blocks)

        def one(block: int) -> None:
            found[block] = step(*self._blocks[block])

        threads = min(self._threads or usual_threads(), len(found))
        share_work(one, deque(range(len(found))), threads)
        return found


# ------------------------------------------------------------------- chunks for users


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
    csr = sp.issparse(X) and X.format == "csr"
    if not csr and not isinstance(X, np.ndarray):
        raise TypeError(
            f"X is a {type(X).__name__}; chunks are views of numpy arrays and CSR matrices: "
            "convert it first (numpy.asarray(X), or X.tocsr())"
        )
    n = X.shape[0]
    if n != len(y):
        raise ValueError(f"X has {n} rows but y has {len(y)} labels")
    slices = (slice(start, min(start + rows, n)) for start in range(0, n, rows))
    return ((_view_csr_rows(X, part) if csr else X[part], y[part]) for part in slices)


def _view_csr_rows(X: Any, part: slice) -> Any:
    # X[part] would copy, and so does the constructor when given less than half of an array.
    first, last = X.indptr[part.start], X.indptr[part.stop]
    view = type(X)((part.stop - part.start, X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[part.start : part.stop + 1] - first
    return view
