"""Kernels whose γ follows from the columns of rows that are not in memory."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel
from maxmargin.kernels.prepared import Source
from maxmargin.rows.blocks import Block, Blocks
from maxmargin.rows.survey import ColumnSums, merge_columns


class SurveyedColumns(Source):
    """What is known of the columns of rows, for kernels with gamma="scale"."""

    def __init__(self, means: Floats, variances: Floats) -> None:
        super().__init__(np.zeros((1, len(means))))
        self.means, self.variances = means, variances

    def variance(self) -> float:
        """Return the variance of all entries."""
        return float(self.variances.mean() + self.means.var())

    def take_columns(self, numbers: Any) -> "SurveyedColumns":
        """Return a selection of the columns."""
        return SurveyedColumns(self.means[numbers], self.variances[numbers])


def resolve_kernel(kernel: Kernel, columns: ColumnSums) -> Kernel:
    """Return a kernel with numbers instead of gamma="scale" and "auto", given sums over columns."""
    total = float(columns.rows) or 1.0
    return kernel.resolve(SurveyedColumns(columns.means, columns.deviations / total))


def depends_on_columns(kernel: Kernel) -> bool:
    """Return whether a parameter is a word that stands for a number of the data."""
    values = kernel.get_params().values()
    return any(isinstance(value, str) and value == "scale" for value in values)


def weigh_columns(blocks: Blocks) -> ColumnSums:
    """Return the sums of the columns of rows in blocks, each row counting as often as it weighs.

    Leaves are merged in their tree, so that the bits do not depend on where the rows live.
    """
    found: ColumnSums = blocks.map(_weigh, merge=merge_columns)
    return found


def _weigh(block: Block) -> ColumnSums:
    own = slice(block.begin, block.end)
    weight = np.asarray(block.vectors["weight"][own], dtype=np.float64)
    total, X = float(weight.sum()), block.X[own]
    d = int(X.shape[1])
    if not total:
        return ColumnSums(0, np.zeros(d), np.zeros(d), 0.0, 0.0, 0)
    if sp.issparse(X):
        means, deviations = _weigh_sparse(X, weight, total)
    else:
        # One row after the other is added, so that no bit depends on how they lie in memory.
        means = (X * weight[:, np.newaxis]).sum(axis=0) / total
        deviations = (np.square(X - means) * weight[:, np.newaxis]).sum(axis=0)
    # A weight is a number of repetitions, so that this is a number of rows.
    return ColumnSums(total, means, deviations, 0.0, 0.0, 0)  # type: ignore[arg-type]


def _weigh_sparse(X: Any, weight: Floats, total: float) -> tuple[Floats, Floats]:
    d = int(X.shape[1])
    columns: Ints = X.indices
    each, values = np.repeat(weight, np.diff(X.indptr)), X.data.astype(np.float64)
    means = np.bincount(columns, each * values, d) / total
    away = np.bincount(columns, each * np.square(values - means[columns]), d)
    return means, away + (total - np.bincount(columns, each, d)) * np.square(means)
