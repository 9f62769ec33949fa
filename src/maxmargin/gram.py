"""A kernel bound to training rows: blocks by BLAS, rows kept within a memory cap."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.kernels import Bound, Kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Gram:
    """The Gram matrix of a kernel on n rows, computed where it is looked at.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters (see ``Kernel.resolved``).
    X : matrix or sequence
        The n rows.
    like : Bound, optional
        Other rows that these will be compared with.
    memory : int, default=2**29
        Bytes that kept rows may take; beyond that rows are computed anew each time.
    """

    def __init__(
        self, kernel: Kernel, X: Any, like: Bound | None = None, memory: int = 2**29
    ) -> None:
        self.kernel = kernel
        self.bound = kernel.bind(X, like)
        n = len(self.bound)
        room = min(n, memory // (8 * max(1, n)))
        self._store = np.empty((room, n))  # pages are taken only as rows are written
        self._slot = np.full(n, -1)
        self._used = 0

    def __len__(self) -> int:
        return len(self.bound)

    def block(self, i: Ints, j: Ints) -> Floats:
        """Return K[i][:, j]."""
        return np.asarray(self.kernel.between(self.bound[i], self.bound[j]), np.float64)

    def rows(self, i: Ints) -> Floats:
        """Return K[i] for distinct rows i, keeping them for the next time while there is room."""
        out = np.empty((len(i), len(self)))
        kept = self._slot[i] >= 0
        out[kept] = self._store[self._slot[i[kept]]]
        missing = i[~kept]
        if len(missing):
            out[~kept] = self.kernel.between(self.bound[missing], self.bound)
            self._keep(missing, out[~kept])
        return out

    def _keep(self, i: Ints, values: Floats) -> None:
        count = min(len(i), len(self._store) - self._used)
        slots = np.arange(self._used, self._used + count)
        self._store[slots] = values[:count]
        self._slot[i[:count]] = slots
        self._used += count
