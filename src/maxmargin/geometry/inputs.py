"""Data and labels as geometry takes them: checked once, widened to float64 a block at a time."""

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from maxmargin.rows.blocks import Block, RowsInMemory
from maxmargin.validation.data import classes_of

Vector = npt.NDArray[np.float64]

# Numbers in a block of rows: 8 MB of float64, small beside any data worth not copying.
BLOCK_SIZE = 1 << 20
_MANY_ROWS = 1 << 12  # that threads share


class KernelLike(Protocol):
    """Whatever can say K(a, b) for the rows of two matrices."""

    def gram(self, A: Any, B: Any) -> Any:
        """Return the matrix of K(a, b), of shape (rows of A, rows of B)."""
        ...


def check_rows(X: Any, n_features: int | None = None, name: str = "X") -> Any:
    """Return finite rows as a float array or CSR matrix, without copying what is one already."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=name)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"{name} has {X.shape[1]} columns, but the plane has {n_features} weights")
    return X


def check_vector(v: Any, name: str) -> Vector:
    """Return a finite vector as a read-only float64 copy."""
    vector = np.array(v, dtype=np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"{name} must be one vector, got shape {vector.shape}; flatten it")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} contains NaN or infinity; replace them")
    vector.flags.writeable = False
    return vector


def check_number(
    name: str, value: Any, least: float = -math.inf, above: float | None = None
) -> float:
    """Return a finite float that is not below ``least``, and above ``above``."""
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        limit = f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name} must be a finite number{limit}, got {value!r}")
    if above is not None and number <= above:
        raise ValueError(f"{name} must be above {above:g}, got {value!r}")
    return number


def signs(y: Any, n_rows: int) -> Vector:
    """Return labels as −1.0 and +1.0; of any other two values the larger is positive."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y must have one label for each of the {n_rows} rows of X, got shape {labels.shape}"
        )
    classes = classes_of(labels)
    if len(classes) > 2:
        raise ValueError(
            f"y has {len(classes)} classes, but a plane has two sides; "
            "choose two classes, or compare one with the rest"
        )
    if np.isin(classes, [-1, 1]).all():
        return labels.astype(np.float64)
    if len(classes) == 1:
        raise ValueError(
            f"y has the single value {classes[0]!r}, which is neither -1 nor +1, so its side is "
            "unknown; use labels -1 and +1"
        )
    return np.where(labels == classes[1], 1.0, -1.0)


def blocks(X: Any, width: int = 0, begin: int = 0, end: int | None = None) -> Iterator[Any]:
    """Yield consecutive rows as float64, few enough for a block of rows × ``width`` numbers."""
    n_rows = X.shape[0]
    end = n_rows if end is None else end
    per_row = math.ceil(X.nnz / n_rows) if sp.issparse(X) else X.shape[1]
    step = max(1, BLOCK_SIZE // max(1, per_row, width))
    for start in range(begin, end, step):
        yield X[start : min(start + step, end)].astype(np.float64, copy=False)


def row_products(X: Any, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return X·matrix in float64."""
    if X.dtype == np.float64:
        return np.asarray(X @ matrix)
    return np.concatenate([block @ matrix for block in blocks(X)])


def largest_squared_norm(X: Any) -> float:
    """Return max ‖x‖² over the rows."""
    if sp.issparse(X) and not X.has_canonical_format:  # an entry may be listed twice
        X = X.copy()
        X.sum_duplicates()

    if isinstance(X, np.ndarray) and X.shape[0] >= _MANY_ROWS:  # slices of others are copies
        return float(RowsInMemory(X).map(_largest_of, merge=max))
    if X.dtype == np.float64:
        return float(row_norms(X, squared=True).max())
    return _largest(X, 0, X.shape[0])


def _largest_of(block: Block) -> float:
    return _largest(block.X, block.begin, block.end)


def _largest(X: Any, begin: int, end: int) -> float:
    return max(float(row_norms(x, squared=True).max()) for x in blocks(X, 0, begin, end))
