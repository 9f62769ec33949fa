"""Facts about labelled data that decide how hard it will be, found before any fit."""

from collections import defaultdict
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
    constant = constant_columns(X)
    if constant:
        yield "constant columns", f"{constant} of {d}: they carry nothing"
    span = scale_span(X)
    yield "column scales", f"largest |x| differs by a factor of {span:.3g} between columns"
    conflicting = conflicting_rows(X, y)
    if conflicting:
        yield (
            "conflicts",
            f"{conflicting} rows equal another row with a different label: "
            "no model gets them all right",
        )


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


def _extremes(X: Any) -> tuple[Any, Any]:
    lowest, highest = X.min(axis=0), X.max(axis=0)
    if is_sparse(X):
        lowest, highest = lowest.toarray(), highest.toarray()
    return np.ravel(lowest), np.ravel(highest)


def constant_columns(X: Any) -> int:
    """Count the columns with a single value."""
    lowest, highest = _extremes(X)
    return int(np.count_nonzero(lowest == highest))


def scale_span(X: Any) -> float:
    """Return the ratio of the largest to the smallest column, by max |x|, all-zero ones aside."""
    lowest, highest = _extremes(X)
    sizes = np.maximum(-lowest, highest)
    sizes = sizes[sizes > 0]
    if not sizes.size:
        return 1.0
    with np.errstate(over="ignore"):  # an infinite span is still the right thing to say
        return float(sizes.max() / sizes.min())


def unevenness(X: Any) -> float:
    """Return the largest |x| over the smallest spread of a column, constant columns aside."""
    lowest, highest = _extremes(X)
    spread = (highest - lowest)[highest > lowest]
    sizes = np.maximum(-lowest, highest)[highest > lowest]
    if not spread.size:
        return 1.0
    with np.errstate(over="ignore"):
        return float(sizes.max() / spread.min())


def conflicting_rows(X: Any, y: Any) -> int:
    """Count the rows that equal another row whose label differs."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    for i, key in enumerate(_row_keys(X)):
        groups[key].append(i)
    return sum(
        len(rows) for rows in groups.values() if len(rows) > 1 and len(np.unique(y[rows])) > 1
    )


def _row_keys(X: Any) -> Iterator[bytes]:
    """Yield bytes that are equal exactly where rows are."""
    if not is_sparse(X):
        for row in X:
            yield (row + 0.0).tobytes()  # -0.0 becomes 0.0
        return
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes() + X.data[start:stop].tobytes()
