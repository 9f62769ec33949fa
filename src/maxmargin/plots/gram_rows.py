"""Which rows of a Gram matrix are drawn, and in which order."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.panels import check_label_per_row
from maxmargin.plots.style import thinned

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


def sampled(n: int, y: Any, most: int) -> tuple[Rows, npt.NDArray[Any] | None]:
    """Return the numbers of the rows to draw, with their labels; of every class there is one."""
    whole = isinstance(most, int | np.integer) and not isinstance(most, bool)
    if not whole or most < 2:
        raise ValueError(f"most={most!r} is not valid: it must be an integer >= 2.")
    if y is None:
        return thinned(n, most=int(most)), None
    labels, _ = check_label_per_row(y, n)
    first = np.unique(labels, return_index=True)[1]
    rows = thinned(n, keep=first, most=int(most))
    return rows, labels[rows]


def in_order(K: Floats, labels: npt.NDArray[Any] | None) -> Rows:
    """Return the places of rows, class after class, each by its first principal component."""
    if labels is None:
        return by_component(K)
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return np.concatenate([rows[by_component(K[np.ix_(rows, rows)])] for rows in members])


def by_component(K: Floats) -> Rows:
    """Return the order of rows along the first eigenvector of HKH, ties as they come."""
    means = (K + K.T).mean(axis=0) / 2
    centred = (K + K.T) / 2 - means - means[:, None] + means.mean()
    first = np.linalg.eigh(centred)[1][:, -1]
    # An eigenvector has no sign of its own.
    sign = np.sign(first[np.argmax(np.abs(first))])
    return np.argsort(sign * first, kind="stable")
