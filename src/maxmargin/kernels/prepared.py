"""What a kernel needs of rows: computed once, then sliced by rows."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.kernels.rows import (
    DenseRows,
    FloatArray,
    Index,
    Rows,
    SparseRows,
    numeric_rows,
)


class PreparedRows:
    """Rows as one kernel needs them; made by ``kernel.prepare(X)``, used by ``kernel.block``.

    ``len(prepared)`` is the number of rows. ``prepared[index]``, for a slice, an array of row
    numbers or a boolean mask, is the same for these rows; slices share memory. Each part has one
    entry per row: an array of norms, rows, objects, other PreparedRows.
    """

    def __init__(self, source: "Source", *parts: Any) -> None:
        self.size, self.dtype, self.width = len(source), source.dtype, source.width
        self.origin = source.origin
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
        chosen = self.with_parts(_take(part, index, taken) for part in self.parts)
        chosen.size = (
            len(range(*index.indices(self.size))) if isinstance(index, slice) else len(index)
        )
        return chosen

    def steady(self) -> "PreparedRows":
        """Return the same rows with kernel values that do not depend on the tile, to the last bit.

        Rows of a matrix can then be dropped and computed again, beside other rows or alone.
        """
        return self.with_parts(_steady(part) for part in self.parts)

    def with_parts(self, parts: Iterable[Any]) -> "PreparedRows":
        """Return the same rows with other parts."""
        other = object.__new__(PreparedRows)
        other.dtype, other.width, other.origin = self.dtype, self.width, self.origin
        other.size, other.parts = self.size, tuple(parts)
        return other


def _take(part: Any, index: Index, taken: dict[int, Any]) -> Any:
    if id(part) not in taken:
        taken[id(part)] = part.take(index, taken) if isinstance(part, PreparedRows) else part[index]
    return taken[id(part)]


def _steady(part: Any) -> Any:
    if isinstance(part, PreparedRows):
        return part.steady()
    return DenseRows(part.values, steady=True) if isinstance(part, DenseRows) else part


class Objects:
    """Rows that are not numbers: strings, graphs or any other objects."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Index) -> "Objects":
        if isinstance(index, slice):
            return Objects(self.values[index])
        return Objects([self.values[i] for i in index])


def is_numeric(X: Any) -> bool:
    """Return whether X is a matrix of numbers, or is meant to be one."""
    if sp.issparse(X) or hasattr(type(X), "columns") or isinstance(X, DenseRows | SparseRows):
        return True
    try:
        values = np.asarray(X)
    except ValueError:  # ragged
        return False
    return values.ndim >= 2 or values.dtype.kind in "biuf"


class Source:
    """The rows that ``prepare`` was given. They become numbers only if a kernel needs numbers."""

    def __init__(self, given: Any, origin: FloatArray | None = None) -> None:
        self.given, self.origin = given, origin
        self.weight: Any = None  # of rows, in the variance behind gamma="scale"

    @classmethod
    def of(cls, X: Any) -> "Source":
        """Wrap X, unless it is wrapped already."""
        return X if isinstance(X, Source) else cls(X)

    def __len__(self) -> int:
        if "rows" in self.__dict__ or not hasattr(self.given, "__len__") or sp.issparse(self.given):
            return len(self.rows)
        return len(self.given)

    @cached_property
    def rows(self) -> Rows:
        """The rows as validated numbers."""
        return numeric_rows(self.given)

    def with_origin(self, origin: FloatArray | None) -> "Source":
        """Return the same rows with another origin for distances."""
        return self if origin is self.origin else Source(self.rows, origin)

    def mean(self) -> FloatArray | None:
        """Return the mean of dense rows, and None for sparse rows, which are never shifted."""
        if not isinstance(self.rows, DenseRows):
            return None
        values = self.rows.values
        mean: FloatArray = values.mean(axis=0, dtype=np.float64).astype(values.dtype)
        return mean

    def minus_mean(self) -> "Source":
        """Return dense rows minus their mean, and sparse rows as they are."""
        mean = self.mean()
        return self if mean is None else Source(_shift(self.rows.values, mean))

    def max_abs(self) -> float:
        """Return the largest |xᵢₖ|."""
        return float(self.rows.max_abs().max(initial=0.0))

    @cached_property
    def centred(self) -> Rows:
        """The rows minus the origin: ‖x − x′‖² keeps the digits that a large mean would take."""
        return self.rows if self.origin is None else _shift(self.rows.values, self.origin)

    def centred_float64(self) -> Rows:
        """Return the same in float64, computed from the rows as they were given."""
        if self.origin is None:
            return self.rows.as_float64()
        values = self.rows.values.astype(np.float64)
        return _shift(values, self.origin.astype(np.float64))

    @property
    def is_matrix(self) -> bool:
        """Whether the rows come as an array, a sparse matrix or a frame."""
        return isinstance(self.given, DenseRows | SparseRows) or hasattr(self.given, "shape")

    @property
    def dtype(self) -> Any:
        """The type to compute in: float32 for float32 rows, float64 for everything else."""
        dtype = getattr(self.given, "dtype", None)
        if dtype is None and self.is_matrix:
            dtype = self.rows.values.dtype
        return np.dtype(np.float32 if dtype == np.float32 else np.float64)

    @property
    def width(self) -> int | None:
        """The number of columns, if there are columns."""
        if "rows" in self.__dict__ or isinstance(self.given, DenseRows | SparseRows):
            return int(self.rows.values.shape[1])
        shape: tuple[int, ...] = getattr(self.given, "shape", ())
        return int(shape[1]) if len(shape) == 2 else None

    def cast(self, dtype: Any) -> "Source":
        """Return the same rows in another float type."""
        if self.dtype == dtype:
            return self
        rows = self.rows
        if isinstance(rows, DenseRows):
            return Source(DenseRows(rows.values.astype(dtype)))
        return Source(rows.values.astype(dtype))

    def take_columns(self, numbers: Any) -> "Source":
        """Return a selection of the columns."""
        origin = None if self.origin is None else self.origin[numbers]
        columns = Source(self.rows.values[:, numbers], origin)
        columns.weight = self.weight
        return columns


def _shift(values: Any, origin: FloatArray) -> DenseRows:
    return DenseRows((values.toarray() if sp.issparse(values) else values) - origin)
