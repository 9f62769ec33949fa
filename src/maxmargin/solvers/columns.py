"""The matrix of a linear machine as solvers by columns see it, dense or sparse.

A penalized intercept is one more column, of ones; a free one lets dense rows be taken from their
mean. Dense rows are never copied for that, sparse ones are kept by rows and by columns.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import Intercept, Problem

_BLOCK = 1 << 20  # numbers copied at a time


class Design:
    """A matrix X (its rows taken from ``centre``) and the sums a solver by columns asks for."""

    def __init__(self, X: Any, centre: Floats) -> None:
        self.centre = centre
        self.shape: tuple[int, int] = X.shape
        self._rows = loops.rows.rows(X)

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""
        out = np.empty(self.shape[0])
        loops.columns.scores(self._rows, self.centre, w, out)
        return out

    def gradients(self, beta: Floats) -> Floats:
        """Return Xᵀβ."""
        out = np.zeros(self.shape[1])
        loops.columns.gradients(self._rows, self.centre, beta, out)
        return out

    @abstractmethod
    def change(self, picked: Ints, steps: Floats) -> Floats:
        """Return Xw for w = steps in the picked columns and 0 elsewhere."""

    @abstractmethod
    def masses(self, weight: Floats) -> Floats:
        """Return Σᵢ weightᵢ xᵢⱼ² for each column."""

    @abstractmethod
    def entries(self, width: int) -> float:
        """Return about how many entries of a row are in so many columns."""

    @abstractmethod
    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        """Add Σ changeᵢ xᵢxᵢᵀ over some rows, in the picked columns, to gram."""

    @abstractmethod
    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        """Return the picked columns, of some rows (renumbered) times their scale."""


class _Dense(Design):
    def change(self, picked: Ints, steps: Floats) -> Floats:
        w = np.zeros(self.shape[1])
        w[picked] = steps
        return self.scores(w)

    def masses(self, weight: Floats) -> Floats:
        out = np.zeros(self.shape[1])
        loops.columns.dense_masses(self._rows.values, self.centre, weight, out)
        return out

    def entries(self, width: int) -> float:
        return float(width)

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        step = max(1, _BLOCK // self.shape[1])
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            block = self._block(some, picked)
            gram += block.T @ (block * change[some, np.newaxis])

    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        A = sp.csc_array(self._block(rows, picked) * scale[rows, np.newaxis])
        return _columns(A, np.float64)

    def _block(self, rows: Ints, picked: Ints) -> Floats:
        block = self._rows.values[rows]
        if len(picked) < self.shape[1]:
            block = block[:, picked]
        return np.asarray(block - self.centre[picked])


class _Sparse(Design):
    def __init__(self, X: Any, centre: Floats) -> None:
        super().__init__(X, centre)
        self._columns = _columns(X.tocsc(), X.dtype)
        self._entries_per_row = X.nnz / max(1, X.shape[0])

    def change(self, picked: Ints, steps: Floats) -> Floats:
        out = np.zeros(self.shape[0])
        loops.columns.add_columns(self._columns, picked, steps, out)
        return out

    def masses(self, weight: Floats) -> Floats:
        out = np.empty(self.shape[1])
        loops.columns.sparse_masses(self._columns, weight, out)
        return out

    def entries(self, width: int) -> float:
        return float(min(width, self._entries_per_row))

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        place = _places(picked, self.shape[1])
        loops.columns.add_products(self._rows, rows, change, place, gram)

    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        place = _places(rows, self.shape[0])
        indptr = np.empty(len(picked) + 1, np.int64)
        loops.columns.count_entries(self._columns, picked, place, indptr)
        data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], np.int32)
        loops.columns.fill_entries(self._columns, picked, place, scale, data, indices)
        return loops.columns.SparseColumns(data, indices, indptr)


def design_of(problem: Problem) -> Design:
    """Return the matrix of a problem, with a column of ones if the intercept is penalized."""
    X = problem.X
    penalized = problem.intercept is Intercept.PENALIZED
    if sp.issparse(X):
        if penalized:
            X = _with_ones(X)
        return _Sparse(X, np.zeros(X.shape[1]))
    if penalized:
        X = np.hstack([X, np.ones((X.shape[0], 1), X.dtype)])
    return _Dense(X, _mean(X) if problem.intercept is Intercept.FREE else np.zeros(X.shape[1]))


def _with_ones(X: Any) -> Any:
    """Return a sparse matrix with one more column, of ones."""
    n_rows, width = X.shape
    data = np.insert(X.data, X.indptr[1:], 1.0)
    indices = np.insert(X.indices, X.indptr[1:], width)
    indptr = X.indptr + np.arange(n_rows + 1, dtype=X.indptr.dtype)
    return sp.csr_array((data, indices, indptr), shape=(n_rows, width + 1))


def _mean(X: Any) -> Floats:
    """Return the mean of each column, and of a constant one exactly its value."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64))
    first = np.asarray(X[0], dtype=np.float64)
    return np.where(X.max(axis=0) == X.min(axis=0), first, mean)


def _columns(X: Any, dtype: Any) -> Any:
    return loops.columns.SparseColumns(
        X.data.astype(dtype, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
    )


def _places(members: Ints, size: int) -> npt.NDArray[np.int32]:
    """Return for each of so many numbers its place among the members, −1 if it is none."""
    place = np.full(size, -1, np.int32)
    place[members] = np.arange(len(members))
    return place
