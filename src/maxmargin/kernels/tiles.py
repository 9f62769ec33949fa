"""The tiled driver: a Gram matrix in tiles, each finished while it is in cache.

    block                 every K(aᵢ, bⱼ)
    K(a, b) @ V           each tile is multiplied while it is in cache, and not kept
    K(a, a) @ V           the same from the tiles on and above the diagonal: half of the values

The grid depends only on the shape and the number type, and each tile is computed by one thread
with one BLAS thread, so the result is the same to the last bit whatever the number of threads.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels.prepared import FloatArray, PreparedRows
from maxmargin.runtime import clock
from maxmargin.runtime.threads import one_blas_thread, share_work, usual_threads

if TYPE_CHECKING:
    from maxmargin.kernels.base import Kernel

# About the size of an L2 cache; with smaller tiles BLAS loses more than the map gains (measured).
# No tile may have more rows than columns: the square on the diagonal is mirrored within one.
TILE_COLUMNS = 512
TILE_BYTES = 1024 * 1024
RUN, RUN_64 = 64, 256  # columns that are summed in float32, and in float64, where errors count

_SMALL_SIDE = 256  # of a tile in a square of at most four tiles

# Panels that run side by side add to separate sums: always this many, so that the result does not
# depend on the number of threads.
_SHARES = 8

# The relative error of a kernel value beyond which float64 is used instead of float32.
FLOAT32_ERROR = 1e-4

WORK = 2**27  # multiplications in one compiled call, about: some milliseconds
_PANELS = 4  # for each of several threads, into which the rows are cut if these may be so wide
_LEAST_ROWS = 48  # of a panel
_NOT_SHARED = 2**24  # multiplications that one thread makes sooner than two: sharing takes 80 µs
_FEW_COLUMNS = 160  # of rows whose values are computed twice sooner than mirrored

# Below this many multiplications BLAS stays on one thread by itself.
SMALL_PRODUCT = 2**17


def fill_block(
    kernel: "Kernel", a: PreparedRows, b: PreparedRows, out: FloatArray, threads: int | None
) -> None:
    """Fill ``out`` with K(a, b); symmetric to the last bit if a is b."""
    wide = b.wide and (a is not b or (b.width or 0) <= _FEW_COLUMNS)
    (_fill_panels if wide else _fill_tiles)(kernel, a, b, out, threads)


def _fill_tiles(
    kernel: "Kernel", a: PreparedRows, b: PreparedRows, out: FloatArray, threads: int | None
) -> None:
    """Fill ``out`` by tiles that fit into the cache; of a square, half of them."""
    diagonal = kernel.diagonal(a) if a is b else None
    height, width = out.shape  # if small enough: one tile, straight into its place
    if out.nbytes > TILE_BYTES or height > min(kernel.max_tile_rows, width):
        height, width = _tile_shape(kernel, out, diagonal is not None)

    def fill(corner: tuple[int, int]) -> None:
        top, left = corner
        rows, columns = slice(top, top + height), slice(left, left + width)
        target = out[rows, columns]
        whole = target.flags.c_contiguous
        with nullcontext(target) if whole else scratch(target.shape, out.dtype) as values:
            kernel.fill_tile(a[rows], b[columns], values)
            if not kernel.bounded and not loops.kernel_tiles.all_finite(values):
                raise overflow(kernel)
            if diagonal is not None:
                if top == left:
                    loops.kernel_tiles.mirror_upper(values, diagonal[rows])
                beyond = max(top + height, left)
                below = out[beyond : left + width, rows]
                loops.kernel_tiles.transpose(values[:, beyond - left :], below)
            if values is not target:
                target[...] = values

    todo = deque[tuple[int, int]]()
    for top in range(0, len(a), height or 1):
        for left in range(0 if diagonal is None else top, len(b), width):
            todo.append((top, left))
    if len(todo) == 1 and out.size * (a.width or 1) <= SMALL_PRODUCT:
        fill(todo[0])
    else:
        _do_all(kernel, a, b, fill, todo, threads)


def _fill_panels(
    kernel: "Kernel", a: PreparedRows, b: PreparedRows, out: FloatArray, threads: int | None
) -> None:
    """Fill ``out`` by panels of whole rows; both triangles of a square are equal by themselves."""
    height = _panel_height(kernel, len(a), b, threads)

    def fill(top: int) -> None:
        kernel.fill_tile(a[top : top + height], b, out[top : top + height])

    if height < len(a):
        _do_all(kernel, None, b, fill, deque(range(0, len(a), height)), threads)
    else:
        kernel.fill_tile(a, b, out)
    if a is b:
        np.fill_diagonal(out, kernel.diagonal(a))


def _panel_height(kernel: "Kernel", rows: int, b: PreparedRows, threads: int | None) -> int:
    """Return the rows of a panel as wide as there are columns: no bit depends on it."""
    work, count = len(b) * ((b.width or 0) + 32), _threads_for(kernel, rows, b, threads)
    if count == 1 and rows * work <= WORK:
        return max(1, rows)
    shared = rows if count == 1 else -(-rows // (_PANELS * count))
    return max(_LEAST_ROWS, min(shared, WORK // work))


def _tile_shape(kernel: "Kernel", out: FloatArray, symmetric: bool) -> tuple[int, int]:
    """Return the rows and columns of a tile, whatever the number of threads.

    Few rows have long tiles, so that there is more to a tile than to begin it; small squares have
    small ones, so that there is something to share out.
    """
    rows, columns = out.shape
    height = min(kernel.max_tile_rows, TILE_BYTES // (TILE_COLUMNS * out.itemsize))
    if symmetric:
        small = rows <= 2 * TILE_COLUMNS
        return (min(height, _SMALL_SIDE), _SMALL_SIDE) if small else (height, TILE_COLUMNS)
    longest = TILE_BYTES // (max(1, min(rows, height)) * out.itemsize)
    return height, max(TILE_COLUMNS, min(longest, columns // _SHARES))


def dot(
    kernel: "Kernel",
    a: PreparedRows,
    b: PreparedRows,
    weights: FloatArray,
    threads: int | None,
    *,
    magnitudes: bool = False,
    partial: bool = False,
    run: int = TILE_COLUMNS,
) -> Floats:
    """Return K(a, b) @ weights in float64.

    Sums over ``run`` columns of a tile are made in its type, sums over all these in float64. With
    ``magnitudes``, as many columns follow with |K(a, b)| @ |weights|. With ``partial``, rows that
    were not reached within the time limit are NaN, instead of an error.
    """
    both = np.hstack([weights, np.abs(weights)]) if magnitudes else weights
    signed = both.shape[1] if kernel.nonnegative else weights.shape[1]
    typed, out = np.ascontiguousarray(both, a.dtype), np.zeros((len(a), both.shape[1]))
    row_bytes = a.dtype.itemsize * max(1, min(len(b), TILE_COLUMNS))
    compiled = kernel.sums(b, typed, run) if a.wide else None
    height = min(kernel.max_tile_rows, TILE_BYTES // row_bytes)
    if compiled is not None:
        height = _panel_height(kernel, len(a), b, threads)
    reached = np.zeros(len(a), bool)

    def multiply(top: int) -> None:
        rows, sums = a[top : top + height], out[top : top + height]
        if compiled is not None:
            compiled.add(rows, sums)
            reached[top : top + height] = True
            return
        for left in range(0, len(b), TILE_COLUMNS):
            clock.check()
            columns, some = b[left : left + TILE_COLUMNS], typed[left : left + TILE_COLUMNS]
            with scratch((len(rows), len(columns)), a.dtype) as tile:
                kernel.fill_tile(rows, columns, tile)
                sums += _product(tile, some, run, signed)
        reached[top : top + height] = True

    try:
        _do_all(
            kernel, None if compiled else a, b, multiply, deque(range(0, len(a), height)), threads
        )
    except clock.OutOfTimeError:
        if not partial:
            raise
    if not np.isfinite(out.sum()) and not np.isfinite(out).all():
        raise overflow(kernel)
    if not reached.all():
        out[~reached] = np.nan
    return out


def _product(tile: FloatArray, weights: FloatArray, run: int, signed: int) -> FloatArray:
    """Return tile @ weights, sums over runs of columns being in float64.

    All weights but the first ``signed`` columns are multiplied by the magnitudes of the tile.
    """
    if signed < weights.shape[1]:
        first, rest = weights[:, :signed], weights[:, signed:]
        magnitudes = _product(np.abs(tile), rest, run, rest.shape[1])
        return np.hstack([_product(tile, first, run, signed), magnitudes])
    if tile.shape[1] <= run:
        if tile.strides[0] == tile.itemsize:  # turned: BLAS is twice as fast the other way round
            return np.asarray((weights.T @ tile.T).T)
        return np.asarray(tile @ weights)
    runs = tile.shape[1] // run
    whole = runs * run
    parts = tile[:, :whole].reshape(len(tile), runs, run).transpose(1, 0, 2)
    some = weights[:whole].reshape(runs, run, weights.shape[1])
    sums = np.matmul(parts, some).sum(axis=0, dtype=np.float64)
    return np.asarray(sums + tile[:, whole:] @ weights[whole:])


class SymmetricProduct:
    """V ↦ K(a, a) @ V, of which only the tiles on and above the diagonal are computed.

        (KV)_I = Σ_J K_IJ V_J,    (KV)_J += K_IJᵀ V_I  for the tiles I < J

    They are computed for each product.
    """

    def __init__(self, kernel: "Kernel", rows: PreparedRows, threads: int | None) -> None:
        self.kernel, self.rows, self.threads = kernel, rows, threads
        self._width = TILE_COLUMNS
        in_cache = TILE_BYTES // (TILE_COLUMNS * rows.dtype.itemsize)
        self._height = min(in_cache, kernel.max_tile_rows)
        self._warm = not len(rows)

    def dot(self, V: FloatArray, *, magnitudes: bool = False, partial: bool = False) -> Floats:
        """Return K @ V: sums within a tile are made in its type, sums over tiles in float64.

        With ``magnitudes``, as many columns follow with |K| @ |V|. With ``partial``, all is NaN if
        the time is over before the end.
        """
        both, run = (np.hstack([V, np.abs(V)]), RUN_64) if magnitudes else (V, TILE_COLUMNS)
        signed = both.shape[1] if self.kernel.nonnegative else V.shape[1]
        typed = np.ascontiguousarray(both, self.rows.dtype)
        compiled = self.kernel.sums(self.rows, typed, run)
        self._warm = self._warm or compiled is not None

        def add(top: int, out: Floats) -> None:
            if compiled is not None:
                compiled.add_half(self.rows[top : top + self._height], top, out)
            else:
                self._add_panel(top, typed, out, run, signed)

        try:
            return self._add_panels(typed.shape, add)
        except clock.OutOfTimeError:
            if not partial:
                raise
            return np.full(typed.shape, np.nan)

    def _add_panels(self, shape: tuple[int, int], add: Callable[[int, Floats], None]) -> Floats:
        """Return the sum of what panels of rows add to it, given where each begins."""
        tops = range(0, len(self.rows), self._height)
        sums = np.zeros((_SHARES, *shape))

        def add_share(k: int) -> None:
            # The first panels are the longest: dealt there and back, shares are about equal.
            for top in (*tops[k :: 2 * _SHARES], *tops[2 * _SHARES - 1 - k :: 2 * _SHARES]):
                add(top, sums[k])

        with one_blas_thread():
            if not self._warm:
                _warm_up(self.kernel, self.rows, self.rows)
                self._warm = True
            threads = _threads_for(self.kernel, len(self.rows) // 2, self.rows, self.threads)
            share_work(add_share, deque(range(_SHARES)), threads)
        total: Floats = sums.sum(axis=0)
        if not np.isfinite(total).all():
            raise overflow(self.kernel)
        return total

    def _add_panel(self, top: int, V: FloatArray, out: Floats, run: int, signed: int) -> None:
        n, bottom = len(self.rows), min(top + self._height, len(self.rows))
        for left in range(top, n, self._width):
            clock.check()
            right = min(left + self._width, n)
            with scratch((bottom - top, right - left), self.rows.dtype) as tile:
                self.kernel.fill_tile(self.rows[top:bottom], self.rows[left:right], tile)
                out[top:bottom] += _product(tile, V[left:right], run, signed)
                beyond = max(left, bottom)
                if beyond < right:
                    turned = tile[:, beyond - left :].T
                    out[beyond:right] += _product(turned, V[top:bottom], run, signed)


_STORED_ROWS = 512  # of a stored tile
_STORED_COLUMNS = 16  # of V in one compiled call, which must not take long


class StoredProduct(SymmetricProduct):
    """The same, with tiles that the first product stores for the following ones."""

    def __init__(self, kernel: "Kernel", rows: PreparedRows, threads: int | None) -> None:
        super().__init__(kernel, rows, threads)
        self._height = _STORED_ROWS
        self._panels: dict[int, FloatArray] = {}  # the tiles of each, by its first row

    @staticmethod
    def stored_bytes(n: int, dtype: Any) -> int:
        """Return the memory that the tiles of n rows take."""
        return n * (n + _STORED_ROWS) // 2 * int(np.dtype(dtype).itemsize)

    def dot(self, V: FloatArray) -> Floats:  # type: ignore[override]
        """Return K @ V: sums within a tile are made in its type, sums over tiles in float64."""
        n, columns = V.shape
        shape = columns + -columns % 4, n + n % 2  # as the compiled loop takes them
        typed = np.zeros(shape, self.rows.dtype)
        typed[:columns, :n] = V.T
        add = loops.kernel_tiles.add_products

        def add_panel(top: int, out: Floats) -> None:
            if top not in self._panels:
                self._panels[top] = self._fill(top, shape[1])
            height = min(self._height, shape[1] - top)
            for first in range(0, columns, _STORED_COLUMNS):
                clock.check()
                some = slice(first, first + _STORED_COLUMNS)
                add(self._panels[top], top, height, typed[some], out[some])

        return self._add_panels(shape, add_panel)[:columns, :n].T

    def _fill(self, top: int, even: int) -> FloatArray:
        """Return the tiles of a panel, as if the number of rows were even."""
        n, most = len(self.rows), self.kernel.max_tile_rows
        strip = loops.kernel_tiles.STRIP_BYTES // self.rows.dtype.itemsize
        bottom, height = min(top + self._height, n), min(self._height, even - top)
        panel, at = np.zeros(height * (even - top), self.rows.dtype), 0
        for left in range(top, n, strip):
            right, width = min(left + strip, n), min(strip, even - left)
            tile = panel[at : at + height * width].reshape(height, width)
            at += tile.size
            for above in range(top, bottom, most):
                clock.check()
                below = min(above + most, bottom)
                target = tile[above - top : below - top, : right - left]
                whole = target.flags.c_contiguous
                with nullcontext(target) if whole else scratch(target.shape, tile.dtype) as values:
                    self.kernel.fill_tile(self.rows[above:below], self.rows[left:right], values)
                    if not whole:
                        target[...] = values
        return panel


def overflow(kernel: "Kernel") -> ValueError:
    """Return the error for values beyond the number type."""
    return ValueError(
        f"{kernel!r} gives values that are not finite on these rows: they overflow the number "
        "type. Scale the columns, lower the kernel's parameters, or pass float64."
    )


# ---------------------------------------------------------------- threads and their buffers


def _do_all(kernel: "Kernel", a: PreparedRows | None, b: PreparedRows, each: Callable[[Any], None],
            todo: deque[Any], threads: int | None) -> None:  # fmt: skip
    """Call ``each``, which fills tiles of K(a, b), for every item, in several threads.

    With ``a``, a few values are computed first, so that no two threads build the same thing;
    without it, strips of b are made.
    """
    clock.check()
    with one_blas_thread():
        if a is None and len(b):
            b.strips(b.dtype)
        if len(todo) == 1:
            each(todo.pop())
        elif todo:
            count = min(_count_threads(kernel, threads), len(todo))
            if a is not None:
                count = min(_threads_for(kernel, len(a), b, threads), count)
            if count > 1 and a is not None:
                _warm_up(kernel, a, b)
            share_work(each, todo, count)


def _warm_up(kernel: "Kernel", a: PreparedRows, b: PreparedRows) -> None:
    """Compute a few values."""
    side = min(2, kernel.max_tile_rows)
    rows, columns = a[:side], b[:side]
    kernel.fill_tile(rows, columns, np.empty((len(rows), len(columns)), a.dtype))


def _threads_for(kernel: "Kernel", rows: int, b: PreparedRows, threads: int | None) -> int:
    """Return how many threads are worth while to compare so many rows with others."""
    count = _count_threads(kernel, threads)  # which refuses what is none
    much = b.width is None or rows * len(b) * (b.width + 32) > _NOT_SHARED
    return count if much else 1


def _count_threads(kernel: "Kernel", threads: int | None) -> int:
    if threads is not None and (not isinstance(threads, Integral) or threads < 1):
        raise ValueError(f"threads must be None or a whole number of at least 1, got {threads!r}")
    return int(threads or usual_threads()) if kernel.thread_safe else 1


class _Buffers(threading.local):
    """What a thread keeps between tiles: memory that need not be mapped each time."""

    def __init__(self) -> None:
        self.free: list[Any] = []


_buffers = _Buffers()


@contextmanager
def scratch(shape: tuple[int, ...], dtype: Any) -> Iterator[FloatArray]:
    """Lend an uninitialised C-contiguous buffer of this thread."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = _buffers.free.pop() if _buffers.free else np.empty(TILE_BYTES, np.uint8)
    if buffer.size < size:
        buffer = np.empty(size, np.uint8)
    try:
        yield buffer[:size].view(dtype).reshape(shape)
    finally:
        _buffers.free.append(buffer)
