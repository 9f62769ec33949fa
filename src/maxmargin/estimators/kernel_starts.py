"""Warm starts of kernel machines: the duals of the rows that were there before."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.estimators.kernel_models import Training, matches

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Last(NamedTuple):
    """What the last fit leaves to a warm start."""

    vectors: Any
    labels: Ints
    support: Ints
    duals: Floats  # by (side, support vector)
    n_rows: int
    classes: list[Any]
    planes: tuple[Floats, Floats] | None  # of the linear kernel


def known_duals(data: Training, labels: Ints, last: Last) -> Floats | None:
    """Return the duals of the last fit by (side, row), 0 for new rows; None if none is known.

    Rows are the same if their numbers and labels are; if none is, and there are as many rows as
    before, they go by position. (Kernel values and objects always do.)
    """
    old, new = _same_rows(data, labels, last)
    if not len(old) and last.n_rows == data.n_rows:
        place = np.full(data.n_rows, -1)
        place[data.kept] = np.arange(len(data))
        old = np.flatnonzero(place[last.support] >= 0)
        new = place[last.support[old]]
    if not len(old):
        return None
    duals = np.zeros((len(last.duals), len(data)))
    duals[:, new] = last.duals[:, old]
    return duals


def _same_rows(data: Training, labels: Ints, last: Last) -> tuple[Ints, Ints]:
    X, vectors = data.X, last.vectors
    comparable = (
        not (data.kernel.takes_gram or data.kernel.takes_objects)
        and sp.issparse(vectors) == sp.issparse(X)
        and vectors.dtype == X.dtype
    )
    if not comparable:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return matches(vectors, last.labels, X, labels)
