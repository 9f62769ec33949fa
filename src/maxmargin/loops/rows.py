"""Rows of a matrix, dense or sparse, behind one set of verbs.

A loop that says ``row_dot(X, i, w)`` is compiled once for ``Dense`` and once for ``Csr``; it never
asks which it has. Values are only read, so ``rows`` hands them over as read-only views: one
compiled signature serves writable, read-only and memory-mapped arrays alike.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import types

from maxmargin.loops.compiled import chosen_by_type
from maxmargin.loops.intrinsics import prefetch
from maxmargin.loops.records import read_only


class Dense(NamedTuple):
    """Rows of a C-contiguous array."""

    values: Any


class Csr(NamedTuple):
    """Rows of a compressed sparse matrix: row i owns data[indptr[i]:indptr[i + 1]]."""

    data: Any
    indices: Any
    indptr: Any


def rows(X: Any) -> Dense | Csr:
    """Wrap a validated float matrix without copying it (dense input must be C-contiguous)."""
    if sp.issparse(X):
        indptr = X.indptr.astype(np.int64, copy=False)
        return Csr(read_only(X.data), read_only(X.indices), read_only(indptr))
    return Dense(read_only(X))


# Each verb has a body for either kind of rows. Sparse bodies index by unsigned numbers: numba asks
# of each signed one whether it is negative, which costs a third of the time or more.


def _is_csr(X: Any) -> bool:
    return isinstance(X, types.NamedTuple) and X.instance_class is Csr


@chosen_by_type
def row_dot(X: Any, i: Any, w: Any) -> Any:
    """Return xᵢ·w."""

    def csr(X: Any, i: Any, w: Any) -> Any:
        total = 0.0
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            total += X.data[k] * w[np.uint64(X.indices[k])]
        return total

    def dense(X: Any, i: Any, w: Any) -> Any:
        total = 0.0
        for j in range(X.values.shape[1]):
            total += X.values[i, j] * w[j]
        return total

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_squared_norm(X: Any, i: Any) -> Any:
    """Return ‖xᵢ‖²."""

    def csr(X: Any, i: Any) -> Any:
        total = 0.0
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            total += np.float64(X.data[k]) * X.data[k]
        return total

    def dense(X: Any, i: Any) -> Any:
        total = 0.0
        for j in range(X.values.shape[1]):
            total += np.float64(X.values[i, j]) * X.values[i, j]
        return total

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_axpy(X: Any, i: Any, scale: Any, w: Any) -> Any:
    """Do w += scale · xᵢ."""

    def csr(X: Any, i: Any, scale: Any, w: Any) -> Any:
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            w[np.uint64(X.indices[k])] += scale * X.data[k]

    def dense(X: Any, i: Any, scale: Any, w: Any) -> Any:
        for j in range(X.values.shape[1]):
            w[j] += scale * X.values[i, j]

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_dots(X: Any, i: Any, columns: Any, out: Any) -> Any:
    """Do out += columnsᵀxᵢ, for columns of shape (d, K)."""

    def csr(X: Any, i: Any, columns: Any, out: Any) -> Any:
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            value = X.data[k]
            column = np.uint64(X.indices[k])
            for c in range(out.shape[0]):
                out[c] += value * columns[column, c]

    def dense(X: Any, i: Any, columns: Any, out: Any) -> Any:
        for j in range(X.values.shape[1]):
            value = X.values[i, j]
            for c in range(out.shape[0]):
                out[c] += value * columns[j, c]

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_axpy_column(X: Any, i: Any, scale: Any, columns: Any, k: Any) -> Any:
    """Do columns[:, k] += scale · xᵢ."""

    def csr(X: Any, i: Any, scale: Any, columns: Any, k: Any) -> Any:
        for p in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            columns[np.uint64(X.indices[p]), k] += scale * X.data[p]

    def dense(X: Any, i: Any, scale: Any, columns: Any, k: Any) -> Any:
        for j in range(X.values.shape[1]):
            columns[j, k] += scale * X.values[i, j]

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_collect(X: Any, i: Any, columns: Any, k: Any, found: Any, indices: Any, values: Any) -> Any:
    """Move what columns[:, k] holds at the columns of xᵢ to the end of two lists; return their end.

    The entry (j, k) is listed by its place j·K + k in the flat array.
    """

    def csr(X: Any, i: Any, columns: Any, k: Any, found: Any, indices: Any, values: Any) -> Any:
        for p in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            j = np.uint64(X.indices[p])
            if columns[j, k] != 0.0:
                indices[found] = j * np.uint64(columns.shape[1]) + np.uint64(k)
                values[found] = columns[j, k]
                columns[j, k] = 0.0
                found += 1
        return found

    def dense(X: Any, i: Any, columns: Any, k: Any, found: Any, indices: Any, values: Any) -> Any:
        for j in range(X.values.shape[1]):
            if columns[j, k] != 0.0:
                indices[found] = j * columns.shape[1] + k
                values[found] = columns[j, k]
                columns[j, k] = 0.0
                found += 1
        return found

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_shifted_dot(X: Any, i: Any, centre: Any, w: Any) -> Any:
    """Return (xᵢ − centre)·w of a dense row, xᵢ·w of a sparse one."""

    def csr(X: Any, i: Any, centre: Any, w: Any) -> Any:
        total = 0.0  # (calling row_dot here is several times slower: it would not be inlined)
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            total += X.data[k] * w[np.uint64(X.indices[k])]
        return total

    def dense(X: Any, i: Any, centre: Any, w: Any) -> Any:
        total = 0.0
        for j in range(X.values.shape[1]):
            total += (X.values[i, j] - centre[j]) * w[j]
        return total

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_shifted_axpy(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
    """Do w += scale · (xᵢ − centre) for a dense row, w += scale · xᵢ for a sparse one."""

    def csr(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            w[np.uint64(X.indices[k])] += scale * X.data[k]

    def dense(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
        for j in range(X.values.shape[1]):
            w[j] += scale * (X.values[i, j] - centre[j])

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_shifted_axpy_square(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
    """Do w += scale · (xᵢ − centre)² for a dense row, w += scale · xᵢ² for a sparse one."""

    def csr(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            w[np.uint64(X.indices[k])] += scale * X.data[k] * X.data[k]

    def dense(X: Any, i: Any, centre: Any, scale: Any, w: Any) -> Any:
        for j in range(X.values.shape[1]):
            away = X.values[i, j] - centre[j]
            w[j] += scale * away * away

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_shifted_dot_size(X: Any, i: Any, centre: Any, w: Any) -> Any:
    """Return (xᵢ − centre)·w, and the same of absolute values; a sparse row has no centre."""

    def csr(X: Any, i: Any, centre: Any, w: Any) -> Any:
        total, size = 0.0, 0.0
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            product = X.data[k] * w[np.uint64(X.indices[k])]
            total += product
            size += abs(product)
        return total, size

    def dense(X: Any, i: Any, centre: Any, w: Any) -> Any:
        total, size = 0.0, 0.0
        for j in range(X.values.shape[1]):
            product = (X.values[i, j] - centre[j]) * w[j]
            total += product
            size += abs(product)
        return total, size

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_shifted_axpy_size(X: Any, i: Any, centre: Any, scale: Any, w: Any, size: Any) -> Any:
    """Do w += scale · (xᵢ − centre), and the same of absolute values for ``size``."""

    def csr(X: Any, i: Any, centre: Any, scale: Any, w: Any, size: Any) -> Any:
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            j, product = np.uint64(X.indices[k]), scale * X.data[k]
            w[j] += product
            size[j] += abs(product)

    def dense(X: Any, i: Any, centre: Any, scale: Any, w: Any, size: Any) -> Any:
        for j in range(X.values.shape[1]):
            product = scale * (X.values[i, j] - centre[j])
            w[j] += product
            size[j] += abs(product)

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_copy(X: Any, i: Any, centre: Any, scale: Any, out: Any) -> Any:
    """Do out[:d] = scale · (xᵢ − centre), for dense and sparse rows alike."""

    def csr(X: Any, i: Any, centre: Any, scale: Any, out: Any) -> Any:
        for j in range(centre.shape[0]):
            out[j] = -scale * centre[j]
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            out[np.uint64(X.indices[k])] += scale * X.data[k]

    def dense(X: Any, i: Any, centre: Any, scale: Any, out: Any) -> Any:
        for j in range(X.values.shape[1]):
            out[j] = scale * (X.values[i, j] - centre[j])

    return csr if _is_csr(X) else dense


@chosen_by_type
def row_outer(X: Any, i: Any, scale: Any, out: Any) -> Any:
    """Add scale · xᵢxᵢᵀ to the upper triangle of out[:d, :d], and scale · xᵢ to out[:d, d]."""

    def csr(X: Any, i: Any, scale: Any, out: Any) -> Any:
        last = out.shape[0] - 1
        end = np.uint64(X.indptr[i + 1])
        for k in range(np.uint64(X.indptr[i]), end):
            value = scale * X.data[k]
            j = np.uint64(X.indices[k])
            for m in range(k, end):
                out[j, np.uint64(X.indices[m])] += value * X.data[m]
            out[j, last] += value

    def dense(X: Any, i: Any, scale: Any, out: Any) -> Any:
        d = X.values.shape[1]
        for j in range(d):
            value = scale * X.values[i, j]
            for m in range(j, d):
                out[j, m] += value * X.values[i, m]
            out[j, d] += value

    return csr if _is_csr(X) else dense


# Lines of a row asked for: the hardware fetches what follows by itself once it sees a pattern.
_LINES = 8


@chosen_by_type
def row_prefetch(X: Any, i: Any) -> Any:
    """Ask for the first cache lines of row i, to be there when it is visited."""

    def csr(X: Any, i: Any) -> Any:
        start = X.indptr[i]
        for line in range(_LINES):
            prefetch(X.data, start + 8 * line)
        for line in range(_LINES // 2):
            prefetch(X.indices, start + 16 * line)

    def dense(X: Any, i: Any) -> Any:
        start = i * X.values.shape[1]
        for line in range(_LINES):
            prefetch(X.values, start + 8 * line)

    return csr if _is_csr(X) else dense
