"""Kernels whose γ follows from the columns of rows that are not in memory."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import Kernel
from maxmargin.kernels.prepared import Source
from maxmargin.rows.survey import ColumnSums


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
