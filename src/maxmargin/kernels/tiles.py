"""The tiled driver: a Gram matrix in tiles, each finished while it is in cache.

    block                 every K(aᵢ, bⱼ)
    K(a, b) @ V           each tile is multiplied while it is in cache, and not kept
    K(a, a) @ V           the same from the tiles on and above the diagonal: half of the values

The grid depends only on the shape and the number type, and each tile is computed by one thread
with one BLAS thread, so the result is the same to the last bit whatever the number of threads.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from maxmargin import clock, loops
from maxmargin._typing import Floats
from maxmargin.kernels.prepared import PreparedRows
from maxmargin.kernels.rows import FloatArray
from maxmargin.threads import one_blas_thread, share_work, usual_threads

if TYPE_CHECKING:
    from maxmargin.kernels.base import Kernel

Values = TypeVar("Values", bound=FloatArray)

# About the size of an L2 cache; with smaller tiles BLAS loses more than the map gains (measured).
# No tile may have more rows than columns: the square on the diagonal is mirrored within one.
TILE_COLUMNS = 512
TILE_BYTES = 1024 * 1024

# The relative error of a kernel value beyond which float64 is used instead of float32.
FLOAT32_ERROR = 1e-4

# Below this many multiplications BLAS stays on one thread by itself.
SMALL_PRODUCT = 2**17


class Tile(NamedTuple):
    """Rows top:bottom and columns left:right of the matrix."""

    top: int
    bottom: int
    left: int
    right: int


# ---------------------------------------------------------------- blocks


def fill_block(
    kernel: "Kernel", a: PreparedRows, b: PreparedRows, out: FloatArray, threads: int | None
) -> None:
    """Fill ``out`` with K(a, b); symmetric to the last bit if a is b."""
    diagonal = kernel.diagonal(a) if a is b else None
    height = tile_height(kernel, out.dtype)
    todo = deque(_grid(len(a), len(b), height, out.itemsize, upper=a is b))

    def one(tile: Tile) -> None:
        with working():
            _fill_tile(kernel, a, b, out, tile, diagonal)

    if len(todo) <= 1 and len(a) * len(b) * (a.width or 1) <= SMALL_PRODUCT:
        for tile in todo:
            one(tile)
        return
    with one_blas_thread():
        if todo:
            # The first tile runs alone: it compiles the loop and builds what is built lazily.
            one(todo.popleft())
        share_work(one, todo, min(thread_count(kernel, threads), len(todo)))


def _fill_tile(
    kernel: "Kernel",
    a: PreparedRows,
    b: PreparedRows,
    out: FloatArray,
    tile: Tile,
    diagonal: FloatArray | None,
) -> None:
    target = out[tile.top : tile.bottom, tile.left : tile.right]
    with contiguous(target) as values:
        kernel.fill_tile(a[tile.top : tile.bottom], b[tile.left : tile.right], values)
        if not loops.kernel_tiles.all_finite(values):
            raise ValueError(overflow_message(kernel))
        if diagonal is None:
            return
        if tile.left == tile.top:
            loops.kernel_tiles.mirror_upper(values, diagonal[tile.top : tile.bottom])
        beyond = max(tile.left, tile.bottom)
        out[beyond : tile.right, tile.top : tile.bottom] = values[:, beyond - tile.left :].T


def _grid(rows: int, columns: int, height: int, itemsize: int, *, upper: bool) -> Iterator[Tile]:
    if rows * columns * itemsize <= TILE_BYTES and 0 < rows <= min(height, columns):
        yield Tile(0, rows, 0, columns)  # small enough to be one, straight into its place
        return
    for top in range(0, rows, height):
        for left in range(top if upper else 0, columns, TILE_COLUMNS):
            yield Tile(top, min(top + height, rows), left, min(left + TILE_COLUMNS, columns))


def tile_height(kernel: "Kernel", dtype: Any) -> int:
    """Return the number of rows of a tile."""
    return min(kernel.max_tile_rows, TILE_BYTES // (TILE_COLUMNS * int(np.dtype(dtype).itemsize)))


# ---------------------------------------------------------------- products


def dot(
    kernel: "Kernel",
    a: PreparedRows,
    b: PreparedRows,
    weights: FloatArray,
    threads: int | None,
    *,
    magnitudes: bool = False,
    partial: bool = False,
) -> Floats:
    """Return K(a, b) @ weights in float64.

    Sums within a tile are made in its type, sums over tiles in float64. With ``magnitudes``, as
    many columns follow with |K(a, b)| @ |weights|. With ``partial``, rows that were not reached
    within the time limit are NaN, instead of an error.
    """
    count = weights.shape[1]
    out = np.zeros((len(a), 2 * count if magnitudes else count))
    typed = np.ascontiguousarray(weights, a.dtype)
    height = tile_height(kernel, a.dtype)
    todo = deque(range(0, len(a), height))
    reached = np.zeros(len(a), bool)

    def panel(top: int) -> None:
        rows = a[top : top + height]
        for left in range(0, len(b), TILE_COLUMNS):
            clock.check()
            columns = b[left : left + TILE_COLUMNS]
            with working(), scratch((len(rows), len(columns)), a.dtype) as tile:
                kernel.fill_tile(rows, columns, tile)
                some = typed[left : left + TILE_COLUMNS]
                out[top : top + height, :count] += tile @ some
                if magnitudes:
                    np.abs(tile, out=tile)
                    out[top : top + height, count:] += tile @ np.abs(some)
        reached[top : top + height] = True

    with one_blas_thread():
        try:
            if todo:
                panel(todo.popleft())
            share_work(panel, todo, min(thread_count(kernel, threads), len(todo)))
        except clock.OutOfTimeError:
            if not partial:
                raise
    check_finite(kernel, out[reached])
    out[~reached] = np.nan
    return out


# Panels that run side by side add to separate sums: always this many, so that the result does not
# depend on the number of threads.
_SHARES = 8
_STORED = 512, 1024  # rows and columns of a stored tile


class SymmetricProduct:
    """V ↦ K(a, a) @ V, of which only the tiles on and above the diagonal are computed.

        (KV)_I = Σ_J K_IJ V_J,    (KV)_J += K_IJᵀ V_I  for the tiles I < J

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters.
    rows : PreparedRows
        The rows a, in the type to compute in.
    threads : int, optional
        As in ``Kernel.block``.
    keep : bool
        Whether to store the tiles of the first product for the following ones.
    """

    def __init__(
        self, kernel: "Kernel", rows: PreparedRows, threads: int | None, keep: bool = False
    ) -> None:
        self.kernel, self.rows, self.threads, self.keep = kernel, rows, threads, keep
        # Stored tiles are read from memory anyway, and BLAS prefers large ones.
        self._height = _STORED[0] if keep else tile_height(kernel, rows.dtype)
        self._height = min(self._height, kernel.max_tile_rows)
        self._width = _STORED[1] if keep else TILE_COLUMNS
        self._tiles: dict[tuple[int, int], FloatArray] = {}

    @staticmethod
    def stored_bytes(n: int, dtype: Any) -> int:
        """Return the memory that the stored tiles of n rows take."""
        return n * (n + _STORED[0]) // 2 * int(np.dtype(dtype).itemsize)

    def dot(self, V: FloatArray) -> Floats:
        """Return K @ V: sums within a tile are made in its type, sums over tiles in float64."""
        n, typed = len(self.rows), np.ascontiguousarray(V, self.rows.dtype)
        tops = range(0, n, self._height)
        todo = deque(range(_SHARES))
        sums: list[Floats] = [np.zeros((0, 0))] * _SHARES

        def share(k: int) -> None:
            sums[k] = np.zeros(typed.shape)
            with working():
                # The first panels are the longest: dealt there and back, shares are about equal.
                for top in (*tops[k :: 2 * _SHARES], *tops[2 * _SHARES - 1 - k :: 2 * _SHARES]):
                    self._add_panel(top, typed, sums[k])

        with one_blas_thread():
            self._compile()
            share_work(share, todo, thread_count(self.kernel, self.threads))
        return check_finite(self.kernel, np.sum(sums, axis=0))

    def _compile(self) -> None:
        """Compute one value, so that no two threads compile or build the same thing."""
        if len(self.rows) and not self._tiles:
            with working(), scratch((1, 1), self.rows.dtype) as one:
                self.kernel.fill_tile(self.rows[:1], self.rows[:1], one)

    def _add_panel(self, top: int, V: FloatArray, out: Floats) -> None:
        n = len(self.rows)
        bottom = min(top + self._height, n)
        for left in range(top, n, self._width):
            clock.check()
            right = min(left + self._width, n)
            with scratch((bottom - top, right - left), self.rows.dtype) as buffer:
                tile = self._tile(Tile(top, bottom, left, right), buffer)
                out[top:bottom] += tile @ V[left:right]
                beyond = max(left, bottom)
                if beyond < right:
                    out[beyond:right] += tile[:, beyond - left :].T @ V[top:bottom]

    def _tile(self, at: Tile, buffer: FloatArray) -> FloatArray:
        tile = self._tiles.get((at.top, at.left))
        if tile is None:
            tile = np.empty_like(buffer) if self.keep else buffer
            self.kernel.fill_tile(
                self.rows[at.top : at.bottom], self.rows[at.left : at.right], tile
            )
            if self.keep:
                self._tiles[at.top, at.left] = tile
        return tile


# ---------------------------------------------------------------- numbers out of range


def check_finite(kernel: "Kernel", values: Values) -> Values:
    """Return the values, or raise if some overflowed."""
    if not np.isfinite(values).all():
        raise ValueError(overflow_message(kernel))
    return values


def overflow_message(kernel: "Kernel") -> str:
    """Return the error message for values beyond the number type."""
    return (
        f"{kernel!r} gives values that are not finite on these rows: they overflow the number "
        "type. Scale the columns, lower the kernel's parameters, or pass float64."
    )


# ---------------------------------------------------------------- threads and their buffers


def thread_count(kernel: "Kernel", threads: int | None) -> int:
    """Return how many threads may work; one where a tile is being computed already."""
    if threads is not None and (not isinstance(threads, Integral) or threads < 1):
        raise ValueError(f"threads must be None or a whole number of at least 1, got {threads!r}")
    if _state.working or not kernel.thread_safe:
        return 1
    return int(threads or usual_threads())


class _ThreadState(threading.local):
    """What a thread keeps between tiles: buffers, whose memory need not be mapped each time."""

    def __init__(self) -> None:
        self.working = False
        self.depth = 0
        self.buffers: list[Any] = []


_state = _ThreadState()


@contextmanager
def working() -> Iterator[None]:
    """Mark this thread as busy with a tile: a kernel called by a kernel must not use the pool."""
    before, _state.working = _state.working, True
    try:
        yield
    finally:
        _state.working = before


@contextmanager
def scratch(shape: tuple[int, ...], dtype: Any) -> Iterator[FloatArray]:
    """Lend an uninitialised C-contiguous buffer of this thread."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    depth = _state.depth
    if depth == len(_state.buffers):
        _state.buffers.append(np.empty(0, np.uint8))
    if _state.buffers[depth].size < size:
        _state.buffers[depth] = np.empty(size, np.uint8)
    _state.depth += 1
    try:
        yield _state.buffers[depth][:size].view(dtype).reshape(shape)
    finally:
        _state.depth -= 1


@contextmanager
def contiguous(target: FloatArray) -> Iterator[FloatArray]:
    """Lend the target if it is C-contiguous, else a buffer that is copied into it afterwards."""
    if target.flags.c_contiguous:
        yield target
        return
    with scratch(target.shape, target.dtype) as values:
        yield values
        target[...] = values
