"""Kernels that the user defines: by a feature map or by a function of rows or objects."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.dot_products import Linear
from maxmargin.kernels.prepared import (
    FloatArray,
    PreparedRows,
    Source,
    SparseRows,
    as_dense,
    as_matrix,
    is_numeric,
)


class FromMap(Linear):
    """The dot product of explicit features, K = Σⱼ ωⱼ² φⱼ(x) φⱼ(x′).

    Parameters
    ----------
    phi : callable
        Takes the block of rows as it was given and returns one row of features for each.
    weights : array of shape (n_features,), optional
        ω; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import FromMap
    >>> def circle(X):
    ...     return np.c_[(X**2).sum(axis=1), -2 * X, np.ones(len(X))]
    >>> FromMap(circle).gram(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[ 6.,  5.],
           [ 5., 33.]])
    """

    float32_safe = False  # whether phi cancels digits is unknown

    def __init__(self, phi: Callable[[Any], Any], weights: Any = None) -> None:
        self.phi = phi
        self.weights = weights

    def check_parameters(self) -> None:
        """Raise an error unless phi can be called; weights are checked with the features."""
        if not callable(self.phi):
            raise TypeError(f"FromMap: phi must be a function of a block, got {self.phi!r}")

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the features of the rows, weighted."""
        features = self.phi(as_matrix(source.rows).copy() if source.is_matrix else source.given)
        rows = Source(features).cast(source.dtype).rows
        n = source.shape[0]
        if len(rows) != n:
            raise ValueError(
                f"FromMap: phi must return a row of features for each of {n} rows, "
                f"got shape {rows.shape}"
            )
        if self.weights is not None:
            weights = np.asarray(self.weights, rows.dtype)
            if weights.shape != rows.shape[1:] or not np.isfinite(weights).all():
                raise ValueError(
                    f"FromMap: weights must be one finite number for each of {rows.shape[1]} "
                    f"features, got {self.weights!r}"
                )
            rows = Source(as_matrix(rows) @ sp.diags_array(weights)).rows
        return PreparedRows(source, rows)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile with dot products of features."""
        first, then = a.parts[0].shape[1], b.parts[0].shape[1]
        if first != then:
            raise ValueError(f"FromMap: phi returned {first} features, then {then}")
        super().fill_tile(a, b, out)


class FromFunction(Kernel):
    """A kernel computed by a function of yours.

    Parameters
    ----------
    function : callable
        With ``on="blocks"`` it takes two blocks of n and m rows and returns an (n, m) array; the
        value for two rows must not depend on the others, since a large matrix is computed in
        pieces. If the rows are not vectors of numbers but strings or graphs, a block is a list.
        With ``on="pairs"`` it takes two rows (sparse ones as dense arrays), or two objects of any
        kind, and returns a number.
    on : {"blocks", "objects", "pairs"}, default="blocks"
        What the function takes; "objects" are blocks that are always lists.

    Notes
    -----
    Only half of K(A, A) is computed; the other half is its mirror image. Whether the function is
    symmetric and positive semidefinite is unknown: ``check_kernel`` tests it.

    Examples
    --------
    >>> from maxmargin.kernels import FromFunction
    >>> def common_letters(word, other):
    ...     return float(len(set(word) & set(other)))
    >>> FromFunction(common_letters, on="pairs").gram(["margin", "gain", "loss"])
    array([[6., 4., 0.],
           [4., 4., 0.],
           [0., 0., 3.]])
    """

    thread_safe = False  # a Python function need not be safe to call from several threads

    def __init__(self, function: Callable[[Any, Any], Any], on: str = "blocks") -> None:
        self.function = function
        self.on = on

    @property
    def max_tile_rows(self) -> int:  # type: ignore[override]
        """One for a function of pairs: row by row, no pair of K(A, A) is computed twice."""
        return 1 if self.on == "pairs" else Kernel.max_tile_rows

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        """Whether the function takes objects rather than rows of a matrix."""
        return self.on in ("objects", "pairs")

    def for_objects(self) -> "FromFunction":
        """Return the same function, of lists of objects if it takes blocks."""
        return FromFunction(self.function, on="objects") if self.on == "blocks" else self

    def check_parameters(self) -> None:
        """Raise an error unless there is a function of blocks, objects or pairs."""
        if not callable(self.function):
            raise TypeError(f"FromFunction: function must be callable, got {self.function!r}")
        if self.on not in ("blocks", "objects", "pairs"):
            raise ValueError(
                f"FromFunction: on must be 'blocks', 'objects' or 'pairs', got {self.on!r}"
            )

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the rows, as numbers or as objects."""
        if self.on == "pairs":
            numbers = source.is_matrix and source.width is not None
        else:
            numbers = self.on == "blocks" and is_numeric(source.given)
        if numbers:
            return PreparedRows(source, source.rows)
        return PreparedRows(source, np.fromiter(source.given, object, source.shape[0]))

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile by one call for the block, or one for each pair."""
        if self.on != "pairs":
            out[...] = self._call_on_blocks(a.parts[0], b.parts[0])
            return
        for i, x in enumerate(_each(a.parts[0])):
            for j, z in enumerate(_each(b.parts[0])):
                out[i, j] = self._call_on_pair(x, z)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return K(x, x), taken from small blocks if the function takes blocks."""
        if self.on == "pairs":
            return np.array([self._call_on_pair(x, x) for x in _each(a.parts[0])], a.dtype)
        diagonal = np.empty(len(a), a.dtype)
        for i in range(0, len(a), 64):  # few calls, and few values that are thrown away
            part = a.parts[0][i : i + 64]
            diagonal[i : i + 64] = self._call_on_blocks(part, part).diagonal()
        return diagonal

    def _call_on_blocks(self, left: Any, right: Any) -> Any:
        # Copies: many compiled functions refuse read-only arrays, and some write into theirs.
        A, B = (
            list(rows) if rows.dtype == object else as_matrix(rows).copy() for rows in (left, right)
        )
        block = self.function(A, B)
        block = np.asarray(block.toarray() if sp.issparse(block) else block)
        shape = (len(left), len(right))
        if block.shape != shape:
            raise ValueError(
                f"FromFunction: {self.short_name} must return an array of shape {shape} for blocks "
                f"of {shape[0]} and {shape[1]} rows, got shape {block.shape}; "
                "a function of two rows needs on='pairs'"
            )
        if not np.isfinite(block).all():
            raise ValueError(
                f"FromFunction: {self.short_name} must return finite values, got {block}"
            )
        return block

    def _call_on_pair(self, x: Any, z: Any) -> float:
        value = np.asarray(self.function(x, z))
        if value.shape != () or not np.isfinite(value):
            raise ValueError(
                f"FromFunction: {self.short_name} must return one finite number for a pair, "
                f"got {value} for {x!r} and {z!r}"
            )
        return float(value)

    @property
    def short_name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__qualname__", None) or repr(self.function)


def _each(rows: Any) -> Iterator[Any]:
    if isinstance(rows, SparseRows):  # one row at a time: all of them might not fit
        return (as_dense(rows[i : i + 1])[0] for i in range(len(rows)))
    return iter(rows)
