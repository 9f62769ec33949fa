"""Rows of any kind of table, as pictures need them: arrays, sparse matrices, frames with names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.plots.panels import column_names

Floats = npt.NDArray[np.float64]

_NUMBERS = 4_000_000  # of a block of rows


def as_table(X: Any) -> Any:
    """Return X as something with a shape and rows to choose: what is one already stays as it is."""
    table = X.tocsr() if sp.issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or not all(table.shape):
        raise ValueError(f"X must be a table of rows and columns, got shape {table.shape}")
    return table


def n_rows(X: Any) -> int:
    """Return how many rows there are."""
    return int(X.shape[0])


def taken(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Return some of the rows, as the same kind of table."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def names(X: Any) -> list[str]:
    """Return the names of the columns: x₁ and x₂ of two, the numbers ``features`` takes of more."""
    if hasattr(X, "columns") or X.shape[1] == 2:
        return column_names(X, X.shape[1])
    return [f"feature {k}" for k in range(X.shape[1])]


def columns(X: Any, chosen: Sequence[int]) -> Floats:
    """Return some of the columns as numbers."""
    if sp.issparse(X):
        return np.asarray(X[:, chosen].toarray(), dtype=np.float64)
    values = X.iloc[:, chosen] if hasattr(X, "iloc") else X[:, chosen]
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as wrong:
        if len(chosen) > 1:
            for k in chosen:  # which is it?
                columns(X, [k])
        raise ValueError(
            f"column {names(X)[chosen[0]]!r:.60} of X does not hold numbers, so there is no slice "
            "through it; take view='margin', or numeric features only"
        ) from wrong


def middle(X: Any, at: Any) -> Floats:
    """Return a value for each column: its median, its mean, or those given."""
    if isinstance(at, str):
        if at not in ("median", "mean"):
            raise ValueError(f"at must be 'median', 'mean' or an array of values, got {at!r}")
        if sp.issparse(X):
            from sklearn.utils.sparsefuncs import csc_median_axis_0

            found = X.mean(axis=0) if at == "mean" else csc_median_axis_0(X.tocsc())
            return np.asarray(found, dtype=np.float64).ravel()
        middle_of = np.median if at == "median" else np.mean
        return np.asarray(middle_of(columns(X, range(X.shape[1])), axis=0))
    values = np.asarray(at, dtype=np.float64)
    if values.shape != (X.shape[1],) or not np.isfinite(values).all():
        raise ValueError(
            f"at must hold one finite value for each of the {X.shape[1]} features (those of the "
            f"two drawn are not used), got shape {values.shape}"
        )
    return values


def off_slice(X: Any, held: Floats, rest: list[int]) -> npt.NDArray[np.bool_]:
    """Return which rows differ from the values held in one of the features."""
    off = np.zeros(n_rows(X), dtype=bool)
    step = max(1, _NUMBERS // max(1, n_rows(X)))
    for start in range(0, len(rest), step):
        block = rest[start : start + step]
        values = columns(X, block)
        rounding = 1e-9 * np.maximum(1.0, np.abs(values).max(axis=0))
        off |= (np.abs(values - held[block]) > rounding).any(axis=1)
        if off.all():
            break
    return off


def on_slice(X: Any, held: Floats, drawn: tuple[int, int], points: Floats) -> Any:
    """Yield tables like X with the drawn features of the points, and the others held."""
    step = max(1, _NUMBERS // len(held))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        rows = np.tile(held, (len(block), 1))
        rows[:, drawn] = block
        yield _like(X, rows)


def _like(X: Any, rows: Floats) -> Any:
    """Return rows with the names that X has, which models fitted with names ask for."""
    if hasattr(X, "iloc"):
        return type(X)(rows, columns=X.columns)
    if hasattr(X, "columns"):
        return type(X)(rows, schema=list(X.columns))
    return rows
