"""Remarks about columns and classes: uneven, constant, collinear, imbalanced."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.inputs import Table, is_wide, shown

_UNEVEN = 10.0  # ratio of the sizes of columns from which scaling is tried
_WIDE_UNEVEN = 1000.0
_IMBALANCED = 10.0
_COLLINEAR = 0.999
_RANK_COLUMNS = 1000


@dataclass(frozen=True)
class Columns:
    """What columns look like.

    Attributes
    ----------
    ratio : float
        Largest column size by smallest: standard deviations, or largest entries of sparse columns.
    constant : list of int
        Columns with one value.
    rank : int or None
        Dimension of the smallest flat that holds the rows looked at; None if not computed.
    nearly : list of pairs of int
        Columns that are nearly (beyond 0.999) or exactly multiples of each other, constants aside.
    rows_seen : int
        Rows looked at for rank and pairs; the rest is exact.
    """

    ratio: float
    largest: int
    smallest: int
    constant: list[int]
    rank: int | None
    nearly: list[tuple[int, int]]
    rows_seen: int
    wide: bool = False

    @property
    def uneven(self) -> bool:
        """Whether sizes differ by more than ten; in wide sparse rows, by more than a thousand."""
        return self.ratio > (_WIDE_UNEVEN if self.wide else _UNEVEN)


def look_at_columns(table: Table, rows: Ints) -> Columns:
    """Measure the columns; rank and correlations on the given rows."""
    sizes, constant = _sizes(table.X)
    varying = np.flatnonzero(~constant & (sizes > 0))
    if len(varying) == 0:
        return Columns(1.0, 0, 0, np.flatnonzero(constant).tolist(), 0, [], len(rows))
    largest = int(varying[sizes[varying].argmax()])
    smallest = int(varying[sizes[varying].argmin()])
    rank: int | None = None
    nearly: list[tuple[int, int]] = []
    if table.shape[1] <= _RANK_COLUMNS:
        rank, nearly = _dependence(table.X[rows], varying)
    ratio = float(sizes[largest] / sizes[smallest])
    gone = np.flatnonzero(constant).tolist()
    wide = is_wide(table.X)
    return Columns(ratio, largest, smallest, gone, rank, nearly, len(rows), wide)


def _sizes(X: Any) -> tuple[Floats, npt.NDArray[np.bool_]]:
    if not sp.issparse(X):
        return X.std(axis=0, dtype=np.float64), np.asarray(X.min(axis=0) == X.max(axis=0))
    low = X.min(axis=0).toarray().ravel()
    high = X.max(axis=0).toarray().ravel()
    if X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.sqrt(np.maximum(square - mean**2, 0.0)), low == high
    return np.maximum(high, -low).astype(np.float64), low == high


def _dependence(X: Any, varying: Ints) -> tuple[int, list[tuple[int, int]]]:
    dense = (X[:, varying].toarray() if sp.issparse(X) else X[:, varying]).astype(np.float64)
    dense -= dense.mean(axis=0)
    length = np.linalg.norm(dense, axis=0)
    dense = dense[:, length > 0] / length[length > 0]
    if dense.shape[1] == 0:
        return 0, []
    products = dense.T @ dense
    values = np.linalg.eigvalsh(products)
    rank = int((values > 1e-12 * len(values) * values[-1]).sum())
    first, second = np.nonzero(np.triu(np.abs(products) > _COLLINEAR, 1))
    columns = varying[length > 0]
    return rank, [(int(columns[i]), int(columns[j])) for i, j in zip(first, second, strict=True)]


def remarks_on(table: Table, columns: Columns) -> list[str]:
    """Return sentences, each with its number; none where there is nothing to remark."""
    d = table.shape[1]
    found = []
    if columns.uneven:
        found.append(
            f"Columns are uneven: {table.column(columns.largest)} is {columns.ratio:.3g} times as "
            f"large as {table.column(columns.smallest)}."
        )
    if columns.constant:
        names = _listed(table, columns.constant)
        verb = "is" if len(columns.constant) == 1 else "are"
        found.append(f"{len(columns.constant)} of {d} columns {verb} constant: {names}.")
    if columns.nearly:
        i, j = columns.nearly[0]
        pairs = "pair" if len(columns.nearly) == 1 else "pairs"
        found.append(
            f"Some columns are nearly collinear ({len(columns.nearly)} {pairs}), such as "
            f"{table.column(i)} and {table.column(j)}."
        )
    free = d - len(columns.constant)
    if columns.rank is not None and columns.rank < min(free, columns.rows_seen - 1):
        found.append(
            f"The rows span {columns.rank} dimensions of {free} varying columns: some columns are "
            "combinations of others."
        )
    counts = np.bincount(table.y)
    if counts.max() > _IMBALANCED * counts.min():
        most, least = (shown(table.label(int(k))) for k in (counts.argmax(), counts.argmin()))
        found.append(
            f"Classes are imbalanced: {counts.max()} rows of {most}, {counts.min()} of {least}."
        )
    return found


def _listed(table: Table, columns: list[int], most: int = 5) -> str:
    names = ", ".join(table.column(j) for j in columns[:most])
    return names + (" and more" if len(columns) > most else "")
