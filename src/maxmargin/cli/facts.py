"""What there is to learn from, before any fit."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

MANY_CLASSES = 10
MOSTLY = 0.9  # of the cells: that some zeros occur is then not worth saying


def facts(X: Any, y: Any) -> Iterator[tuple[str, str]]:
    """Yield (heading, sentence) pairs about rows X with labels y."""
    yield "rows × columns", " × ".join(map(str, X.shape)) + _contents(X)
    yield "classes", _classes(y)


def is_sparse(X: Any) -> bool:
    """Tell whether X is a scipy sparse array or matrix."""
    return bool(sp.issparse(X))


def _contents(X: Any) -> str:
    """Say how many columns have words and how many cells are missing; else, if many are zero."""
    cells = X.data if is_sparse(X) else X
    if cells.dtype == object:
        words = sum(any(isinstance(cell, str) for cell in column) for column in cells.T)
        missing = np.array([[cell is None or cell != cell for cell in row] for row in cells])
        said = f", {words} of words"
    else:
        missing = np.isnan(cells)
        nonzero = np.count_nonzero(cells) / math.prod(X.shape)
        said = f", {nonzero:.2%} nonzero" if nonzero < MOSTLY else ""
    return f"{said}, {missing.mean():.2%} missing" if missing.any() else said


def _classes(y: Any) -> str:
    classes, counts = np.unique(y, return_counts=True)
    shown = ", ".join(
        f"{label}: {count}"
        for label, count in list(zip(classes, counts, strict=True))[:MANY_CLASSES]
    )
    more = f", … ({len(classes)} in all)" if len(classes) > MANY_CLASSES else ""
    return shown + more
