"""Standardizing rows in parts: means and variances in one pass, merged part by part."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from maxmargin.rows.blocks import Tree
from maxmargin.rows.cluster import compute
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.survey import ColumnSums, column_sums, merge_columns


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
    tree = Tree(merge_columns)
    for part, found in enumerate(_sums(source)):
        tree.put(part, found)
    total = tree.result()
    if total is None or not total.rows:
        raise ValueError(f"{source!r} has no rows; add rows")
    return source.scaled(_scaler(total, source))


def _sums(source: RowSource) -> Iterable[ColumnSums]:
    if source.options.client is None or source.in_memory:
        return map(_sums_of, source)
    dask: Any = import_module("dask")
    step = dask.delayed(_sums_of, pure=False)
    work = [step(source.delayed(part)) for part in range(len(source))]
    return compute(work, source.options.client)


def _sums_of(found: Part) -> ColumnSums:
    return column_sums(found.X)


def _scaler(total: ColumnSums, source: RowSource) -> Any:
    from sklearn.preprocessing import StandardScaler

    n, mean, variance = total.rows, total.means, total.variances
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
