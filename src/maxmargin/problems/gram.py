"""A kernel on training rows: the one way to kernel values."""

import os
from functools import cached_property
from typing import Any, overload

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.prepared import FloatArray

_SHARE = 0.5  # of the memory that is free
_LARGEST_SINGLE = 1e30  # kernel values beyond this are not put into float32
_MOST_SHARED = 12000  # rows whose matrix is computed whole for the problems that share it
_UNKEPT = 8  # times that a row of cheap values is computed before it is worth keeping (measured)
_GATHERED = 20  # cheap values that take as long as to gather a row
_FEW_COLUMNS = 64  # for which a kernel value costs no more than a copy of it
SMALL = 2000  # rows up to which float32 would save nothing worth having


class Gram:
    """The Gram matrix of a kernel on n rows; values are computed when they are asked for.

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

    Attributes
    ----------
    prepared, exact : PreparedRows
        The rows prepared in their own type, and in float64.
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
        if memory is not None:
            self.memory = memory
        self.prepared = self.exact = kernel.prepare(X, like)
        if self.prepared.dtype != np.float64 and not kernel.takes_objects:
            self.exact = kernel.prepare(X.astype(np.float64))

    def __len__(self) -> int:
        return len(self.exact)

    @cached_property
    def memory(self) -> int:
        """The bytes that kept rows may take."""
        return free_memory()

    @cached_property
    def tiles(self) -> PreparedRows:
        """The rows prepared for fast tiles: in float32 where its rounding does not show."""
        if len(self.exact) <= SMALL or np.abs(self.diagonal).max() > _LARGEST_SINGLE:
            return self.exact
        return self.kernel.narrowed(self.exact) or self.exact

    @cached_property
    def float32_rounding(self) -> tuple[Floats, Floats] | None:
        """What ``Kernel.float32_rounding`` says of the tiles; None if they are not in float32."""
        narrow = self.tiles.dtype == np.float32
        return self.kernel.float32_rounding(self.tiles) if narrow else None

    @cached_property
    def diagonal(self) -> Floats:
        """K(xᵢ, xᵢ) of all rows."""
        return self.kernel.diag(self.exact).astype(np.float64)

    @cached_property
    def lengths(self) -> Floats:
        """No less than √K(xᵢ, xᵢ) of all rows."""
        return np.asarray(1.001 * np.sqrt(np.maximum(self.diagonal, 0.0)))

    @property
    def unkept(self) -> int:
        """How often a row is computed before it is kept: writing it costs as much as this."""
        return _UNKEPT if self.cheap else 0

    @property
    def cheap(self) -> bool:
        """Whether values are computed about as fast as they are copied."""
        dense = self.exact.parts and isinstance(self.exact.parts[0], np.ndarray)
        return bool(dense) and (self.exact.width or _FEW_COLUMNS + 1) <= _FEW_COLUMNS

    @cached_property
    def _shared(self) -> tuple[PreparedRows, FloatArray | None]:
        """The rows for fast blocks, and the matrix that problems share, if it is worth having.

        If the matrix does not fit into the memory, blocks have the same values to the last bit.
        """
        if len(self) > _MOST_SHARED or self.cheap:
            return self.tiles, None
        rows = self.tiles
        if len(self) ** 2 * rows.dtype.itemsize > self.memory:
            return rows, None
        return rows, self.kernel.block(rows, rows, threads=self.threads)

    def materialize(self, out: FloatArray | None = None) -> FloatArray:
        """Return the whole matrix, in the type of the tiles; in ``out`` if that is of this type."""
        if out is not None and out.dtype != self.tiles.dtype:
            out = None
        return self.kernel.block(self.tiles, self.tiles, out=out, threads=self.threads)

    @overload
    def block(self, i: Ints, j: Ints) -> Floats: ...
    @overload
    def block(self, i: Ints, j: Ints, *, fast: bool) -> FloatArray: ...
    def block(self, i: Ints, j: Ints, *, fast: bool = False) -> FloatArray:
        """Return K[i][:, j], in float64; ``fast``: by the tiles, which may be float32."""
        if fast and j is i and len(i) == len(self.exact):
            return self.kernel.block(self.tiles, self.tiles, threads=self.threads)
        rows, shared = self._shared if fast else (self.exact, None)
        if shared is not None:
            out = np.empty((len(i), len(j)), shared.dtype)
            loops.decomposition.take(shared, i, j, out)
            return out
        left = rows[i]
        found = self.kernel.block(left, left if j is i else rows[j], threads=self.threads)
        return found if fast else found.astype(np.float64, copy=False)

    def dot(self, weights: Floats, i: Ints, j: Ints | None = None, *, fast: bool = False) -> Floats:
        """Return K[i][:, j] times weights: a vector, or one in each column; j is i by default.

        ``fast``: by the tiles, which may be float32; otherwise in float64.
        """
        columns = i if j is None else j
        used = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=1))
        if not len(used):
            return np.zeros((len(i), *weights.shape[1:]))
        prepared, n = self.tiles if fast else self.exact, len(self)
        every = len(i) == n and bool((i[1:] > i[:-1]).all())
        # A few values of all rows take less time than to gather most of the rows.
        rather = self.cheap and len(used) * (n - len(i)) <= _GATHERED * len(i)
        rows = prepared if every or rather else prepared[i]
        some = weights[used].reshape(len(used), -1)
        found = self.kernel.dot(rows, prepared[columns[used]], some, self.threads)
        found = found[i] if rather and not every else found
        return np.asarray(found[:, 0] if weights.ndim == 1 else found)


def free_memory() -> int:
    """Return half of the bytes that are free, or 1 GB if that is unknown."""
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
