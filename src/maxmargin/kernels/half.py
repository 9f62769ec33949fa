"""Products with a symmetric Gram matrix of which only half is ever computed.

    (KV)_I = Σ_J K_IJ V_J,    (KV)_J += K_IJᵀ V_I  for the tiles I < J

Tiles on and above the diagonal are kept, or computed for each product and used while in cache.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maxmargin import clock
from maxmargin.kernels import tiling
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.kernels.bound import Bound
from maxmargin.kernels.rows import FloatArray

if TYPE_CHECKING:
    from maxmargin.kernels.base import Kernel

Floats = npt.NDArray[np.float64]

# Panels that run side by side need sums of their own: always as many, whatever the number of
# threads, so that the result does not depend on it.
_SHARES = 8
_KEPT = 512, 1024  # rows and columns of a tile that is kept


class HalfGram:
    """K(a, a) of bound rows, as a map of columns.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters.
    bound : Bound
        The rows, in the type to compute in.
    threads : int, optional
        As in ``Kernel.between``.
    keep : bool
        Whether to keep the tiles of the first product for those that follow.
    """

    def __init__(
        self, kernel: "Kernel", bound: Bound, threads: int | None, keep: bool = False
    ) -> None:
        self.kernel, self.bound, self.threads, self.keep = kernel, bound, threads, keep
        # What is kept is read from memory anyway, and BLAS prefers it large.
        self._height = _KEPT[0] if keep else tiling.tile_height(kernel, bound.dtype)
        self._height = min(self._height, kernel._tile_rows)
        self._width = _KEPT[1] if keep else tiling.TILE_COLUMNS
        self._tiles: dict[tuple[int, int], FloatArray] = {}

    @staticmethod
    def size(n: int, dtype: Any) -> int:
        """Return the bytes that the tiles of n rows take, if they are kept."""
        return n * (n + _KEPT[0]) // 2 * int(np.dtype(dtype).itemsize)

    def times(self, V: FloatArray) -> Floats:
        """Return K @ V: sums over a tile are made in its type, sums over tiles in float64."""
        n, typed = len(self.bound), np.ascontiguousarray(V, self.bound.dtype)
        tops = range(0, n, self._height)
        todo = deque(range(_SHARES))
        sums: list[Floats] = [np.zeros((0, 0))] * _SHARES

        def share(k: int) -> None:
            sums[k] = np.zeros(typed.shape)
            with tiling.working():
                # The first panels are the longest: there and back, shares are about equal.
                for top in (*tops[k :: 2 * _SHARES], *tops[2 * _SHARES - 1 - k :: 2 * _SHARES]):
                    self._panel(top, typed, sums[k])

        with one_blas_thread():
            self._compile()
            tiling.shared(share, todo, tiling.thread_count(self.kernel, self.threads))
        return tiling.finite(self.kernel, np.sum(sums, axis=0))

    def _compile(self) -> None:
        """Compute one value: what is compiled or built on demand is not built by two threads."""
        if len(self.bound) and not self._tiles:
            with tiling.working(), tiling.scratch((1, 1), self.bound.dtype) as one:
                self.kernel._tile(self.bound[:1], self.bound[:1], one)

    def _panel(self, top: int, V: FloatArray, out: Floats) -> None:
        n = len(self.bound)
        bottom = min(top + self._height, n)
        for left in range(top, n, self._width):
            clock.check()
            right = min(left + self._width, n)
            with tiling.scratch((bottom - top, right - left), self.bound.dtype) as room:
                tile = self._tile(top, bottom, left, right, room)
                out[top:bottom] += tile @ V[left:right]
                beyond = max(left, bottom)
                if beyond < right:
                    out[beyond:right] += tile[:, beyond - left :].T @ V[top:bottom]

    def _tile(self, top: int, bottom: int, left: int, right: int, room: FloatArray) -> FloatArray:
        tile = self._tiles.get((top, left))
        if tile is None:
            tile = np.empty_like(room) if self.keep else room
            self.kernel._tile(self.bound[top:bottom], self.bound[left:right], tile)
            if self.keep:
                self._tiles[top, left] = tile
        return tile
