"""The tiled driver: a Gram matrix block by block, each finished while it is in cache.

The grid depends only on the shape and the number type, and each tile is computed by one thread
with one BLAS thread, so the result is the same to the last bit whatever the number of threads.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.kernels.blas import one_blas_thread, usual_threads
from maxmargin.kernels.bound import Bound
from maxmargin.kernels.rows import FloatArray

if TYPE_CHECKING:
    from maxmargin.kernels.base import Kernel

# About the size of an L2 cache: smaller tiles cost BLAS more than they save the map (measured).
# No tile may have more rows than columns: the square on the diagonal is mirrored within one.
TILE_COLUMNS = 512
TILE_BYTES = 1024 * 1024

# The part of a kernel value that float32 may get wrong before float64 takes its place.
SINGLE_ERROR = 1e-4

# Below so many multiplications BLAS stays on one thread by itself.
SMALL_PRODUCT = 2**17


class Tile(NamedTuple):
    """Rows top:bottom and columns left:right of the matrix."""

    top: int
    bottom: int
    left: int
    right: int


def fill(kernel: "Kernel", a: Bound, b: Bound, out: FloatArray, threads: int | None) -> None:
    """Fill ``out`` with K(a, b); symmetric to the last bit if a is b."""
    diagonal = kernel._diag(a) if a is b else None
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
            # The first tile runs alone: it compiles the loop and builds what is built on demand.
            one(todo.popleft())
        shared(one, todo, min(thread_count(kernel, threads), len(todo)))


def combine(
    kernel: "Kernel",
    a: Bound,
    b: Bound,
    weights: FloatArray,
    threads: int | None,
    *,
    sizes: bool = False,
) -> npt.NDArray[np.float64]:
    """Return K(a, b) @ weights in float64, each tile used while it is in cache and not kept.

    Sums over a tile are made in its type, sums over tiles in float64. With ``sizes``, as many
    columns follow with |K(a, b)| @ |weights|.
    """
    count = weights.shape[1]
    out = np.zeros((len(a), 2 * count if sizes else count))
    typed = np.ascontiguousarray(weights, a.dtype)
    height = tile_height(kernel, a.dtype)
    todo = deque(range(0, len(a), height))

    def panel(top: int) -> None:
        rows = a[top : top + height]
        for left in range(0, len(b), TILE_COLUMNS):
            columns = b[left : left + TILE_COLUMNS]
            with working(), scratch((len(rows), len(columns)), a.dtype) as tile:
                kernel._tile(rows, columns, tile)
                some = typed[left : left + TILE_COLUMNS]
                out[top : top + height, :count] += tile @ some
                if sizes:
                    np.abs(tile, out=tile)
                    out[top : top + height, count:] += tile @ np.abs(some)

    with one_blas_thread():
        if todo:
            panel(todo.popleft())
        shared(panel, todo, min(thread_count(kernel, threads), len(todo)))
    return finite(kernel, out)


def finite(kernel: "Kernel", values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values, or raise if some overflowed."""
    if not np.isfinite(values).all():
        raise ValueError(overflow_message(kernel))
    return values


def tile_height(kernel: "Kernel", dtype: Any) -> int:
    """Return how many rows a tile has."""
    return min(kernel._tile_rows, TILE_BYTES // (TILE_COLUMNS * int(np.dtype(dtype).itemsize)))


def shared(each: Any, todo: deque[Any], threads: int) -> None:
    """Let several threads do what is to be done one by one, this thread among them."""

    def work() -> None:
        while todo:
            try:
                item = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            each(item)

    helpers = [worker_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        todo.clear()  # after an error nobody needs the rest
        for helper in helpers:
            helper.result()


def _fill_tile(
    kernel: "Kernel",
    a: Bound,
    b: Bound,
    out: FloatArray,
    tile: Tile,
    diagonal: FloatArray | None,
) -> None:
    target = out[tile.top : tile.bottom, tile.left : tile.right]
    with contiguous(target) as values:
        kernel._tile(a[tile.top : tile.bottom], b[tile.left : tile.right], values)
        if not loops.kernel_tiles.all_finite(values):
            raise ValueError(overflow_message(kernel))
        if diagonal is None:
            return
        if tile.left == tile.top:
            loops.kernel_tiles.mirror_upper(values, diagonal[tile.top : tile.bottom])
        beyond = max(tile.left, tile.bottom)
        out[beyond : tile.right, tile.top : tile.bottom] = values[:, beyond - tile.left :].T


def overflow_message(kernel: "Kernel") -> str:
    """Return the sentence for values beyond the number type."""
    return (
        f"{kernel!r} gives values that are not finite on these rows: they overflow the number "
        "type. Scale the columns, lower the kernel's parameters, or pass float64."
    )


def _grid(rows: int, columns: int, height: int, itemsize: int, *, upper: bool) -> Iterator[Tile]:
    if rows * columns * itemsize <= TILE_BYTES and 0 < rows <= min(height, columns):
        yield Tile(0, rows, 0, columns)  # small enough to be one, straight into its place
        return
    for top in range(0, rows, height):
        for left in range(top if upper else 0, columns, TILE_COLUMNS):
            yield Tile(top, min(top + height, rows), left, min(left + TILE_COLUMNS, columns))


def thread_count(kernel: "Kernel", threads: int | None) -> int:
    """Return how many threads may work; one where a tile is being computed already."""
    if threads is not None and (not isinstance(threads, Integral) or threads < 1):
        raise ValueError(f"threads must be None or a whole number of at least 1, got {threads!r}")
    if _memory.working or not kernel._threaded:
        return 1
    return int(threads or usual_threads())


class _Memory(threading.local):
    """What a thread keeps between tiles: buffers, so that pages are not faulted in each time."""

    def __init__(self) -> None:
        self.working = False
        self.depth = 0
        self.buffers: list[Any] = []


_memory = _Memory()


@contextmanager
def working() -> Iterator[None]:
    """Mark this thread as busy with a tile: a kernel that calls a kernel must not use the pool."""
    before, _memory.working = _memory.working, True
    try:
        yield
    finally:
        _memory.working = before


@contextmanager
def scratch(shape: tuple[int, ...], dtype: Any) -> Iterator[FloatArray]:
    """Lend a C-contiguous buffer of this thread, with whatever it contains."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    depth = _memory.depth
    if depth == len(_memory.buffers):
        _memory.buffers.append(np.empty(0, np.uint8))
    if _memory.buffers[depth].size < size:
        _memory.buffers[depth] = np.empty(size, np.uint8)
    _memory.depth += 1
    try:
        yield _memory.buffers[depth][:size].view(dtype).reshape(shape)
    finally:
        _memory.depth -= 1


@contextmanager
def contiguous(target: FloatArray) -> Iterator[FloatArray]:
    """Lend the target itself if it is C-contiguous, else a buffer that is copied into it."""
    if target.flags.c_contiguous:
        yield target
        return
    with scratch(target.shape, target.dtype) as values:
        yield values
        target[...] = values


@cache
def worker_pool(workers: int) -> ThreadPoolExecutor:
    """Return the threads that are kept for tiles and passes."""
    return ThreadPoolExecutor(workers, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: a child makes its own pool.
    os.register_at_fork(after_in_child=worker_pool.cache_clear)
