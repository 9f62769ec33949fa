"""Standardizing rows in parts: means and variances in one pass, merged part by part."""

import copy
from typing import Any

import numpy as np

from maxmargin.rows.cluster import cluster_of
from maxmargin.rows.row_source import RowSource
from maxmargin.rows.survey import Survey, survey


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
    plain = copy.copy(source)
    plain.labelled = plain.weighted = False
    client = source.options.client
    if client is None or source.in_memory:
        return source.scaled(_scaler(survey(plain), source))
    from maxmargin.rows.on_dask import survey_on_dask

    with cluster_of(client) as connected:
        return source.scaled(_scaler(survey_on_dask(plain, connected), source))


def _scaler(found: Survey, source: RowSource) -> Any:
    from sklearn.preprocessing import StandardScaler

    n, mean, variance = found.n, found.columns.means, found.columns.variances
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
