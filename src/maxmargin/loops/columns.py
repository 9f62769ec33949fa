"""Sums over the rows and columns of a matrix, dense or sparse, that solvers by columns need.

Dense rows are taken from a ``centre``: where the intercept is free that changes nothing but the
rounding, which far from 0 would drown what distinguishes the rows. Sums are float64.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_shifted_axpy, row_shifted_dot


class SparseColumns(NamedTuple):
    """Columns of a compressed sparse matrix: column j owns data[indptr[j]:indptr[j + 1]]."""

    data: Any
    indices: Any
    indptr: Any


@compiled
def scores(X: Any, centre: Any, w: Any, out: Any) -> None:
    """Do out[i] = (xᵢ − centre)·w (sparse rows have no centre)."""
    for i in range(out.shape[0]):
        out[i] = row_shifted_dot(X, i, centre, w)


@compiled
def gradients(X: Any, centre: Any, beta: Any, out: Any) -> None:
    """Do out += Σ βᵢ(xᵢ − centre)."""
    for i in range(beta.shape[0]):
        if beta[i] != 0.0:
            row_shifted_axpy(X, i, centre, beta[i], out)


@compiled
def dense_masses(X: Any, centre: Any, weight: Any, out: Any) -> None:
    """Do out[j] += Σᵢ weightᵢ (xᵢⱼ − centreⱼ)² for dense rows."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            away = X[i, j] - centre[j]
            out[j] += weight[i] * away * away


@compiled
def sparse_masses(X: Any, weight: Any, out: Any) -> None:
    """Do out[j] = Σᵢ weightᵢ xᵢⱼ² for columns."""
    for j in range(out.shape[0]):
        total = 0.0
        for k in range(np.uint64(X.indptr[j]), np.uint64(X.indptr[j + 1])):
            value = np.float64(X.data[k])
            total += weight[np.uint64(X.indices[k])] * value * value
        out[j] = total


@compiled
def add_columns(X: Any, picked: Any, steps: Any, out: Any) -> None:
    """Do out += Σ stepsₖ · (column pickedₖ)."""
    for p in range(picked.shape[0]):
        if steps[p] != 0.0:
            j = picked[p]
            for k in range(np.uint64(X.indptr[j]), np.uint64(X.indptr[j + 1])):
                out[np.uint64(X.indices[k])] += steps[p] * X.data[k]


@compiled
def add_products(X: Any, rows: Any, change: Any, place: Any, gram: Any) -> None:
    """Do gram += Σ changeᵢ xᵢxᵢᵀ over some rows, of the columns that have a place in it."""
    width = 1
    for p in range(rows.shape[0]):
        width = max(width, X.indptr[rows[p] + 1] - X.indptr[rows[p]])
    where = np.empty(width, np.int64)
    values = np.empty(width)
    for p in range(rows.shape[0]):
        i = rows[p]
        found = 0
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            at = place[np.uint64(X.indices[k])]
            if at >= 0:
                where[found] = at
                values[found] = X.data[k]
                found += 1
        for a in range(found):
            step = change[i] * values[a]
            line = gram[where[a]]
            for c in range(found):
                line[np.uint64(where[c])] += step * values[c]


@compiled
def count_entries(X: Any, picked: Any, place: Any, indptr: Any) -> None:
    """Fill indptr for the picked columns, rows without a place left out."""
    indptr[0] = 0
    for p in range(picked.shape[0]):
        count = 0
        for k in range(np.uint64(X.indptr[picked[p]]), np.uint64(X.indptr[picked[p] + 1])):
            count += place[np.uint64(X.indices[k])] >= 0
        indptr[p + 1] = indptr[p] + count


@compiled
def fill_entries(X: Any, picked: Any, place: Any, scale: Any, data: Any, indices: Any) -> None:
    """Copy the entries counted: scaleᵢxᵢⱼ, at the place of row i."""
    at = 0
    for p in range(picked.shape[0]):
        for k in range(np.uint64(X.indptr[picked[p]]), np.uint64(X.indptr[picked[p] + 1])):
            i = np.uint64(X.indices[k])
            if place[i] >= 0:
                data[at] = scale[i] * X.data[k]
                indices[at] = place[i]
                at += 1
