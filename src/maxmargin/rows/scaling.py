"""Standardizing rows in parts: means and variances in one pass, merged part by part.

Of two sets of rows with n and m rows, means a and b, and sums of squared deviations A and B, the
union has the mean a + (b - a) m / (n + m) and the sum A + B + (b - a)² n m / (n + m).
Chan, Golub and LeVeque (1983).
"""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.rows.row_source import Part, RowSource, compute

_FEW_ROWS = 2048  # whose sums are taken at once


class ColumnMoments(NamedTuple):
    """Means of columns, and sums of their squared deviations."""

    n: int
    mean: Floats
    squares: Floats

    def merged(self, other: "ColumnMoments") -> "ColumnMoments":
        """Return the moments of both sets of rows."""
        if not self.n or not other.n:
            return self if self.n else other
        n, step = self.n + other.n, other.mean - self.mean
        mean = self.mean + step * (other.n / n)
        return ColumnMoments(
            n, mean, self.squares + other.squares + step**2 * (self.n * other.n / n)
        )


def moments_of(found: Part) -> ColumnMoments:
    """Return the moments of the rows of a part."""
    X = found.X
    total = ColumnMoments(0, np.zeros(X.shape[1]), np.zeros(X.shape[1]))
    for begin in range(0, X.shape[0], _FEW_ROWS):
        rows = X[begin : begin + _FEW_ROWS]
        total = total.merged(_sparse_moments(rows) if sp.issparse(X) else _dense_moments(rows))
    return total


def _dense_moments(rows: Any) -> ColumnMoments:
    n, mean = len(rows), rows.mean(axis=0, dtype=np.float64)
    away = rows - mean
    rest = away.sum(axis=0)  # what rounding left of 0
    return ColumnMoments(n, mean + rest / n, (away * away).sum(axis=0) - rest * rest / n)


def _sparse_moments(rows: Any) -> ColumnMoments:
    n, d = rows.shape
    values, columns = rows.data.astype(np.float64), rows.indices
    count = np.bincount(columns, minlength=d)
    mean = np.bincount(columns, values, d) / n
    away = values - mean[columns]
    return ColumnMoments(n, mean, np.bincount(columns, away**2, d) + (n - count) * mean**2)


def _moments_of_part(source: RowSource, part: int) -> ColumnMoments:
    return moments_of(source.load(part))


def standardize(source: RowSource) -> RowSource:
    """Return a view of rows whose columns have the mean 0 and the variance 1.

    Means and variances are computed in one pass over the parts, in their order; with a client, on
    the workers. They are those of ``StandardScaler().fit(X)`` but for rounding. Columns of CSR rows
    are scaled but not shifted (``with_mean=False``). Weights are not used, as by that scaler.

    Parameters
    ----------
    source : RowSource
        The rows, as :func:`maxmargin.data.open` returns them.

    Returns
    -------
    RowSource
        The view. Its ``scaler`` is a fitted ``StandardScaler``: with the model that was fitted to
        the view, ``make_pipeline(view.scaler, model)`` predicts from rows as they were.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.array([[1.0, 50.0], [3.0, 10.0], [5.0, 90.0], [7.0, 50.0]])
    >>> view = mm.data.standardize(mm.data.open(X, [1, 1, 2, 2], rows=3))
    >>> view.scaler.mean_.tolist(), len(view)
    ([4.0, 50.0], 2)
    >>> rows = np.vstack([part.X for part in view])
    >>> bool(np.allclose(rows.mean(axis=0), 0) and np.allclose(rows.std(axis=0), 1))
    True
    """
    if not isinstance(source, RowSource):
        raise TypeError(
            f"source must be what maxmargin.data.open returns, not {type(source).__name__}"
        )
    total = ColumnMoments(0, np.zeros(source.n_columns), np.zeros(source.n_columns))
    for found in _moments(source):
        total = total.merged(found)
    if not total.n:
        raise ValueError(f"{source!r} has no rows; add rows")
    return source.scaled(_scaler(total, source))


def _moments(source: RowSource) -> Any:
    if source.options.client is None or source.in_memory:
        return (_moments_of_part(source, part) for part in range(len(source)))
    dask: Any = import_module("dask")
    step = dask.delayed(moments_of, pure=False)
    return compute([step(source.delayed(part)) for part in range(len(source))], source.options)


def _scaler(total: ColumnMoments, source: RowSource) -> Any:
    from sklearn.preprocessing import StandardScaler

    n, mean = total.n, total.mean
    variance = total.squares / n
    # What rounding may have left of the variance of a constant column, as scikit-learn has it.
    eps = np.finfo(np.float64).eps
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    scaler = StandardScaler(with_mean=not source.sparse)
    scaler.mean_, scaler.var_ = mean, variance
    scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
    scaler.n_features_in_, scaler.n_samples_seen_ = source.n_columns, np.int64(n)
    if source.feature_names is not None:
        scaler.feature_names_in_ = np.array(source.feature_names, dtype=object)
    return scaler
