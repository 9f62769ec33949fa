"""A kernel on training rows: blocks by BLAS, rows kept within a memory cap."""

import os
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.rows import DenseRows, FloatArray

_SHARE = 0.5  # of the memory that is free
_LARGEST_SINGLE = 1e30  # kernel values beyond this are not put into float32
_MOST_SHARED = 12000  # rows whose matrix is computed whole for the problems that share it
_FEW_COLUMNS = 64  # for which a kernel value costs no more than a copy of it
SMALL = 2000  # rows up to which float32 would save nothing worth having


class Gram:
    """The Gram matrix of a kernel on n rows, computed where it is looked at.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters (see ``Kernel.resolved``).
    X : matrix or sequence
        The n rows.
    like : PreparedRows, optional
        Other rows that these will be compared with.
    memory : int, optional
        Bytes that kept rows may take; by default half of what is free.
    threads : int, optional
        As in ``Kernel.block``.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        like: PreparedRows | None = None,
        memory: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.kernel, self.threads = kernel, threads
        self.memory = free_memory() if memory is None else memory
        self._X, self._like = X, like

    def __len__(self) -> int:
        return int(self._X.shape[0]) if hasattr(self._X, "shape") else len(self._X)

    @cached_property
    def prepared(self) -> PreparedRows:
        """The rows prepared in their own type."""
        return self.kernel.prepare(self._X, self._like)

    @cached_property
    def exact(self) -> PreparedRows:
        """The rows prepared in float64."""
        if self.prepared.dtype == np.float64 or self.kernel.takes_objects:
            return self.prepared
        return self.kernel.prepare(self._X.astype(np.float64))

    @cached_property
    def tiles(self) -> PreparedRows:
        """The rows prepared for fast tiles: in float32 where its rounding does not show."""
        if len(self) <= SMALL or np.abs(self.diagonal).max() > _LARGEST_SINGLE:
            return self.exact
        return self.kernel.prepare_float32(self._X) or self.exact

    def materialize(self, out: FloatArray | None = None) -> FloatArray:
        """Return the whole matrix, in the type of the tiles; in ``out`` if that is of this type."""
        tiles = self.tiles
        if out is None or out.dtype != tiles.dtype:
            out = np.empty((len(self), len(self)), tiles.dtype)
        return self.kernel.block(tiles, tiles, out=out, threads=self.threads)

    def square(self, rows: Ints) -> FloatArray:
        """Return K[rows][:, rows], in the type of the tiles.

        Where problems share the rows, and the matrix is small enough, it is computed once; where
        it would not fit into the memory, its values are the same all the same.
        """
        if len(rows) == len(self):
            return self.materialize()
        shared = self._shared
        if shared is None:
            part = (self.tiles.steady() if self._worth_sharing else self.tiles)[rows]
            return self.kernel.block(part, part, threads=self.threads)
        out = np.empty((len(rows), len(rows)), shared.dtype)
        loops.decomposition.take(shared, rows, rows, out)
        return out

    @property
    def cheap(self) -> bool:
        """Whether values are computed about as fast as they are copied."""
        dense = isinstance(self.prepared.parts[0], DenseRows) if self.prepared.parts else False
        return dense and (self.prepared.width or 0) <= _FEW_COLUMNS

    @property
    def _worth_sharing(self) -> bool:
        return len(self) <= _MOST_SHARED and not self.cheap

    @cached_property
    def _shared(self) -> FloatArray | None:
        if not self._worth_sharing or len(self) ** 2 * self.tiles.dtype.itemsize > self.memory:
            return None
        rows = self.tiles.steady()
        return self.kernel.block(rows, rows, threads=self.threads)

    @cached_property
    def diagonal(self) -> Floats:
        """K(xᵢ, xᵢ) of all rows."""
        return self.kernel.diag(self.exact).astype(np.float64)

    def block(self, i: Ints, j: Ints) -> Floats:
        """Return K[i][:, j], in float64."""
        left = self.exact[i]
        right = left if j is i else self.exact[j]
        return np.asarray(self.kernel.block(left, right, threads=self.threads), np.float64)

    def dot(self, weights: Floats, i: Ints, j: Ints | None = None, *, fast: bool = False) -> Floats:
        """Return K[i][:, j] times weights: a vector, or one a column; j is i by default.

        ``fast``: by the tiles, which may be float32; otherwise in float64.
        """
        columns = i if j is None else j
        used = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=1))
        if not len(used):
            return np.zeros((len(i), *weights.shape[1:]))
        prepared: Any = self.tiles if fast else self.exact
        left = prepared if np.array_equal(i, np.arange(len(self))) else prepared[i]
        some = weights[used].reshape(len(used), -1)
        found = self.kernel.dot(left, prepared[columns[used]], some, self.threads)
        return np.asarray(found[:, 0] if weights.ndim == 1 else found)


def free_memory() -> int:
    """Return half of the bytes that are free, 1 GB where nobody knows."""
    try:
        with open("/proc/meminfo") as facts:
            free = next(int(line.split()[1]) for line in facts if line.startswith("MemAvailable"))
        return int(_SHARE * 1024 * free)
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return int(_SHARE * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 1 << 30
