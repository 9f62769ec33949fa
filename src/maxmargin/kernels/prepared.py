"""Rows as kernels take them: validated numbers or objects, prepared once, then sliced by rows.

Dense rows are arrays, whose slices are views. Slices of sparse rows share one matrix, stored by
rows for the left side of a tile and, on demand, by columns for the right side.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin import loops
from maxmargin.loops.records import read_only

_LARGEST = 1e15  # number that rows may have in float32

FloatArray = npt.NDArray[np.floating[Any]]
Index = slice | npt.NDArray[np.intp]


# ---------------------------------------------------------------- rows of numbers


class _SharedMatrix:
    """A CSR matrix that slices share, and its rows and columns as compiled loops take them."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @cached_property
    def by_rows(self) -> Any:
        return _triple(self.matrix)

    @cached_property
    def by_columns(self) -> Any:
        return _triple(self.matrix.tocsc())


def _triple(matrix: Any) -> Any:
    # One index type wherever it fits, so that the loops are compiled once.
    index_type = np.int32 if max(matrix.shape) <= np.iinfo(np.int32).max else np.int64
    if matrix.indices.dtype != index_type:
        matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        matrix.indices = matrix.indices.astype(index_type)
    return loops.rows.rows(matrix)


class SparseRows:
    """A range of the rows of a sparse matrix."""

    def __init__(self, shared: _SharedMatrix, start: int, stop: int) -> None:
        self.shared, self.start, self.stop = shared, start, stop
        self.shape, self.dtype = (stop - start, shared.matrix.shape[1]), shared.matrix.dtype

    @classmethod
    def of(cls, matrix: Any) -> "SparseRows":
        """Return all rows of a CSR matrix."""
        return cls(_SharedMatrix(matrix), 0, matrix.shape[0])

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, index: Index) -> "SparseRows":
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                stop = max(start, stop)
                return SparseRows(self.shared, self.start + start, self.start + stop)
            index = np.arange(start, stop, step)
        return SparseRows.of(self.matrix[index])

    @property
    def matrix(self) -> Any:
        """The rows as a CSR matrix."""
        whole = self.shared.matrix
        return whole if len(self) == whole.shape[0] else whole[self.start : self.stop]

    def astype(self, dtype: Any, copy: bool = False) -> "SparseRows":
        """Return the same rows in another number type."""
        return self if dtype == self.dtype else SparseRows.of(self.matrix.astype(dtype))

    def sum_each(self, function: Callable[[Any], Any]) -> Any:
        """Return Σₖ function(xᵢₖ) over the stored numbers of each row, in float64."""
        matrix = self.matrix
        rows = np.repeat(np.arange(len(self)), np.diff(matrix.indptr))
        return np.bincount(rows, function(matrix.data.astype(np.float64)), minlength=len(self))


Rows = FloatArray | SparseRows


def _is_numbers(part: Any) -> bool:
    return isinstance(part, SparseRows) or (isinstance(part, np.ndarray) and part.dtype.kind == "f")


def as_matrix(rows: Rows) -> Any:
    """Return rows as an array or as a CSR matrix."""
    return rows.matrix if isinstance(rows, SparseRows) else rows


def as_dense(rows: Rows) -> FloatArray:
    """Return rows as an array, sparse ones with their zeros written out."""
    return np.asarray(rows.matrix.toarray() if isinstance(rows, SparseRows) else rows)


def stored_numbers(rows: Rows) -> FloatArray:
    """Return all numbers, of sparse rows only those that are stored."""
    return np.asarray(rows.matrix.data if isinstance(rows, SparseRows) else rows)


def squared_norms(rows: Rows, dtype: Any = None) -> FloatArray:
    """Return ‖xᵢ‖², summed in float64, in the type of the rows or in another."""
    if isinstance(rows, SparseRows):
        norms = rows.sum_each(np.square)
    else:
        norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.asarray(norms, dtype or rows.dtype)


def absolute_sums(rows: Rows, dtype: Any = None) -> FloatArray:
    """Return ‖xᵢ‖₁, summed in float64, in the type of the rows or in another."""
    if isinstance(rows, SparseRows):
        sums = rows.sum_each(np.abs)
    else:
        sums = np.abs(rows).sum(axis=1, dtype=np.float64)
    return np.asarray(sums, dtype or rows.dtype)


def count_terms(rows: Rows) -> int:
    """Return the largest number of products in the dot product of two rows."""
    if isinstance(rows, SparseRows):
        return int(np.diff(rows.matrix.indptr).max(initial=0))
    return int(rows.shape[1])


def fill_products(a: "PreparedRows", b: "PreparedRows", out: FloatArray) -> None:
    """Fill a tile with xᵢ·zⱼ of the rows that are the first parts, in the type of the tile."""
    x, z = a.parts[0], b.parts[0]
    if isinstance(x, SparseRows) or isinstance(z, SparseRows):
        x, z = x.astype(out.dtype, copy=False), z.astype(out.dtype, copy=False)
        fill_sums(loops.kernel_tiles.Products(), x, z, out)
    else:
        zeros = np.zeros(max(len(a), len(b)), out.dtype)
        fill_dense(a, zeros, b, zeros, 1.0, out, exponential=False)


BUFFER_COLUMNS = 256  # of products that are finished in the nearest cache


def fill_dense(a: "PreparedRows", own: FloatArray, b: "PreparedRows", numbers: FloatArray,
               factor: float, out: FloatArray, *, exponential: bool) -> None:  # fmt: skip
    """Fill a tile with factor·xᵢ·zⱼ − ownᵢ − numbersⱼ of dense rows, or 2 to the power of that.

    A value depends on nothing but its two rows, to the last bit, and so not on the tile.
    """
    if out.size:
        rows, own = a.parts[0].astype(out.dtype, copy=False), own.astype(out.dtype, copy=False)
        loops.kernel_tiles.products(
            read_only(rows), read_only(own), b.strips(out.dtype, numbers), out.dtype.type(factor),
            exponential, np.empty((loops.intrinsics.ROWS, BUFFER_COLUMNS), out.dtype), out,
        )  # fmt: skip


def fill_sums(measure: Any, x: Rows, z: Rows, out: FloatArray) -> None:
    """Fill a tile with Σₖ term(xᵢₖ, zⱼₖ); of sparse rows, over the columns that both store."""
    if not isinstance(x, SparseRows) and not isinstance(z, SparseRows):
        loops.kernel_tiles.dense_sums(measure, read_only(x), read_only(z.T), out)
        return
    left = x if isinstance(x, SparseRows) else SparseRows.of(sp.csr_array(x))
    right = z if isinstance(z, SparseRows) else SparseRows.of(sp.csr_array(z))
    whole = left.shared.by_rows
    by_rows = whole._replace(indptr=whole.indptr[left.start : left.stop + 1])
    loops.kernel_tiles.sparse_sums(measure, by_rows, right.shared.by_columns, right.start, out)


# ---------------------------------------------------------------- what was given


def is_numeric(X: Any) -> bool:
    """Return whether X is a matrix of numbers, or is meant to be one."""
    if sp.issparse(X) or hasattr(type(X), "columns") or isinstance(X, SparseRows):
        return True
    try:
        values = np.asarray(X)
    except ValueError:  # ragged
        return False
    return values.ndim >= 2 or values.dtype.kind in "biuf"


class Source:
    """The rows that ``prepare`` was given. They become numbers only if a kernel needs numbers."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.origin: FloatArray | None = None  # distances are measured from it
        self.weight: Any = None  # of rows, in the variance behind gamma="scale"

    @cached_property
    def rows(self) -> Rows:
        """The rows as finite numbers: float32 stays, everything else becomes float64."""
        X = check_array(self.given, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        if not sp.issparse(X):
            return np.asarray(read_only(X))
        X.check_format(full_check=True)  # the loops trust the indices
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return SparseRows.of(X)

    @cached_property
    def centred(self) -> Rows:
        """The rows minus the origin: ‖x − x′‖² keeps the digits that a large mean would take."""
        if self.origin is None:
            return self.rows
        return np.asarray(as_dense(self.rows) - self.origin)

    @property
    def is_matrix(self) -> bool:
        """Whether the rows come as an array, a sparse matrix or a frame."""
        return hasattr(self.given, "shape")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and, unless they are objects, the number of columns."""
        if "rows" in vars(self) or not (self.is_matrix or hasattr(self.given, "__len__")):
            return self.rows.shape
        return tuple(self.given.shape) if self.is_matrix else (len(self.given),)

    @property
    def width(self) -> int | None:
        """The number of columns, if there are columns."""
        return self.shape[1] if len(self.shape) == 2 else None

    @property
    def dtype(self) -> Any:
        """The type to compute in: float32 for float32 rows, float64 for everything else."""
        dtype = getattr(self.given, "dtype", None)
        if dtype is None and self.is_matrix:
            dtype = self.rows.dtype
        return np.dtype(np.float32 if dtype == np.float32 else np.float64)

    def mean(self) -> FloatArray | None:
        """Return the mean of dense rows, and None for sparse rows, which are never shifted."""
        if isinstance(self.rows, SparseRows):
            return None
        return np.asarray(self.rows.mean(axis=0, dtype=np.float64), self.rows.dtype)

    def variance(self) -> float:
        """Return the variance of all entries, row i counting weight[i] times."""
        rows, (n, width) = self.rows, self.shape
        if self.weight is None and not isinstance(rows, SparseRows):
            return float(rows.var(dtype=np.float64))
        weight = np.ones(n) if self.weight is None else np.asarray(self.weight, np.float64)
        counts = np.diff(rows.matrix.indptr) if isinstance(rows, SparseRows) else width
        stored, each = stored_numbers(rows).astype(np.float64).ravel(), np.repeat(weight, counts)
        size = weight.sum() * width
        mean = float(each @ stored / size)
        # The zeros apart from the stored values, both centred: no cancellation.
        return float((each @ (stored - mean) ** 2 + (size - each.sum()) * mean**2) / size)

    def with_rows(self, rows: Rows) -> "Source":
        """Return a source of other rows, which are valid numbers."""
        other = Source(rows)
        other.rows, other.origin, other.weight = rows, self.origin, self.weight
        return other

    def cast(self, dtype: Any) -> "Source":
        """Return the same rows in another float type."""
        return self if self.dtype == dtype else self.with_rows(self.rows.astype(dtype))

    def take_columns(self, numbers: Any) -> "Source":
        """Return a selection of the columns."""
        columns = self.with_rows(Source(as_matrix(self.rows)[:, numbers]).rows)
        columns.origin = None if self.origin is None else self.origin[numbers]
        return columns


# ---------------------------------------------------------------- what kernels make of it


class PreparedRows:
    """Rows as one kernel needs them; made by ``kernel.prepare(X)``, used by ``kernel.block``.

    ``len(prepared)`` is the number of rows. ``prepared[index]``, for a slice, an array of row
    numbers or a boolean mask, is the same for these rows; slices share memory.

    Parameters
    ----------
    source : Source
        The rows as they were given to ``kernel.prepare``.
    *parts : array or PreparedRows
        What the kernel needs of them. Each part has one entry per row: an array of norms, rows,
        objects, other PreparedRows.
    """

    wide = False  # whether a tile may be as wide as there are rows: it keeps to the caches itself
    _strips: FloatArray | None = None

    def __init__(self, source: Source, *parts: Any) -> None:
        shape = source.shape
        self.size, self.width = shape[0], shape[1] if len(shape) == 2 else None
        self.dtype, self.origin = source.dtype, source.origin
        self.parts: tuple[Any, ...] = parts

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> "PreparedRows":
        if not isinstance(index, slice):
            index = np.asarray(index)
            if index.ndim != 1 or index.dtype.kind not in "iub":
                raise TypeError(
                    f"rows are taken by a slice or an array of row numbers, got {index!r}"
                )
            if index.dtype == bool:
                index = np.flatnonzero(index)
        return self.take(index, {})

    def take(self, index: Index, taken: dict[int, Any]) -> "PreparedRows":
        """Return some of the rows; ``taken`` maps the id of a part to what was taken of it.

        Members of a composed kernel share rows: each is taken once and stays shared.
        """
        parts = []
        for part in self.parts:
            if id(part) not in taken:
                nested = isinstance(part, PreparedRows)
                taken[id(part)] = part.take(index, taken) if nested else part[index]
            parts.append(taken[id(part)])
        size = len(range(self.size)[index] if isinstance(index, slice) else index)
        chosen = object.__new__(type(self))  # copy.copy takes ten times as long
        chosen.__dict__.update(self.__dict__, parts=tuple(parts), size=size, _strips=None)
        if self._strips is not None and isinstance(index, slice):
            first, last, step = index.indices(self.size)
            lanes = self._strips.shape[2]
            if step == 1 and first % lanes == 0:
                chosen._strips = self._strips[first // lanes : -(-last // lanes)]
        return chosen

    def strips(self, dtype: Any, numbers: FloatArray | None = None) -> Any:
        """Return dense rows, the first part, as the right side of compiled products: made once.

        With them come ``numbers``, one for each row.
        """
        rows, lanes = self.parts[0], loops.intrinsics.STRIP_BYTES // np.dtype(dtype).itemsize
        count = -(-len(rows) // lanes)
        strips = self._strips  # which another thread may replace
        if strips is None or strips.dtype != dtype:
            padded = np.zeros((count * lanes, rows.shape[1]), dtype)
            padded[: len(rows)] = rows
            turned = padded.reshape(count, lanes, rows.shape[1]).transpose(0, 2, 1)
            strips = self._strips = read_only(turned)
        others = np.zeros(count * lanes, dtype)
        if numbers is not None:
            others[: len(rows)] = numbers[: len(rows)]
        return loops.kernel_tiles.Strips(strips, read_only(others))

    def narrowed(self, parts: Iterable[Any] | None = None) -> "PreparedRows | None":
        """Return the same rows in float32; None if numbers are too large, or have no narrow form.

        Parts are cast, unless they are given.
        """
        if parts is None:
            numbers = [stored_numbers(part) if _is_numbers(part) else None for part in self.parts]
            if any(each is None or np.abs(each).max(initial=0.0) > _LARGEST for each in numbers):
                return None
            parts = (part.astype(np.float32) for part in self.parts)
        narrow = self.with_parts(parts)
        narrow.dtype = np.dtype(np.float32)
        return narrow

    def with_parts(self, parts: Iterable[Any]) -> "PreparedRows":
        """Return the same rows with other parts."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, parts=tuple(parts), _strips=None)
        return other
