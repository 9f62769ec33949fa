"""What there is to learn from, before any fit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

MANY_CLASSES = 10


def facts(X: Any, y: Any) -> Iterator[tuple[str, str]]:
    """Yield (heading, sentence) pairs about rows X with labels y."""
    n, d = X.shape
    yield "rows × columns", f"{n} × {d}, {_nonzero(X) / (n * d):.2%} nonzero"
    yield "classes", _classes(y)


def is_sparse(X: Any) -> bool:
    """Tell whether X is a scipy sparse array or matrix."""
    return bool(sp.issparse(X))


def _nonzero(X: Any) -> int:
    return int(np.count_nonzero(X.data if is_sparse(X) else X))


def _classes(y: Any) -> str:
    classes, counts = np.unique(y, return_counts=True)
    shown = ", ".join(
        f"{label}: {count}"
        for label, count in list(zip(classes, counts, strict=True))[:MANY_CLASSES]
    )
    more = f", … ({len(classes)} in all)" if len(classes) > MANY_CLASSES else ""
    return shown + more
