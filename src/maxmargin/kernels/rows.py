"""Rows of numbers, dense or sparse, that are sliced without copying; sums that fill tiles.

Slices of dense rows are views; slices of sparse rows share one matrix, stored by rows for the left
side of a tile and, on demand, by columns for the right side.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin import loops

FloatArray = npt.NDArray[np.floating[Any]]
Index = slice | npt.NDArray[np.intp]


class DenseRows:
    """Rows of a C-contiguous array, read only; ``fill_products`` says what ``steady`` means."""

    def __init__(self, values: FloatArray, steady: bool = False) -> None:
        self.values, self.steady = values.view(), steady
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, index: Index) -> "DenseRows":
        return DenseRows(self.values[index], self.steady)

    def squared_norms(self) -> FloatArray:
        """Return ‖xᵢ‖², summed in float64."""
        return _norm_type(self, np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64))

    def absolute_sums(self) -> FloatArray:
        """Return ‖xᵢ‖₁, summed in float64."""
        return _norm_type(self, np.abs(self.values).sum(axis=1, dtype=np.float64))

    def max_abs(self) -> FloatArray:
        """Return the largest |xᵢₖ| of each row."""
        maxima: FloatArray = np.abs(self.values).max(axis=1)
        return maxima

    @property
    def terms(self) -> int:
        """The largest number of products in the dot product of two rows."""
        return int(self.values.shape[1])

    def scale(self, factors: FloatArray) -> "DenseRows":
        """Return each row multiplied by its factor."""
        return DenseRows(self.values * factors[:, None], self.steady)

    def as_float64(self) -> "DenseRows":
        """Return the same rows in float64."""
        return DenseRows(self.values.astype(np.float64, copy=False), self.steady)

    def as_sparse(self) -> "SparseRows":
        """Return the same rows in sparse form, to be compared with sparse rows."""
        return SparseRows(SharedSparse(sp.csr_array(self.values)), 0, len(self))


class SharedSparse:
    """A CSR matrix that slices share; its column form is made when it is first needed."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @cached_property
    def by_rows(self) -> Any:
        """The matrix as the triple of its rows."""
        return _triple(self.matrix)

    @cached_property
    def by_columns(self) -> Any:
        """The matrix as the triple of its columns."""
        return _triple(self.matrix.tocsc())


class SparseRows:
    """A range of the rows of a shared sparse matrix."""

    def __init__(self, shared: SharedSparse, start: int, stop: int) -> None:
        self.shared, self.start, self.stop = shared, start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, index: Index) -> "SparseRows":
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                stop = max(start, stop)
                return SparseRows(self.shared, self.start + start, self.start + stop)
            index = np.arange(start, stop, step)
        taken = self.values[index]
        return SparseRows(SharedSparse(taken), 0, taken.shape[0])

    @property
    def values(self) -> Any:
        """The rows as a CSR matrix."""
        if len(self) == self.shared.matrix.shape[0]:
            return self.shared.matrix
        return self.shared.matrix[self.start : self.stop]

    def by_rows(self) -> Any:
        """Return the rows as a triple (data, indices, indptr)."""
        whole = self.shared.by_rows
        return whole._replace(indptr=whole.indptr[self.start : self.stop + 1])

    def squared_norms(self) -> FloatArray:
        """Return ‖xᵢ‖², summed in float64."""
        return _norm_type(self, self._row_sums(np.square))

    def absolute_sums(self) -> FloatArray:
        """Return ‖xᵢ‖₁, summed in float64."""
        return _norm_type(self, self._row_sums(np.abs))

    def max_abs(self) -> FloatArray:
        """Return the largest |xᵢₖ| of each row."""
        return np.asarray(abs(self.values).max(axis=1).toarray()).ravel()

    @property
    def terms(self) -> int:
        """The largest number of products in the dot product of two rows."""
        return int(np.diff(self.values.indptr).max(initial=0))

    def scale(self, factors: FloatArray) -> "SparseRows":
        """Return each row multiplied by its factor."""
        matrix = self.values.copy()
        matrix.data *= np.repeat(factors, np.diff(matrix.indptr))
        return SparseRows(SharedSparse(matrix), 0, len(self))

    def as_float64(self) -> "SparseRows":
        """Return the same rows in float64."""
        if self.values.dtype == np.float64:
            return self
        return SparseRows(SharedSparse(self.values.astype(np.float64)), 0, len(self))

    def as_sparse(self) -> "SparseRows":
        """Return these rows."""
        return self

    def _row_sums(self, function: Callable[[Any], Any]) -> Any:
        matrix = self.values
        rows = np.repeat(np.arange(len(self)), np.diff(matrix.indptr))
        return np.bincount(rows, function(matrix.data.astype(np.float64)), minlength=len(self))


Rows = DenseRows | SparseRows


def fill_products(a: Rows, b: Rows, out: FloatArray) -> None:
    """Fill a tile with xᵢ·zⱼ.

    BLAS computes them, and the last bits of its sums depend on the position in the tile. For steady
    rows a loop of our own does it, half as fast, which always adds in the same order.
    """
    if isinstance(a, DenseRows) and isinstance(b, DenseRows):
        if a.steady:
            loops.kernel_tiles.products(a.values, np.ascontiguousarray(b.values.T), out)
        else:
            np.matmul(a.values, b.values.T, out=out)
    else:
        fill_sparse_sums(loops.kernel_tiles.Products(), a, b, out)


def fill_dense_sums(measure: Any, a: DenseRows, b: DenseRows, out: FloatArray) -> None:
    """Fill a tile with Σₖ term(xᵢₖ, zⱼₖ)."""
    columns = DenseRows(np.ascontiguousarray(b.values.T))
    loops.kernel_tiles.dense_sums(measure, a.values, columns.values, out)


def as_dense_float64(rows: Rows) -> DenseRows:
    """Return the rows in float64, sparse ones with their zeros written out."""
    if isinstance(rows, DenseRows):
        return rows.as_float64()
    return DenseRows(rows.values.toarray().astype(np.float64, copy=False))


def fill_sparse_sums(measure: Any, a: Rows, b: Rows, out: FloatArray) -> None:
    """Fill a tile with sums over the columns that both rows store; at least one side is sparse."""
    left, right = a.as_sparse(), b.as_sparse()
    loops.kernel_tiles.sparse_sums(
        measure, left.by_rows(), right.shared.by_columns, right.start, out
    )


def numeric_rows(X: Any) -> Rows:
    """Validate a matrix of finite numbers: float32 stays, everything else becomes float64."""
    if isinstance(X, DenseRows | SparseRows):
        return X
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if not sp.issparse(X):
        return DenseRows(X)
    X.check_format(full_check=True)  # the loops trust the indices
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return SparseRows(SharedSparse(X), 0, X.shape[0])


def _triple(matrix: Any) -> Any:
    # One index type wherever it fits, so that the loops are compiled once.
    index_type = np.int32 if max(matrix.shape) <= np.iinfo(np.int32).max else np.int64
    if matrix.indices.dtype != index_type:
        matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        matrix.indices = matrix.indices.astype(index_type)
    return loops.rows.rows(matrix)


def _norm_type(rows: Rows, norms: Any) -> FloatArray:
    typed: FloatArray = norms.astype(rows.values.dtype)
    return typed
