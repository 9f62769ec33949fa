"""Rows of a source as feature maps learn from them: some rows by number, and sums over columns."""

import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.linear.blocked import Opened
from maxmargin.kernels import Kernel
from maxmargin.kernels.prepared import Source
from maxmargin.rows.blocks import Block, join
from maxmargin.rows.row_source import RowSource
from maxmargin.validation.data import name_overflow, stacked


class SourceRows:
    """Stands for the rows of a source; those that are asked for are read in a pass over blocks."""

    def __init__(self, opened: Opened) -> None:
        self._opened, survey = opened, opened.survey
        self.shape, self.dtype = (survey.n, survey.d), np.dtype(survey.dtype)
        self.sparse, self.columns = bool(survey.sparse), survey.columns
        self.feature_names = opened.source.feature_names
        self._kept: tuple[Ints, Any] = np.zeros(0, np.int64), None

    @classmethod
    def of(cls, source: RowSource) -> Self:
        """Survey a source, without its labels: maps learn from rows alone."""
        plain = copy.copy(source)
        plain.labelled = plain.weighted = False
        return cls(Opened.of(plain, targets=False, threads=None))

    def keep(self, rows: Ints) -> None:
        """Read some rows, which are ascending and will be asked for in pieces."""
        if self._places(rows) is None:
            self._kept = rows, stacked(self._opened.blocks.map(_take, rows, merge=join))

    def __getitem__(self, rows: Ints) -> Any:
        """Return some rows, which are ascending if they are not kept."""
        at = self._places(rows)
        if at is not None:
            return self._kept[1][at]
        return stacked(self._opened.blocks.map(_take, rows, merge=join))

    def _places(self, rows: Ints) -> Ints | None:
        """Return where rows are among those that are kept; None if some are not."""
        known = self._kept[0]
        if not len(known):
            return None
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return at if (known[at] == rows).all() else None

    def largest_diagonal(self, kernel: Kernel) -> float:
        """Return the largest K(x, x) of all rows."""
        return float(self._opened.blocks.map(_largest, kernel, merge=max))

    def refuse_overflow(self, square: float, largest_square: float) -> None:
        """Raise an error that names the largest column if sums of such squares overflow."""
        columns = self.columns
        if square >= largest_square:
            names = self.feature_names
            raise ValueError(name_overflow(names, columns.largest_column, columns.largest_value))


def _take(block: Block, rows: Ints) -> list[Any]:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    if begin == end:
        return []
    return [block.X[rows[begin:end] - block.first + block.begin]]


def _largest(block: Block, kernel: Kernel) -> float:
    rows = block.X[block.begin : block.end].astype(np.float64)
    return float(kernel.diag(rows).max(initial=-np.inf)) if rows.shape[0] else -np.inf


# ------------------------------------------------------------------- rows of either kind


def is_sparse(X: Any) -> bool:
    """Return whether rows are sparse."""
    return X.sparse if isinstance(X, SourceRows) else bool(sp.issparse(X))


def resolved(kernel: Kernel, X: Any) -> Kernel:
    """Return a kernel with numbers instead of gamma="scale" and "auto"."""
    if not isinstance(X, SourceRows):
        return kernel.resolved(X)
    return kernel.resolve(_KnownColumns(X.columns.means, X.columns.variances))


class _KnownColumns(Source):
    """What is known of the columns of rows, for kernels with gamma="scale"."""

    def __init__(self, means: Floats, variances: Floats) -> None:
        super().__init__(np.zeros((1, len(means))))
        self.means, self.variances = means, variances

    def variance(self) -> float:
        """Return the variance of all entries."""
        return float(self.variances.mean() + self.means.var())

    def take_columns(self, numbers: Any) -> "_KnownColumns":
        """Return a selection of the columns."""
        return _KnownColumns(self.means[numbers], self.variances[numbers])
